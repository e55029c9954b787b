/** What the engine is told of the cluster as it is: nodes, plans, DaemonSets, and where pods are. */
import { type CsiNode, labels, type Node, type Pod } from '@tenon/api'
import {
  type DaemonInput,
  type NodeInput,
  type PodGroupInput,
  type TopologyInput,
  type TopologyNode,
  type VolumeLookups,
} from '@tenon/engine'
import { type Clock, perObject } from '@tenon/runtime'
import type { Caches, servesDevices } from '../../state/caches.ts'
import { isHeldUp } from '../../state/nodes/departures.ts'
import { isInitializationDoubtful } from '../../state/nodes/initialization-time.ts'
import { labelsOf, nodeInput, type NodeStorage, type StateNode } from '../../state/nodes/state-node.ts'
import { type NodeUse, useOf, useWith } from '../../state/pods/pod-index.ts'
import { isCurrentlyReschedulable, isPausedByBudget } from '../../state/pods/pods.ts'
import { workloadOf } from '../../state/pods/workloads.ts'
import { workloadsOf } from '../../node/evidence/launched-for.ts'
import { daemonInputs } from './daemon-inputs.ts'
import { LastDaemonPods } from './last-daemon-pods.ts'
import type { PlacedPod } from './eligible-pods.ts'
import { withoutPreempted } from './preempted-pods.ts'
import { nodeStorage, type VolumeCaches, volumeLookups } from './volume-lookups.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Settings } from '../../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: VolumeCaches &
    Pick<Caches, 'daemonSets' | 'limitRanges' | 'namespaces' | 'podDisruptionBudgets'> &
    Parameters<typeof servesDevices>[0]
  readonly state: Pick<
    ClusterState,
    'attachLimits' | 'isWellFormed' | 'nominations' | 'parsed' | 'plans' | 'pods' | 'podsOn' | 'taintsOfCloud'
  >
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Pick<Settings, 'compatibility' | 'initializationTimeoutMs'>
}

