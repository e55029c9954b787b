/** Existing nodes in the order in which they are tried. */
import { ownValue, setOwn, undeclaredFeatures } from '@tenon/api'
import { withinVolumeLimits } from '../../eligibility/volumes.ts'
import { has } from '../../requirements/requirement.ts'
import { compatible } from '../../requirements/requirements.ts'
import type { RequirementStates } from '../../requirements/states.ts'
import type { NodeInput, VolumeUse } from '../../input/input.ts'
import type { Pace } from '../pace.ts'
import { portsClash } from '../../input/host-ports.ts'
import { type NodeClass, type NodeContext, type NodeFill, nodeOrder, NodeReader } from './node-fill.ts'
import type { PodShape, NodeDemand } from '../pods/pod-shape.ts'
import { addTo, amountsFit, takeFrom } from '../pods/resource-space.ts'
import { untolerated } from '../pods/taints.ts'
import type { PodTopology } from '../topology/pod-topology.ts'

const nothingUndefined: ReadonlySet<string> = new Set()

/** What is known about a shape and a class of nodes: choices of volumes, and nodes that never accept it. */
interface Knowledge {
  readonly volumes: readonly NodeDemand[]
  /** The nodes of the class that had room for the shape at the start. */
  readonly nodes: readonly NodeFill[]
  /** Nodes before this index never accept the shape. */
  head: number
}

/** Whether a node has the devices that a pod claims. */
export type HasDevices = (node: NodeFill) => boolean

const always: HasDevices = () => true

/** An undoable change. */
type Undo = () => void

export class NodeQueue {
  readonly all: readonly NodeFill[]
  readonly #byInput: ReadonlyMap<NodeInput, NodeFill>
  readonly #classOf = new Map<NodeFill, NodeClass>()
  readonly #classes: readonly NodeClass[]
  readonly #topology: PodTopology
  readonly #states: RequirementStates
  readonly #pace: Pace
  readonly #knowledge: (readonly (Knowledge | undefined)[] | undefined)[] = []
  /** Changes since the first mark. */
  #log: Undo[] | undefined

  /** @param order in which nodes are tried. */
  constructor(
    inputs: readonly NodeInput[],
    context: NodeContext,
    order: (a: NodeInput, b: NodeInput) => number = nodeOrder,
  ) {
    this.#topology = context.topology
    this.#states = context.states
    this.#pace = context.pace
    const reader = new NodeReader(context, inputs.length)
    this.all = inputs.toSorted(order).map((input, place) => reader.read(input, place))
    this.#classes = reader.classes
    this.#byInput = new Map(this.all.map((node) => [node.input, node]))
    for (const nodeClass of this.#classes)
      for (const node of nodeClass.nodes) this.#classOf.set(node, nodeClass)
  }

  /** The first node that accepts a pod of this shape. */
  first(
    shape: PodShape,
    volumes: VolumeUse | undefined,
    hasDevices: HasDevices = always,
  ): NodeFill | undefined {
    if (this.all.length === 0 || shape.hasUnknownVolumes) return undefined
    const knowledge = this.#knowledge[shape.index] ?? this.#learn(shape)
    let best: NodeFill | undefined
    for (const [index, nodeClass] of this.#classes.entries()) {
      const known = knowledge[index]
      if (known === undefined || known.head >= known.nodes.length) continue
      const next = known.nodes[known.head] as NodeFill
      if (best !== undefined && next.order > best.order) continue
      if (!this.#isSuitable(shape, nodeClass, next.host)) continue
      const found = this.#firstOf(shape, known, { volumes, hasDevices }, best)
      if (found !== undefined) best = found
    }
    return best
  }

  /** The node of an input. */
  of(input: NodeInput): NodeFill | undefined {
    return this.#byInput.get(input)
  }

  /** Whether this node accepts a pod of this shape that is planned for it. */
  takes(
    node: NodeFill,
    shape: PodShape,
    volumes: VolumeUse | undefined,
    hasDevices: HasDevices = always,
  ): boolean {
    if (shape.hasUnknownVolumes) return false
    const nodeClass = this.#classOf.get(node)
    if (nodeClass === undefined) return false
    const known = this.#knowledgeOf(shape, nodeClass)
    return (
      known !== undefined &&
      this.#isSuitable(shape, nodeClass, node.host) &&
      this.#holds(node, shape, known) &&
      this.#topology.allowsHost(shape, node.host) &&
      attaches(node, volumes) &&
      hasDevices(node)
    )
  }

  /** Whether the node would accept pods of this shape if it had room; only for shapes without topology rules. */
  suits(node: NodeFill, shape: PodShape): boolean {
    if (shape.origin === 'candidate' && node.input.refusesCandidatePods === true) return false
    return this.suitsLater(node, shape)
  }

  /** The same, once the node is no longer under `consolidateAfter`. */
  suitsLater(node: NodeFill, shape: PodShape): boolean {
    const nodeClass = this.#classOf.get(node)
    if (nodeClass === undefined || node.takesNothing || node.isExcluded) return false
    if (node.input.takesOnlyPlanned === true) return false
    return this.#knowledgeOf(shape, nodeClass) !== undefined
  }

  take(node: NodeFill, pod: number, shape: PodShape, volumes: VolumeUse | undefined): void {
    if (this.#log !== undefined) {
      const { hostPorts, volumes: attached } = node
      this.#log.push(() => {
        node.pods.pop()
        addTo(node.remaining, shape.amounts)
        node.hostPorts = hostPorts
        node.volumes = attached
      })
    }
    node.pods.push(pod)
    takeFrom(node.remaining, shape.amounts)
    if (shape.hostPorts.length > 0) node.hostPorts = [...node.hostPorts, ...shape.hostPorts]
    if (volumes !== undefined) node.volumes = united(node.volumes, volumes)
    this.#topology.record(shape, node)
  }

