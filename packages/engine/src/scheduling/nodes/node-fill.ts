/** Existing nodes as simulations fill them, in classes of equal labels and taints. */
import { labels, normalizedLabel, type Resources, type Taint, ownValue, undeclaredFeatures } from '@tenon/api'
import { oneOf } from '../../requirements/requirement.ts'
import { compatible, labelRequirements, type Requirements } from '../../requirements/requirements.ts'
import type { RequirementStates, StateId } from '../../requirements/states.ts'
import type { NodeInput, VolumeUse } from '../../input/input.ts'
import type { ServedResources } from '../devices/served-resources.ts'
import type { Attachments } from '../pods/attachments.ts'
import type { Pace } from '../pace.ts'
import type { HostPort } from '../../input/host-ports.ts'
import type { CompiledDaemon } from '../claims/pool-template.ts'
import { addTo, type Amounts, type ResourceSpace } from '../pods/resource-space.ts'
import { hardTaints, untolerated } from '../pods/taints.ts'
import type { NodeView } from '../topology/node-domains.ts'
import type { PodTopology } from '../topology/pod-topology.ts'

const nothingUndefined: ReadonlySet<string> = new Set()

/** An existing node during a simulation. */
export interface NodeFill extends NodeView {
  readonly input: NodeInput
  /** Its index in the order in which nodes are tried. */
  readonly order: number
  readonly hostname: string
  readonly remaining: Amounts
  /** Whether the node is overcommitted, or has too many volumes, so that it accepts no pod. */
  readonly takesNothing: boolean
  readonly pods: number[]
  hostPorts: readonly HostPort[]
  volumes: VolumeUse
  /** Set while the node is excluded. */
  isExcluded: boolean
}

/** Nodes with equal taints and features, and equal values of every label that some rule names. */
export interface NodeClass {
  readonly state: StateId
  readonly requirements: Requirements
  readonly taints: readonly Taint[]
  readonly declaredFeatures: readonly string[] | undefined
  readonly nodes: readonly NodeFill[]
}

export interface NodeContext {
  readonly states: RequirementStates
  readonly space: ResourceSpace
  readonly daemons: readonly CompiledDaemon[]
  readonly topology: PodTopology
  readonly attachments: Attachments
  readonly servedResources: ServedResources
  readonly pace: Pace
  /** Label keys that some pod, daemon or topology rule names. */
  readonly keys: ReadonlySet<string>
}

/** The requests and host ports of the daemons that belong on a node. */
interface ExpectedDaemons {
  readonly amounts: Amounts
  readonly ports: readonly HostPort[]
  readonly indexes: readonly number[]
}

/** Reads nodes; what is equal for a class is computed once. */
export class NodeReader {
  readonly #context: NodeContext
  /** The room of all nodes in one array: thousands of small arrays are slow to create. */
  readonly #rooms: Float64Array
  readonly #classes = new Map<string, NodeClass & { nodes: NodeFill[] }>()
  /** Keys of classes by the labels of their nodes, in the order in which the labels occur. */
  readonly #keys = new Map<string, string>()
  readonly #daemons = new Map<string, ExpectedDaemons>()

  /** @param count the number of nodes that will be read. */
  constructor(context: NodeContext, count: number) {
    this.#context = context
    this.#rooms = new Float64Array(count * context.space.size)
  }

  get classes(): readonly NodeClass[] {
    return [...this.#classes.values()]
  }

  /** @param order index in the order in which nodes are tried, without gaps. */
  read(input: NodeInput, order: number): NodeFill {
    const { space, topology, attachments, servedResources } = this.#context
    const key = this.#classKey(input)
    const nodeClass = this.#classOf(input, key)
    const hostname = input.labels[labels.hostname] ?? input.name
    const remaining = this.#rooms.subarray(order * space.size, (order + 1) * space.size)
    remaining.set(space.lastingVector(input.available))
    attachments.unlimit(remaining)
    const { amounts: expected, ports, indexes } = this.#expectedDaemons(nodeClass, hostname, key)
    if (indexes.length > 0) takeMissing(remaining, expected, input, space)
    servedResources.unlimit(remaining, servedResources.countedOn(input.available))
    const node: NodeFill = {
      input,
      order,
      hostname,
      state: nodeClass.state,
      host: topology.hostOf(hostname),
      taints: input.taints,
      isNode: true,
      remaining,
      takesNothing: isOverfull(remaining) || isOverVolumeLimit(input),
      pods: [],
      hostPorts: ports.length === 0 ? input.usedHostPorts : [...input.usedHostPorts, ...ports],
      volumes: input.volumesInUse ?? {},
      isExcluded: false,
    }
    // On an initialized node only bound pods count.
    if (!input.initialized) topology.expectOnNode(node.host, indexes)
    nodeClass.nodes.push(node)
    return node
  }

  #classKey(input: NodeInput): string {
    const { states, keys } = this.#context
    const { declaredFeatures = [] } = input
    const taints = input.taints.length === 0 ? '' : JSON.stringify(input.taints)
    const own = declaredFeatures.length === 0 ? taints : `${taints} ${declaredFeatures.join()}`
    let read = own
    for (const name in input.labels)
      if (isRead(name, keys)) read += `\n${name}=${ownValue(input.labels, name)}`
    let key = this.#keys.get(read)
    if (key === undefined) {
      key = `${states.idOf(labelRequirements(readLabels(input.labels, keys)))} ${own}`
      this.#keys.set(read, key)
    }
    return key
  }

