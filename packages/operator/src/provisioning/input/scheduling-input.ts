/** Gathers what the engine needs for one decision. */
import { labels, type NodePool, type Pod, resizedRequests, scoredBalance, wellKnownLabels } from '@tenon/api'
import {
  canonicalKey,
  type ClassCapacity,
  type NodeInput,
  type PoolInput,
  type SchedulingInput,
  type SchedulingPolicy,
  type VolumeLookups,
} from '@tenon/engine'
import { inSlices, perObject, type Slicing } from '@tenon/runtime'
import type { Caches } from '../../state/caches.ts'
import { nodeClassOf, poolOf } from '../../state/nodepools/managed-pool.ts'
import { controllerOf } from '../../state/nodepools/node-pool-selection.ts'
import { poolUsage } from '../../state/nodepools/pool-usage.ts'
import { expectedFeatures } from '../../state/nodes/declared-features.ts'
import type { StateNode } from '../../state/nodes/state-node.ts'
import { unreadableText } from '../../state/readable.ts'
import {
  type ClusterSources,
  leavingAmong,
  nodeInputOf,
  plannedNodes,
  podsOfLeavingNodes,
  TopologyNodes,
  volumeLookups,
  withoutPreempted,
} from './cluster-input.ts'
import { daemonInputs, LastDaemonPods } from './daemon-inputs.ts'
import {
  eligiblePods,
  type IgnoredPod,
  type PlacedPod,
  placeholderPods,
  podReader,
  type PodSources,
  type RefusedPod,
  withKeptRoom,
} from './eligible-pods.ts'
import {
  eligiblePools,
  expectedTypes,
  type Listing,
  offeredTypes,
  type PoolSources,
  unreadyPools,
  type UnreadyPool,
} from './eligible-pools.ts'
import { type GroupSources, movingGroups, pendingGroups } from './group-input.ts'
import { PodsElsewhere } from './pods-elsewhere.ts'
import { eligibilityPolicy } from '../../decide/eligibility-policy.ts'
import type { LaunchGuard } from '../../cloud/launch-guard.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { CloudProvider } from '@tenon/provider'
import type { PlacementGate } from '../../placement/gate.ts'
import type { Settings } from '../../settings.ts'

