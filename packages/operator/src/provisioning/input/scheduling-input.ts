/** Gathers what the engine needs for one decision. */
import { type NodePool, type Pod, wellKnownLabels } from '@tenon/api'
import type { PoolInput, SchedulingInput, SchedulingPolicy } from '@tenon/engine'
import { inSlices, perObject, type Slicing } from '@tenon/runtime'
import { poolUsage } from '../../state/nodepools/pool-usage.ts'
import type { StateNode } from '../../state/nodes/state-node.ts'
import { unreadableText } from '../../state/readable.ts'
import { type ClusterInput, leavingAmong } from './cluster-input.ts'
import type { IgnoredPod, PlacedPod, PodEligibility, RefusedPod } from './eligible-pods.ts'
import type { EligiblePools, Listing, UnreadyPool } from './eligible-pools.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { CloudProvider } from '@tenon/provider'
import type { PlacementGate } from '../../placement/gate.ts'
import type { Settings } from '../../settings.ts'

interface Dependencies extends SchedulingPolicyParts {
  readonly state: Pick<
    ClusterState,
    'attachLimits' | 'limitReservations' | 'parsed' | 'pods' | 'stateNodes' | 'unreadableNodeText'
  >
  readonly cluster: ClusterInput
  readonly pools: EligiblePools
  readonly pods: PodEligibility
  readonly slicing: Slicing
}

/** The engine's input, with what the operator needs beside it. */
export interface GatheredInput extends SchedulingInput {
  readonly stateNodes: ReadonlyMap<string, StateNode>
  /** Pending pods that are left out of the decision. */
  readonly ignored: readonly IgnoredPod[]
  /** Pods that no node can help. */
  readonly refused: readonly RefusedPod[]
  /** Whether any NodePool may launch at all. */
  readonly hasEligiblePool: boolean
  /** Eligible NodePools whose types the provider cannot list now. */
  readonly poolsWithoutListing: readonly NodePool[]
}