export class ClusterInput {
  readonly #deps: Dependencies
  readonly #lastDaemonPods: LastDaemonPods
  #topologyNodes:
    | { readonly of: readonly StateNode[]; readonly nodes: ReadonlyMap<string, TopologyNode> }
    | undefined

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#lastDaemonPods = new LastDaemonPods(deps.caches, deps.state)
  }

  volumeLookups(): VolumeLookups {
    return volumeLookups(this.#deps.caches)
  }

  /**
   * One instance that stays.
   * @param left the pods that will be there when others have gone; all that are there unless given.
   */
  node(stateNode: StateNode, lookups: VolumeLookups, left?: readonly Pod[]): NodeInput {
    return nodeInputOf(this.#deps, stateNode, lookups, left)
  }

  /** The pods that stay, by node where pods of lower priority than the groups were preempted and have not gone. */
  withoutPreempted(groups: readonly PodGroupInput[]): ReadonlyMap<string, readonly Pod[]> {
    return withoutPreempted(this.#deps.state, groups, this.#deps.clock.now())
  }

  /** By pod UID the instance that an earlier decision launched, or kept, for the pod. */
  planned(staying: readonly StateNode[], pending: readonly Pod[]): ReadonlyMap<string, string> {
    return plannedNodes(this.#deps, staying, pending)
  }

  /**
   * The pods that need a place because their node goes. Where PDBs hold up a drain, what they do not let go now is
   * left out: room for it would stay empty, be taken away, and be bought once more.
   */
  leavingPods(stateNodes: readonly StateNode[]): readonly PlacedPod[] {
    return podsOfLeavingNodes(this.#deps, stateNodes)
  }

  /** One pod per DaemonSet. */
  daemons(): readonly DaemonInput[] {
    const { caches, state } = this.#deps
    return daemonInputs(caches, state, this.#lastDaemonPods)
  }

  /**
   * Where the pods of the cluster are, as far as rules about other pods need it.
   * @param all the instances, of which these stay; the same list as long as no instance has changed.
   */
  topology(staying: readonly StateNode[], all: readonly StateNode[]): TopologyInput {
    const { caches, state } = this.#deps
    // What Nodes there are, and which of their instances stay, changes with the instances only.
    if (this.#topologyNodes?.of !== all)
      this.#topologyNodes = { of: all, nodes: topologyNodes(caches.nodes.list(), staying) }
    return {
      pods: [...state.pods.bound(), ...state.nominations.allArriving()],
      nodes: this.#topologyNodes.nodes,
      namespaces: new Map(
        caches.namespaces.list().map(({ metadata }) => [metadata.name, metadata.labels ?? {}]),
      ),
    }
  }
}

/** Of instances those whose pods need another place; the list is the same as long as no instance has changed. */
export const leavingAmong = perObject((all: readonly StateNode[]): readonly StateNode[] =>
  all.filter(({ isMarkedForDeletion, node }) => isMarkedForDeletion && node !== undefined),
)

/** Those that have registered and do not take pods yet. */
const startingAmong = perObject((all: readonly StateNode[]): readonly StateNode[] =>
  all.filter(({ isRegistered, isInitialized }) => isRegistered && !isInitialized),
)

function plannedNodes(
  { clock, settings, state }: Dependencies,
  nodes: readonly StateNode[],
  pending: readonly Pod[],
): ReadonlyMap<string, string> {
  const planned = new Map<string, string>()
  const plans = [...state.plans.entries()]
  if (plans.length > 0) {
    const names = { claim: new Map<string, string>(), node: new Map<string, string>() }
    for (const { name, claim, node } of nodes) {
      if (claim !== undefined) names.claim.set(claim.metadata.name, name)
      if (node !== undefined) names.node.set(node.metadata.name, name)
    }
    for (const [uid, { target }] of plans) {
      const name = names[target.kind].get(target.name)
      if (name !== undefined) planned.set(uid, name)
    }
  }
  const doubtful = startingAmong(nodes).filter((node) =>
    isInitializationDoubtful(node, settings, clock.now()),
  )
  if (doubtful.length > 0) stayWithTheirNodes(doubtful, pending, planned)
  return planned
}

/** Pods for which a node was launched stay with it where nothing else is planned for them. */
function stayWithTheirNodes(
  nodes: readonly StateNode[],
  pending: readonly Pod[],
  planned: Map<string, string>,
): void {
  const unplanned = Map.groupBy(
    pending.filter(({ metadata: { uid = '' } }) => !planned.has(uid)),
    workloadOf,
  )
  for (const { name, claim } of nodes) {
    if (claim === undefined) continue
    for (const [workload, count] of workloadsOf(claim))
      for (const { metadata } of unplanned.get(workload)?.splice(0, count) ?? [])
        planned.set(metadata.uid ?? '', name)
  }
}

/** An input with what it was made of. */
interface KnownInput {
  readonly use: NodeUse
  readonly csiNode: CsiNode | undefined
  /** Less what is attached. */
  readonly bare: NodeInput
  /** As it is as long as nothing that has volumes runs there. */
  readonly input: NodeInput
}

/** Most instances are as they were the last time. */
const inputs = new WeakMap<StateNode, KnownInput>()

function nodeInputOf(
  deps: Dependencies,
  state: StateNode,
  lookups: VolumeLookups,
  left: readonly Pod[] | undefined,
): NodeInput {
  const { pods, nominations, parsed, attachLimits, taintsOfCloud } = deps.state
  if (state.node === undefined)
    return nodeInput(
      state,
      useOf([]),
      withLimits(attachLimits.expectedOf(typeOf(state))),
      parsed,
      taintsOfCloud,
    )
  const { name } = state.node.metadata
  const arriving = nominations.arrivingAt(name)
  const use =
    arriving.length > 0
      ? useWith(left ?? deps.state.podsOn(name).filter((pod) => pods.isWellFormed(pod)), arriving)
      : left === undefined
        ? pods.useOf(name)
        : useOf(left)
  const csiNode = deps.caches.csiNodes.get({ name })
  let known = inputs.get(state)
  if (known?.use !== use || known.csiNode !== csiNode) {
    const bare = known?.use === use ? known.bare : nodeInput(state, use, {}, parsed, taintsOfCloud)
    known = { use, csiNode, bare, input: withStorage(bare, nodeStorage(csiNode, [], lookups)) }
    inputs.set(state, known)
  }
  // Who compares inputs sees at once that the node is as it was.
  if (state.isInitialized && use.podsWithVolumes.length === 0) return known.input
  const expected = state.isInitialized ? {} : attachLimits.expectedOf(typeOf(state))
  const input = withStorage(known.bare, nodeStorage(csiNode, use.podsWithVolumes, lookups, expected))
  const isDoubtful = isInitializationDoubtful(state, deps.settings, deps.clock.now())
  return isDoubtful ? { ...input, takesOnlyPlanned: true } : input
}

const typeOf = (state: StateNode): string => labelsOf(state)[labels.instanceType] ?? ''

const isEmpty = (fields: object): boolean => Object.keys(fields).length === 0

function withStorage(input: NodeInput, storage: NodeStorage): NodeInput {
  return isEmpty(storage) ? input : { ...input, ...storage }
}

function withLimits(volumeLimits: Readonly<Record<string, number>>): NodeStorage {
  return isEmpty(volumeLimits) ? {} : { volumeLimits }
}

function podsOfLeavingNodes(deps: Dependencies, nodes: readonly StateNode[]): readonly PlacedPod[] {
  const { caches, clock, settings, state } = deps
  const budgets = caches.podDisruptionBudgets.list()
  const now = clock.now()
  return leavingAmong(nodes).flatMap((stateNode) => {
    const isStuck = settings.compatibility !== 'karpenter' && isHeldUp(stateNode, now)
    return state
      .podsOn(stateNode.node?.metadata.name ?? '')
      .filter((pod) => state.isWellFormed(pod) && isCurrentlyReschedulable(pod, budgets, now))
      .filter((pod) => !isStuck || !isPausedByBudget(pod, budgets, now))
      .map((pod): PlacedPod => ({ pod, origin: 'deleting' }))
  })
}

const asCandidate = perObject((node: Node) => topologyNode(node, true))
const asOther = perObject((node: Node) => topologyNode(node, false))

function topologyNode({ metadata, spec }: Node, isCandidate: boolean): TopologyNode {
  const { labels: own = {}, name } = metadata
  return { hostname: own[labels.hostname] ?? name, labels: own, taints: spec?.taints ?? [], isCandidate }
}

function topologyNodes(
  all: readonly Node[],
  staying: readonly StateNode[],
): ReadonlyMap<string, TopologyNode> {
  const candidates = new Set(staying.map(({ node }) => node?.metadata.name))
  const nodes = new Map<string, TopologyNode>()
  for (const node of all) {
    const { name } = node.metadata
    nodes.set(name, candidates.has(name) ? asCandidate(node) : asOther(node))
  }
  return nodes
}