/** What a decision is gathered from. */
type InputSources = ClusterSources &
  GroupSources &
  PodSources &
  PoolSources & {
    readonly caches: Parameters<typeof daemonInputs>[0] & Pick<Caches, 'nodeClasses' | 'nodePools'>
    readonly state: Pick<
      ClusterState,
      'limitReservations' | 'quotas' | 'storageCapacity' | 'unreadableNodeText'
    >
    readonly settings: Pick<Settings, 'preferences' | 'minValues' | 'featureGates' | 'nodePools'>
    readonly provider: Pick<CloudProvider, 'kubeletVersion' | 'reservationLabel'>
    readonly placementGate: Pick<PlacementGate, 'improvementFor' | 'minor' | 'settled'>
    readonly launchGuard: Pick<LaunchGuard, 'onTrial'>
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

/** An instance that may be removed, with the pods that would have to move. */
export interface RemovableNode {
  readonly name: string
  readonly pods: readonly Pod[]
}

export class SchedulingInputs {
  readonly #sources: InputSources
  readonly #lastDaemonPods: LastDaemonPods
  readonly #topologyNodes = new TopologyNodes()

  constructor(sources: InputSources) {
    this.#sources = sources
    this.#lastDaemonPods = new LastDaemonPods(sources.caches, sources.state)
  }

  /**
   * The pending pods, with the instances that stay and the NodePools that may launch. Without pods nothing else is
   * gathered.
   */
  async forPending(signal: AbortSignal): Promise<GatheredInput> {
    const { launchGuard, placementGate, slicing, state } = this.#sources
    const hasPods =
      state.pods.waitingCount > 0 ||
      placeholderPods(state).length > 0 ||
      leavingAmong(state.stateNodes()).length > 0
    const eligible = hasPods ? eligiblePools(this.#sources) : []
    // The provider is asked first, so that everything else is read at one moment.
    const listed = await Promise.all(eligible.map((pool) => offeredTypes(this.#sources, pool, signal)))
    const listings = listed.filter((listing) => listing !== undefined)
    const elsewhere = hasPods ? await this.#podsElsewhere(signal) : undefined
    // Most of the work, done before that moment.
    state.pods.countResized(resizedRequests(placementGate.minor))
    if (hasPods) await inSlices(state.pods.readUses(state.stateNodes()), slicing)
    // From here on everything is read without a pause, so that it is consistent.
    state.pods.decided()
    const offeringsOnTrial = launchGuard.onTrial()
    const input = await inSlices(this.#gathering(hasPods, listings, [], elsewhere), slicing)
    return { ...input, offeringsOnTrial }
  }

  /**
   * The input of a question about removing instances: these are among the nodes, and their pods among the pods.
   * @param refusing names of instances that may not receive pods of candidates.
   */
  async forRemoval(
    removable: readonly RemovableNode[],
    refusing: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<GatheredInput> {
    const { placementGate, slicing, state } = this.#sources
    await placementGate.settled()
    const listed = await Promise.all(
      eligiblePools(this.#sources).map((pool) => expectedTypes(this.#sources, pool, signal)),
    )
    const listings = listed.filter((listing) => listing !== undefined)
    const elsewhere = await this.#podsElsewhere(signal)
    state.pods.countResized(resizedRequests(placementGate.minor))
    await inSlices(state.pods.readUses(state.stateNodes()), slicing)
    const moving = removable.flatMap(({ pods }) =>
      pods.map(
        (pod): PlacedPod => ({ pod, origin: pod.status?.phase === 'Pending' ? 'starting' : 'candidate' }),
      ),
    )
    const { policy, nodes, ...input } = await inSlices(
      this.#gathering(true, listings, moving, elsewhere),
      slicing,
    )
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

  /** NodePools that launch nothing now. */
  unreadyPools(): readonly UnreadyPool[] {
    return unreadyPools(this.#sources)
  }

  /** A well-formed pod as decisions read it. */
  readPod(pod: Pod): Pod {
    return podReader(this.#sources)(pod)
  }

  /** A NodePool as decisions read it; undefined while nothing is known of its types. */
  async readPool(pool: NodePool, signal: AbortSignal): Promise<PoolInput | undefined> {
    const { state } = this.#sources
    const listing = await offeredTypes(this.#sources, pool, signal)
    return (
      listing && {
        ...listing,
        ...limitsOf(state, pool, state.stateNodes()),
        ...driversMissingIn(state, pool, listing),
      }
    )
  }

  /** Undefined if this controller serves all NodePools. */
  async #podsElsewhere(signal: AbortSignal): Promise<PodsElsewhere | undefined> {
    const { settings, slicing, state } = this.#sources
    if (settings.nodePools === undefined) return undefined
    const elsewhere = await PodsElsewhere.read(this.#sources, signal)
    await inSlices(elsewhere.judge(state.pods.waiting()), slicing)
    return elsewhere
  }

  /** Reads everything in its first step, and sorts the pods in the next ones. */
  *#gathering(
    hasPods: boolean,
    listings: readonly Listing[],
    moving: readonly PlacedPod[] = [],
    elsewhere?: PodsElsewhere,
  ): Generator<undefined, GatheredInput, undefined> {
    const sources = this.#sources
    const { caches, clock, state } = sources
    const lookups = { ...volumeLookups(caches), storageCapacity: capacityLookup(sources) }
    const stateNodes = hasPods ? state.stateNodes() : []
    const staying = stayingAmong(stateNodes, state)
    const isHere = (pod: Pod) => elsewhere?.poolOf(pod) === undefined
    const allWaiting = hasPods ? state.pods.waiting() : []
    const waitingPods = elsewhere === undefined ? allWaiting : allWaiting.filter(isHere)
    const {
      pending,
      podGroups: waitingGroups,
      refused,
      ignored: unlisted,
    } = pendingGroups(sources, waitingPods)
    const ignored = [...unlisted, ...podsOfOthers(elsewhere, allWaiting)]
    const waiting = new Set(waitingGroups.map(({ id }) => id))
    const movingPods = moving.map(({ pod }) => pod)
    // The nodes of a group do not move while members of it wait for theirs.
    const groupsThatMove = movingGroups(sources, movingPods).filter(({ id }) => !waiting.has(id))
    const podGroups = [...waitingGroups, ...groupsThatMove]
    const left = withoutPreempted(state, waitingGroups, clock.now())
    const deleting = podsOfLeavingNodes(sources, stateNodes).filter(({ pod }) => isHere(pod))
    const leaving = [...deleting, ...moving]
    const room = hasPods ? placeholderPods(state).filter(({ pod }) => isHere(pod)) : []
    const quotas = hasPods ? state.quotas.inputs() : []
    const featuresOf = (pool: NodePool) => {
      const version = sources.provider.kubeletVersion?.(pool)
      const declaredFeatures = expectedFeatures(pool, nodeClassOf(caches, pool), version, stateNodes)
      return declaredFeatures === undefined ? {} : { declaredFeatures }
    }
    /** A starting kubelet declares its features late; what the pool's nodes declare holds until then. */
    const withFeatures = (node: NodeInput, { claim, isInitialized }: StateNode): NodeInput => {
      if (isInitialized || claim === undefined || node.declaredFeatures !== undefined) return node
      const pool = caches.nodePools.get({ name: poolOf(claim) })
      return pool === undefined ? node : { ...node, ...featuresOf(pool) }
    }
    const input = {
      nodes: staying.map((node) =>
        withFeatures(nodeInputOf(sources, node, lookups, left.get(node.node?.metadata.name ?? '')), node),
      ),
      pools: listings.flatMap(({ nodePool, ...listing }) =>
        listing.instanceTypes.length === 0
          ? []
          : [
              {
                nodePool,
                ...listing,
                ...limitsOf(state, nodePool, stateNodes),
                ...driversMissingIn(state, nodePool, listing),
                ...featuresOf(nodePool),
              },
            ],
      ),
      ...(quotas.length > 0 && { quotas }),
      daemons: daemonInputs(caches, state, this.#lastDaemonPods),
      topology: {
        pods: [...state.pods.bound(), ...state.nominations.allArriving()],
        nodes: this.#topologyNodes.of(caches.nodes, staying, stateNodes),
        namespaces: new Map(
          caches.namespaces.list().map(({ metadata }) => [metadata.name, metadata.labels ?? {}]),
        ),
      },
      policy: schedulingPolicy(sources, pending.length),
      planned: withKeptRoom(state, plannedNodes(sources, staying, pending), staying),
      attachLimits: state.attachLimits.current(),
      stateNodes: byName(staying),
      hasEligiblePool: listings.length > 0,
      poolsWithoutListing: listings
        .filter(({ instanceTypes }) => instanceTypes.length === 0)
        .map(({ nodePool }) => nodePool),
    }
    yield
    const sorted = yield* eligiblePods(sources, pending, [...leaving, ...room], lookups)
    if (podGroups.length + refused.length + ignored.length === 0) return { ...input, ...sorted }
    return {
      ...input,
      ...sorted,
      refused: [...sorted.refused, ...refused],
      ignored: [...sorted.ignored, ...ignored],
      podGroups,
    }
  }
}

/** Usage of a NodePool's limits, with claims on their way. */
function limitsOf(
  state: Pick<ClusterState, 'limitReservations' | 'parsed'>,
  { metadata: { name } }: NodePool,
  stateNodes: readonly StateNode[],
): Pick<PoolInput, 'usage' | 'reserved'> {
  return {
    usage: poolUsage(name, stateNodes, state.parsed),
    reserved: state.limitReservations.of(name),
  }
}

function podsOfOthers(elsewhere: PodsElsewhere | undefined, waiting: readonly Pod[]): readonly IgnoredPod[] {
  if (elsewhere === undefined) return []
  return waiting.flatMap((pod) => {
    const pool = elsewhere.poolOf(pod)
    if (pool === undefined) return []
    const { name } = pool.metadata
    const reason = `NodePool ${name} of controller ${controllerOf(pool) ?? ''} is the first that admits it`
    return [{ pod, reason, isSilent: true }]
  })
}

/** Each class is read once a decision. */
function capacityLookup({
  provider,
  state,
}: Pick<InputSources, 'provider' | 'state'>): NonNullable<VolumeLookups['storageCapacity']> {
  const policy = eligibilityPolicy(provider)
  const isShared = (key: string) => {
    const canonical = canonicalKey(key, policy)
    return canonical !== labels.hostname && policy.wellKnownLabels.has(canonical)
  }
  const known = new Map<string, ClassCapacity | undefined>()
  return (storageClass) => {
    const { name } = storageClass.metadata
    if (!known.has(name)) known.set(name, state.storageCapacity.of(storageClass, isShared))
    return known.get(name)
  }
}

function driversMissingIn(
  { volumeDrivers }: Pick<ClusterState, 'volumeDrivers'>,
  { metadata: { name } }: NodePool,
  { instanceTypes }: Pick<PoolInput, 'instanceTypes'>,
): Pick<PoolInput, 'missingDrivers'> {
  const missingDrivers = volumeDrivers.missingIn(name, instanceTypes)
  return missingDrivers === undefined ? {} : { missingDrivers }
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

const maxInstanceTypes = 600

/** @param waiting number of pods in the decision. */
function schedulingPolicy(
  { placementGate, provider, settings }: Pick<InputSources, 'placementGate' | 'provider' | 'settings'>,
  waiting: number,
): SchedulingPolicy {
  const { reservationLabel: label } = provider
  return {
    preferences: settings.preferences,
    minValues: settings.minValues,
    wellKnownLabels: new Set([...wellKnownLabels, ...provider.wellKnownLabels]),
    maxInstanceTypes,
    ...placementGate.improvementFor(waiting),
    balance: scoredBalance(placementGate.minor),
    ...(settings.fitScoring && { fitScoring: settings.fitScoring }),
    resizedRequests: resizedRequests(placementGate.minor),
    ...(label !== undefined &&
      settings.featureGates.reservedCapacity && { reservations: { label, mode: 'Strict' } }),
  }
}