export class SchedulingInputs {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * The pending pods, with the instances that stay and the NodePools that may launch. Without pods nothing else is
   * gathered.
   */
  forPending(signal: AbortSignal): Promise<GatheredInput> {
    return gatherSchedulingInput(this.#deps, signal)
  }

  /** NodePools that launch nothing now. */
  unreadyPools(): readonly UnreadyPool[] {
    return this.#deps.pools.unready()
  }

  /** A pod as decisions read it. */
  readPod(pod: Pod): Pod {
    return this.#deps.pods.read(pod)
  }

  /** A NodePool as decisions read it; undefined while nothing is known of its types. */
  async readPool(pool: NodePool, signal: AbortSignal): Promise<PoolInput | undefined> {
    const { pools, state } = this.#deps
    const listing = await pools.offered(pool, signal)
    return listing && { ...listing, ...limitsOf(state, pool, state.stateNodes()) }
  }

  /**
   * The input of a question about removing instances: these are among the nodes, and their pods among the pods.
   * @param refusing names of instances that may not receive pods of candidates.
   */
  forRemoval(
    removable: readonly RemovableNode[],
    refusing: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<GatheredInput> {
    return gatherRemovalInput(this.#deps, removable, refusing, signal)
  }
}

async function gatherSchedulingInput(deps: Dependencies, signal: AbortSignal): Promise<GatheredInput> {
  const { pools, slicing, state } = deps
  const hasPods =
    state.pods.waitingCount > 0 ||
    deps.pods.forRoom().length > 0 ||
    leavingAmong(state.stateNodes()).length > 0
  const eligible = hasPods ? pools.list() : []
  // The provider is asked first, so that everything else is read at one moment.
  const listed = await Promise.all(eligible.map((pool) => pools.offered(pool, signal)))
  const listings = listed.filter((listing) => listing !== undefined)
  if (hasPods) {
    // Most of the work, done before that moment.
    await inSlices(state.pods.readUses(state.stateNodes()), slicing)
  }
  // From here on everything is read without a pause, so that it is consistent.
  state.pods.decided()
  const offeringsOnTrial = pools.offeringsOnTrial()
  const input = await inSlices(gathering(deps, hasPods, listings), slicing)
  return { ...input, offeringsOnTrial }
}

/** An instance that may be removed, with the pods that would have to move. */
export interface RemovableNode {
  readonly name: string
  readonly pods: readonly Pod[]
}

async function gatherRemovalInput(
  deps: Dependencies,
  removable: readonly RemovableNode[],
  refusing: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<GatheredInput> {
  const { pools, slicing, state } = deps
  const listed = await Promise.all(pools.list().map((pool) => pools.expected(pool, signal)))
  const listings = listed.filter((listing) => listing !== undefined)
  await inSlices(state.pods.readUses(state.stateNodes()), slicing)
  const moving = removable.flatMap(({ pods }) =>
    pods.map(
      (pod): PlacedPod => ({ pod, origin: pod.status?.phase === 'Pending' ? 'starting' : 'candidate' }),
    ),
  )
  const { policy, nodes, ...input } = await inSlices(gathering(deps, true, listings, moving), slicing)
  const { improvement: _, reservations, ...rules } = policy
  return {
    ...input,
    nodes:
      refusing.size === 0
        ? nodes
        : nodes.map((node) => (refusing.has(node.name) ? { ...node, refusesCandidatePods: true } : node)),
    policy: {
      ...rules,
      simulation: 'disruption',
      ...(reservations && { reservations: { ...reservations, mode: 'Fallback' } }),
    },
  }
}

/** Usage of a NodePool's limits, with claims on their way. */
function limitsOf(
  state: Dependencies['state'],
  { metadata: { name } }: NodePool,
  stateNodes: readonly StateNode[],
): Pick<PoolInput, 'usage' | 'reserved'> {
  return {
    usage: poolUsage(name, stateNodes, state.parsed),
    reserved: state.limitReservations.of(name),
  }
}

/** Derived from the list of instances; memoized by it. */
const sortedOut = perObject((all: readonly StateNode[]) => {
  const staying = all.filter(
    ({ isMarkedForDeletion, node }) =>
      !isMarkedForDeletion && (node === undefined || unreadableText(node) === undefined),
  )
  return { staying, withoutNode: staying.filter(({ node }) => node === undefined) }
})

/** Instances that stay and may receive pods. */
function stayingAmong(
  all: readonly StateNode[],
  state: Pick<ClusterState, 'unreadableNodeText'>,
): readonly StateNode[] {
  const { staying, withoutNode } = sortedOut(all)
  // An unreadable Node may not say which NodePool it belongs to.
  const unreadable = withoutNode.filter((stateNode) => state.unreadableNodeText(stateNode) !== undefined)
  return unreadable.length === 0 ? staying : staying.filter((stateNode) => !unreadable.includes(stateNode))
}

const byName = perObject(
  (stateNodes: readonly StateNode[]): ReadonlyMap<string, StateNode> =>
    new Map(stateNodes.map((stateNode) => [stateNode.name, stateNode])),
)

/** Reads everything in its first step, and sorts the pods in the next ones. */
function* gathering(
  deps: Dependencies,
  hasPods: boolean,
  listings: readonly Listing[],
  moving: readonly PlacedPod[] = [],
): Generator<undefined, GatheredInput, undefined> {
  const { cluster, pods, state } = deps
  const lookups = cluster.volumeLookups()
  const stateNodes = hasPods ? state.stateNodes() : []
  const staying = stayingAmong(stateNodes, state)
  const waitingPods = hasPods ? state.pods.waiting() : []
  const { pending, podGroups: pendingGroups, refused, ignored } = pods.grouped(waitingPods)
  const waiting = new Set(pendingGroups.map(({ id }) => id))
  const movingGroups = pods
    .movingGroups(moving.map(({ pod }) => pod))
    // The nodes of a group do not move while members of it wait for theirs.
    .filter(({ id }) => !waiting.has(id))
  const podGroups = [...pendingGroups, ...movingGroups]
  const left = cluster.withoutPreempted(pendingGroups)
  const leaving = [...cluster.leavingPods(stateNodes), ...moving]
  const room = hasPods ? pods.forRoom() : []
  const input = {
    nodes: staying.map((node) => cluster.node(node, lookups, left.get(node.node?.metadata.name ?? ''))),
    pools: listings.flatMap(({ nodePool, ...listing }) =>
      listing.instanceTypes.length === 0
        ? []
        : [{ nodePool, ...listing, ...limitsOf(state, nodePool, stateNodes) }],
    ),
    daemons: cluster.daemons(),
    topology: cluster.topology(staying, stateNodes),
    policy: schedulingPolicy(deps, pending.length),
    planned: pods.withKeptRoom(cluster.planned(staying, pending), staying),
    attachLimits: state.attachLimits.current(),
    stateNodes: byName(staying),
    hasEligiblePool: listings.length > 0,
    poolsWithoutListing: listings
      .filter(({ instanceTypes }) => instanceTypes.length === 0)
      .map(({ nodePool }) => nodePool),
  }
  yield
  const sorted = yield* pods.sorted(pending, [...leaving, ...room], lookups)
  if (podGroups.length + refused.length + ignored.length === 0) return { ...input, ...sorted }
  return {
    ...input,
    ...sorted,
    refused: [...sorted.refused, ...refused],
    ignored: [...sorted.ignored, ...ignored],
    podGroups,
  }
}

interface SchedulingPolicyParts {
  readonly settings: Pick<Settings, 'preferences' | 'minValues' | 'featureGates'>
  readonly provider: Pick<CloudProvider, 'reservationLabel' | 'wellKnownLabels'>
  readonly placementGate: Pick<PlacementGate, 'improvementFor'>
}

const maxInstanceTypes = 600

/** @param waiting number of pods in the decision. */
function schedulingPolicy(
  { placementGate, provider, settings }: SchedulingPolicyParts,
  waiting: number,
): SchedulingPolicy {
  const { reservationLabel: label } = provider
  return {
    preferences: settings.preferences,
    minValues: settings.minValues,
    wellKnownLabels: new Set([...wellKnownLabels, ...provider.wellKnownLabels]),
    maxInstanceTypes,
    ...placementGate.improvementFor(waiting),
    ...(label !== undefined &&
      settings.featureGates.reservedCapacity && { reservations: { label, mode: 'Strict' } }),
  }
}