  #classOf(input: NodeInput, key: string): NodeClass & { nodes: NodeFill[] } {
    let nodeClass = this.#classes.get(key)
    if (nodeClass === undefined) {
      const { states, keys } = this.#context
      const requirements = labelRequirements(readLabels(input.labels, keys))
      const { taints, declaredFeatures } = input
      nodeClass = { state: states.idOf(requirements), requirements, taints, declaredFeatures, nodes: [] }
      this.#classes.set(key, nodeClass)
    }
    return nodeClass
  }

  /** Of all daemons that belong on a node, whether or not their pods are bound. */
  #expectedDaemons(
    { requirements, taints, declaredFeatures }: NodeClass,
    hostname: string,
    classKey: string,
  ): ExpectedDaemons {
    const { daemons, space } = this.#context
    const arePinned = daemons.some(({ alternatives }) =>
      alternatives.some((wanted) => wanted.has(labels.hostname)),
    )
    const key = arePinned ? `${classKey} ${hostname}` : classKey
    const before = this.#daemons.get(key)
    if (before !== undefined) return before
    const at: Requirements = new Map([...requirements, [labels.hostname, oneOf(labels.hostname, hostname)]])
    const amounts = new Float64Array(space.size)
    const ports: HostPort[] = []
    const indexes: number[] = []
    for (const [index, daemon] of daemons.entries()) {
      if (untolerated(hardTaints(taints), daemon.tolerations).length > 0) continue
      if (undeclaredFeatures(daemon.features, declaredFeatures).length > 0) continue
      if (!daemon.alternatives.some((wanted) => compatible(at, wanted, nothingUndefined))) continue
      addTo(amounts, space.vector(daemon.requests))
      ports.push(...daemon.hostPorts)
      indexes.push(index)
    }
    const expected = { amounts, ports, indexes }
    this.#daemons.set(key, expected)
    return expected
  }
}

/** Initialized nodes first, then by name. */
export function nodeOrder(a: NodeInput, b: NodeInput): number {
  if (a.initialized !== b.initialized) return a.initialized ? -1 : 1
  return a.name < b.name ? -1 : 1
}

/** The labels that some rule names. */
export function readLabels(
  all: Readonly<Record<string, string>>,
  keys: ReadonlySet<string>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(all).filter(([key]) => isRead(key, keys)))
}

/** Whether some rule names the label. Host names are left out, as every node has its own. */
function isRead(key: string, keys: ReadonlySet<string>): boolean {
  const name = normalizedLabel(key)
  return name !== labels.hostname && keys.has(name)
}

/** Reserves the requests of daemons that belong on a node and are not bound yet. */
function takeMissing(remaining: Amounts, expected: Amounts, input: NodeInput, space: ResourceSpace): void {
  const bound = space.lastingVector(input.daemonRequests)
  let offered: Amounts | undefined
  for (let i = 0; i < remaining.length; i++) {
    const missing = (expected[i] as number) - (bound[i] as number)
    if (missing <= 0) continue
    offered ??= space.vector(onesOf(input.available))
    // Resources that a node does not report cannot be reserved.
    if (offered[i] === 1) remaining[i] = (remaining[i] as number) - missing
  }
}

function isOverfull(remaining: Amounts): boolean {
  for (let i = 0; i < remaining.length; i++) if ((remaining[i] as number) < 0) return true
  return false
}

function onesOf(resources: Resources): Resources {
  return Object.fromEntries(Object.keys(resources).map((name) => [name, 1]))
}

function isOverVolumeLimit({ volumeLimits, volumesInUse = {} }: NodeInput): boolean {
  if (volumeLimits === undefined) return false
  return Object.entries(volumeLimits).some(
    ([driver, limit]) => new Set(ownValue(volumesInUse, driver) ?? []).size > limit,
  )
}
