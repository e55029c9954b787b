/** Existing nodes read for a simulation, grouped by what requirements see of them. */
import { labels, normalizedLabel, type Resources, type Taint, ownValue } from '@tenon/api'
import { oneOf } from '../../requirements/requirement.ts'
import { compatible, labelRequirements, type Requirements } from '../../requirements/requirements.ts'
import type { RequirementStates, StateId } from '../../requirements/states.ts'
import type { NodeInput, VolumeUse } from '../../input/input.ts'
import type { Attachments } from '../pods/attachments.ts'
import type { Pace } from '../pace.ts'
import type { HostPort } from '../../input/host-ports.ts'
import type { CompiledDaemon } from '../claims/pool-template.ts'
import { addTo, type Amounts, type ResourceSpace } from '../pods/resource-space.ts'
import { hardTaints, untolerated } from '../pods/taints.ts'
import type { NodeView } from '../topology/node-domains.ts'
import type { PodTopology } from '../topology/pod-topology.ts'

const nothingUndefined: ReadonlySet<string> = new Set()

/** One existing node during a simulation. */
export interface NodeFill extends NodeView {
  readonly input: NodeInput
  /** Place in the order in which nodes are tried. */
  readonly order: number
  readonly hostname: string
  readonly remaining: Amounts
  /** Whether a node has a negative amount, or too many volumes already: it takes nothing. */
  readonly takesNothing: boolean
  readonly pods: number[]
  hostPorts: readonly HostPort[]
  volumes: VolumeUse
  /** Set while the simulation does without the node. */
  isExcluded: boolean
}

/** Nodes with the same taints and the same values for every label that some rule looks at. */
export interface NodeClass {
  readonly state: StateId
  readonly requirements: Requirements
  readonly taints: readonly Taint[]
  readonly nodes: readonly NodeFill[]
}

export interface NodeContext {
  readonly states: RequirementStates
  readonly space: ResourceSpace
  readonly daemons: readonly CompiledDaemon[]
  readonly topology: PodTopology
  readonly attachments: Attachments
  readonly pace: Pace
  /** Label keys that some pod, daemon or topology rule looks at. */
  readonly keys: ReadonlySet<string>
}

/** What the daemons that belong on a node take there. */
interface ExpectedDaemons {
  readonly amounts: Amounts
  readonly ports: readonly HostPort[]
  readonly indexes: readonly number[]
}

/** Reads nodes; what holds for a whole class is computed once. */
export class NodeReader {
  readonly #context: NodeContext
  /** What pods may take of each node, in one piece: thousands of small arrays are slow to make. */
  readonly #rooms: Float64Array
  readonly #classes = new Map<string, NodeClass & { nodes: NodeFill[] }>()
  /** Keys of classes by what is read of their nodes, in the order in which it is there. */
  readonly #keys = new Map<string, string>()
  readonly #daemons = new Map<string, ExpectedDaemons>()

  /** @param count of the nodes that will be read. */
  constructor(context: NodeContext, count: number) {
    this.#context = context
    this.#rooms = new Float64Array(count * context.space.size)
  }

  get classes(): readonly NodeClass[] {
    return [...this.#classes.values()]
  }

  /** @param order place in the order in which nodes are tried, from 0 on without a gap. */
  read(input: NodeInput, order: number): NodeFill {
    const { space, topology, attachments } = this.#context
    const key = this.#classKey(input)
    const nodeClass = this.#classOf(input, key)
    const hostname = input.labels[labels.hostname] ?? input.name
    const remaining = this.#rooms.subarray(order * space.size, (order + 1) * space.size)
    remaining.set(space.lastingVector(input.available))
    attachments.unlimit(remaining)
    const { amounts: expected, ports, indexes } = this.#expectedDaemons(nodeClass, hostname, key)
    if (indexes.length > 0) takeMissing(remaining, expected, input, space)
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
    // On a node that has started, only pods that are there count.
    if (!input.initialized) topology.expectOnNode(node.host, indexes)
    nodeClass.nodes.push(node)
    return node
  }

  #classKey(input: NodeInput): string {
    const { states, keys } = this.#context
    const taints = input.taints.length === 0 ? '' : JSON.stringify(input.taints)
    let read = taints
    for (const name in input.labels)
      if (isRead(name, keys)) read += `\n${name}=${ownValue(input.labels, name)}`
    let key = this.#keys.get(read)
    if (key === undefined) {
      key = `${states.idOf(labelRequirements(readLabels(input.labels, keys)))} ${taints}`
      this.#keys.set(read, key)
    }
    return key
  }

  #classOf(input: NodeInput, key: string): NodeClass & { nodes: NodeFill[] } {
    let nodeClass = this.#classes.get(key)
    if (nodeClass === undefined) {
      const { states, keys } = this.#context
      const requirements = labelRequirements(readLabels(input.labels, keys))
      nodeClass = { state: states.idOf(requirements), requirements, taints: input.taints, nodes: [] }
      this.#classes.set(key, nodeClass)
    }
    return nodeClass
  }

  /** Of all daemons that belong on a node, whether or not their pods have come. */
  #expectedDaemons({ requirements, taints }: NodeClass, hostname: string, classKey: string): ExpectedDaemons {
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

/** The labels that some rule looks at. */
export function readLabels(
  all: Readonly<Record<string, string>>,
  keys: ReadonlySet<string>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(all).filter(([key]) => isRead(key, keys)))
}

/** Whether some rule looks at the label; every node has a hostname of its own. */
function isRead(key: string, keys: ReadonlySet<string>): boolean {
  const name = normalizedLabel(key)
  return name !== labels.hostname && keys.has(name)
}

/** Takes what daemons that are expected on a node and have not come will take there. */
function takeMissing(remaining: Amounts, expected: Amounts, input: NodeInput, space: ResourceSpace): void {
  const bound = space.lastingVector(input.daemonRequests)
  let offered: Amounts | undefined
  for (let i = 0; i < remaining.length; i++) {
    const missing = (expected[i] as number) - (bound[i] as number)
    if (missing <= 0) continue
    offered ??= space.vector(onesOf(input.available))
    // What a node does not report cannot be promised to its daemons either.
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