  /**
   * Starts to note changes, unless they are noted already.
   * @returns the point that a rollback can return to.
   */
  mark(): number {
    this.#log ??= []
    return this.#log.length
  }

  /** Undoes everything since the mark. */
  rollback(mark: number): void {
    const log = this.#log ?? []
    while (log.length > mark) (log.pop() as Undo)()
  }

  /** Excludes a node; call {@link mark} before. */
  exclude(node: NodeFill): void {
    if (node.isExcluded) return
    node.isExcluded = true
    this.#log?.push(() => {
      node.isExcluded = false
    })
  }

  /**
   * Finds the nodes that have room for a shape now. Later only these are tried, so nodes must only get fuller from here
   * on.
   */
  prepare(shape: PodShape): void {
    this.#knowledge[shape.index] ??= this.#classes.map((each) => {
      const known = this.#knowledgeOf(shape, each)
      return known && { ...known, nodes: each.nodes.filter((node) => this.#holds(node, shape, known)) }
    })
  }

  #learn(shape: PodShape): readonly (Knowledge | undefined)[] {
    const knowledge = this.#classes.map((each) => this.#knowledgeOf(shape, each))
    this.#knowledge[shape.index] = knowledge
    return knowledge
  }

  #bury(known: Knowledge, head: number): void {
    const before = known.head
    this.#log?.push(() => {
      known.head = before
    })
    known.head = head
  }

  /** Undefined when no node of the class can ever accept the shape. */
  #knowledgeOf(
    shape: PodShape,
    { requirements, taints, declaredFeatures, nodes }: NodeClass,
  ): Knowledge | undefined {
    this.#pace.step()
    if (untolerated(taints, shape.tolerations).length > 0) return undefined
    if (undeclaredFeatures(shape.features, declaredFeatures).length > 0) return undefined
    const suits = ({ state }: NodeDemand) =>
      compatible(requirements, this.#states.get(state), nothingUndefined)
    if (!suits(shape.wanted)) return undefined
    const volumes = shape.volumes.filter(suits)
    return volumes.length === 0 ? undefined : { volumes, nodes, head: 0 }
  }

  /** Whether topology rules about domains allow nodes of the class now. Hosts differ by the daemon pods they will get. */
  #isSuitable(shape: PodShape, { requirements }: NodeClass, host: number): boolean {
    return !this.#topology.concernsDomains(shape) || this.#topology.allowsNode(shape, requirements, host)
  }

  #firstOf(
    shape: PodShape,
    known: Knowledge,
    { volumes, hasDevices }: { readonly volumes: VolumeUse | undefined; readonly hasDevices: HasDevices },
    best: NodeFill | undefined,
  ): NodeFill | undefined {
    const { nodes } = known
    let head = known.head
    let isDeadSoFar = true
    let found: NodeFill | undefined
    const isBound = this.#topology.refusesHostsForNow(shape)
    for (let i = head; i < nodes.length; i++) {
      this.#pace.step()
      const node = nodes[i] as NodeFill
      if (best !== undefined && node.order > best.order) break
      const isFull = node.input.takesOnlyPlanned === true || !this.#holds(node, shape, known)
      const isRefused = !isFull && !this.#topology.allowsHost(shape, node.host)
      const isSuitable = !isFull && !isRefused && attaches(node, volumes)
      if (isSuitable && hasDevices(node)) {
        found = node
        break
      }
      // Free devices only become fewer, unless a shared claim is allocated here for another pod.
      const lacksDevices = isSuitable && !shape.sharesClaims
      if (isFull || lacksDevices || (isRefused && !isBound)) {
        if (isDeadSoFar) head = i + 1
      } else isDeadSoFar = false
    }
    if (head > known.head) this.#bury(known, head)
    return found
  }

  /** Whether the pod fits, topology rules apart; once false, it stays false. */
  #holds(node: NodeFill, shape: PodShape, { volumes }: Knowledge): boolean {
    if (node.takesNothing || node.isExcluded || !amountsFit(shape.amounts, node.remaining)) return false
    if (shape.origin === 'candidate' && node.input.refusesCandidatePods === true) return false
    if (shape.wanted.host !== undefined && !has(shape.wanted.host, node.hostname)) return false
    if (volumes.every(({ host }) => host !== undefined && !has(host, node.hostname))) return false
    return shape.hostPorts.length === 0 || !portsClash(shape.hostPorts, node.hostPorts)
  }
}

function attaches({ input, volumes }: NodeFill, more: VolumeUse | undefined): boolean {
  if (more === undefined) return true
  const lacks = input.missingDrivers?.some((driver) => (ownValue(more, driver) ?? []).length > 0) === true
  return !lacks && withinVolumeLimits(input.volumeLimits ?? {}, volumes, more)
}

function united(a: VolumeUse, b: VolumeUse): VolumeUse {
  const all: Record<string, readonly string[]> = { ...a }
  for (const [driver, claims] of Object.entries(b))
    setOwn(all, driver, [...new Set([...(ownValue(all, driver) ?? []), ...claims])])
  return all
}
