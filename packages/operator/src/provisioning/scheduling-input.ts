/** Gathers what the engine needs for one decision. */
import {
  conditionOf,
  type DaemonSet,
  type InstanceType,
  isConditionTrue,
  labels,
  type NodePool,
  type Pod,
  parseResources,
  type Resources,
  wellKnownLabels,
} from '@tenon/api'
import {
  accumulate,
  type DaemonInput,
  type NodeInput,
  type PoolInput,
  type SchedulingInput,
  type SchedulingPolicy,
  shapeProblems,
  type TopologyInput,
  type VolumeLookups,
  withRequestsFromLimits,
} from '@tenon/engine'
import { type CloudProvider, isProviderError } from '@tenon/provider'
import { type Clock, inSlices, type Logger, type Turns } from '@tenon/runtime'
import { isExpectedFailure } from '../cloud/expected-failures.ts'
import { type Caches, indexes } from '../cluster/caches.ts'
import { isHeldUp } from '../cluster/nodes/departures.ts'
import { isInitializationDoubtful } from '../cluster/nodes/initialization-time.ts'
import {
  capacityOf,
  labelsOf,
  nodeInput,
  type NodeStorage,
  type StateNode,
} from '../cluster/nodes/state-node.ts'
import { type NodeUse, useOf } from '../cluster/pods/pod-index.ts'
import { validatePool } from '../cluster/nodepools/pool-problems.ts'
import { workloadOf } from '../cluster/pods/workloads.ts'
import { workloadsOf } from '../node/evidence/launched-for.ts'
import { isCurrentlyReschedulable, isPausedByBudget } from '../cluster/pods/pods.ts'
import { canonicalPool } from '../decider/canonical-keys.ts'
import { nodeDefaults } from './node-defaults.ts'
import { eligiblePods, type IgnoredPod, type LeavingPod, type RefusedPod } from './eligible-pods.ts'
import { sliceMs } from '../decider/slice.ts'
import { nodeStorage, volumeLookups } from './volume-lookups.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { CapacityLearning } from '../cloud/corrected-provider.ts'
import type { PlacementGate } from '../placement/gate.ts'
import type { Settings } from '../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly learning?: CapacityLearning
  readonly placementGate: Pick<PlacementGate, 'improvementFor'>
  readonly clock: Clock
  readonly turns: Turns
  readonly logger: Logger
  readonly settings: Settings
}

const maxInstanceTypes = 600

/** The engine's input with what the engine needs not know. */
export interface GatheredInput extends SchedulingInput {
  readonly stateNodes: ReadonlyMap<string, StateNode>
  /** Pending pods that are left out of this round. */
  readonly ignored: readonly IgnoredPod[]
  /** Pods that fail without being decided about. */
  readonly refused: readonly RefusedPod[]
  /** Whether any NodePool may launch at all. */
  readonly hasEligiblePool: boolean
  /** Eligible pools for which the provider lists no types. */
  readonly poolsWithoutListing: readonly NodePool[]
}

type Listing = Pick<PoolInput, 'nodePool' | 'instanceTypes' | 'defaults'>

/** Gathers inputs. */
export class SchedulingInputs {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Pods to place, with the instances that stay and the pools that may launch. Without pods nothing
   * else is gathered.
   */
  forPending(signal: AbortSignal): Promise<GatheredInput> {
    return gatherSchedulingInput(this.#deps, signal)
  }

  /**
   * The same for a question about removing some of the instances: their pods are among those to place, and they
   * are among the nodes.
   * @param refusing names of instances that are not to receive pods of candidates.
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
  const { caches, clock, state, turns } = deps
  const slicing = { clock, turns, sliceMs }
  const hasPods = state.pods.waitingCount > 0 || state.stateNodes().some(isLeaving)
  const eligible = hasPods ? eligiblePools(deps) : []
  // The provider is asked before anything is read, so that what is read is of one moment.
  const listed = await Promise.all(eligible.map((pool) => listTypes(deps, pool, signal)))
  const listings = listed.filter((listing) => listing !== undefined)
  if (hasPods) {
    // Most of the work there is for nodes nobody has asked about: done before the moment that counts.
    const names = caches.nodes.list().map((node) => node.metadata.name)
    await inSlices(state.pods.readUses(names), slicing)
  }
  // What is read from here on is in this decision; all of it is read before anything else can happen.
  state.pods.decided()
  return await inSlices(gathering(deps, hasPods, listings), slicing)
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
  const { caches, clock, state, turns } = deps
  const slicing = { clock, turns, sliceMs }
  const listed = await Promise.all(
    eligiblePools(deps).map((pool) => listTypes(deps, pool, signal, expectedTypes)),
  )
  const listings = listed.filter((listing) => listing !== undefined)
  await inSlices(state.pods.readUses(caches.nodes.list().map((node) => node.metadata.name)), slicing)
  const moving = removable.flatMap(({ pods }) =>
    pods.map(
      (pod): LeavingPod => ({ pod, origin: pod.status?.phase === 'Pending' ? 'starting' : 'candidate' }),
    ),
  )
  const { policy, nodes, ...input } = await inSlices(gathering(deps, true, listings, moving), slicing)
  const { improvement: _, reservations, ...rules } = policy
  return {
    ...input,
    nodes: nodes.map((node) => (refusing.has(node.name) ? { ...node, refusesCandidatePods: true } : node)),
    policy: {
      ...rules,
      simulation: 'disruption',
      ...(reservations && { reservations: { ...reservations, mode: 'Fallback' } }),
    },
  }
}

/** Reads everything in its first step; what becomes of each pod is worked out in those after it. */
function* gathering(
  deps: Dependencies,
  hasPods: boolean,
  listings: readonly Listing[],
  moving: readonly LeavingPod[] = [],
): Generator<undefined, GatheredInput, undefined> {
  const { caches, state } = deps
  const lookups = volumeLookups(caches)
  const stateNodes = hasPods ? state.stateNodes() : []
  const staying = stateNodes.filter(
    (stateNode) => !stateNode.isMarkedForDeletion && state.unreadableNodeText(stateNode) === undefined,
  )
  const pending = hasPods ? state.pods.waiting() : []
  const leaving = [...podsOfLeavingNodes(deps, stateNodes), ...moving]
  const input = {
    nodes: staying.map((node) => nodeInputOf(deps, node, lookups)),
    pools: listings.flatMap(({ nodePool, ...listing }) =>
      listing.instanceTypes.length === 0
        ? []
        : [{ nodePool, ...listing, usage: poolUsage(nodePool.metadata.name, stateNodes, state.parsed) }],
    ),
    daemons: daemonInputs(deps),
    topology: topologyInput(deps, staying),
    policy: schedulingPolicy(deps, pending.length),
    planned: plannedNodes(deps, staying, pending),
    attachLimits: state.attachLimits.current(),
    stateNodes: new Map(staying.map((node) => [node.name, node])),
    hasEligiblePool: listings.length > 0,
    poolsWithoutListing: listings
      .filter(({ instanceTypes }) => instanceTypes.length === 0)
      .map(({ nodePool }) => nodePool),
  }
  yield
  return { ...input, ...(yield* eligiblePods(deps, pending, leaving, lookups)) }
}

function isLeaving({ isMarkedForDeletion, node }: StateNode): boolean {
  return isMarkedForDeletion && node !== undefined
}

/** By pod UID the instance that an earlier decision launched, or kept, for the pod. */
function plannedNodes(
  { clock, settings, state }: Dependencies,
  nodes: readonly StateNode[],
  pending: readonly Pod[],
): ReadonlyMap<string, string> {
  const names = { claim: new Map<string, string>(), node: new Map<string, string>() }
  for (const { name, claim, node } of nodes) {
    if (claim !== undefined) names.claim.set(claim.metadata.name, name)
    if (node !== undefined) names.node.set(node.metadata.name, name)
  }
  const planned = new Map<string, string>()
  for (const [uid, { target }] of state.plans.entries()) {
    const name = names[target.kind].get(target.name)
    if (name !== undefined) planned.set(uid, name)
  }
  const doubtful = nodes.filter((node) => isInitializationDoubtful(node, settings, clock.now()))
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

function schedulingPolicy(
  { settings, provider, placementGate }: Dependencies,
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

/** Inputs less what is attached, with what they were made of: most instances are as they were the last time. */
const inputs = new WeakMap<StateNode, { readonly use: NodeUse; readonly input: NodeInput }>()

function nodeInputOf(deps: Dependencies, state: StateNode, lookups: VolumeLookups): NodeInput {
  const { pods, parsed, attachLimits } = deps.state
  const instanceType = labelsOf(state)[labels.instanceType] ?? ''
  const expected = state.isInitialized ? {} : attachLimits.expectedOf(instanceType)
  if (state.node === undefined) return nodeInput(state, useOf([]), withLimits(expected), parsed)
  const { name } = state.node.metadata
  const use = pods.useOf(name)
  let known = inputs.get(state)
  if (known?.use !== use) {
    known = { use, input: nodeInput(state, use, {}, parsed) }
    inputs.set(state, known)
  }
  const isDoubtful = isInitializationDoubtful(state, deps.settings, deps.clock.now())
  return {
    ...known.input,
    ...nodeStorage(deps.caches, name, use.podsWithVolumes, lookups, expected),
    ...(isDoubtful && { takesOnlyPlanned: true }),
  }
}

function withLimits(volumeLimits: Readonly<Record<string, number>>): NodeStorage {
  return Object.keys(volumeLimits).length === 0 ? {} : { volumeLimits }
}

/**
 * The pods that need a place because their node goes. Where PDBs hold up a drain, what they do not let go now is
 * left out: room for it would stay empty, be taken away, and be bought once more.
 */
function podsOfLeavingNodes(deps: Dependencies, nodes: readonly StateNode[]): readonly LeavingPod[] {
  const { caches, clock, settings, state } = deps
  const budgets = caches.podDisruptionBudgets.list()
  const now = clock.now()
  return nodes.filter(isLeaving).flatMap((stateNode) => {
    const isStuck = settings.compatibility !== 'karpenter' && isHeldUp(stateNode, now)
    return state
      .podsOn(stateNode.node?.metadata.name ?? '')
      .filter((pod) => state.isWellFormed(pod) && isCurrentlyReschedulable(pod, budgets, now))
      .filter((pod) => !isStuck || !isPausedByBudget(pod, budgets, now))
      .map((pod): LeavingPod => ({ pod, origin: 'deleting' }))
  })
}

/** Pools that may launch: managed, dynamic, ready, valid and staying (scheduling.md 3), not stuck and not paused. */
function eligiblePools(deps: Dependencies): readonly NodePool[] {
  const stuck = deps.state.stuckPools()
  return deps.caches.nodePools.list().filter((pool) => {
    const ref = pool.spec.template.spec.nodeClassRef
    return (
      deps.provider.nodeClasses.some((type) => type.group === ref.group && type.kind === ref.kind) &&
      pool.spec.replicas === undefined &&
      !stuck.has(pool.metadata.name) &&
      deps.state.readinessPauses.leftMs(pool.metadata.name) === 0 &&
      isConditionTrue(pool, 'Ready') &&
      validatePool(pool, deps.provider).length === 0 &&
      pool.metadata.deletionTimestamp === undefined
    )
  })
}

/**
 * A pool with the types its provider lists; none when it cannot list them now. Undefined while overlays
 * are not evaluated for the pool: then nothing is known of its types.
 */
async function listTypes(
  deps: Dependencies,
  nodePool: NodePool,
  signal: AbortSignal,
  typesOf: TypeSource = offeredTypes,
): Promise<Listing | undefined> {
  const { provider, logger } = deps
  try {
    const instanceTypes = await typesOf(deps, nodePool, signal)
    const defaults = nodeDefaults(provider, nodePool)
    return {
      nodePool: canonicalPool(nodePool, provider.labelAliases),
      instanceTypes,
      ...(defaults && { defaults }),
    }
  } catch (error) {
    if (signal.aborted) throw error
    const details = { NodePool: { name: nodePool.metadata.name }, error }
    if (isProviderError(error, 'unevaluatedNodePool')) {
      logger.debug('skipping nodepool, node overlays are not evaluated for it', details)
      return undefined
    }
    if (isExpectedFailure(error)) logger.warn('skipping nodepool, listing its instance types failed', details)
    else logger.error('skipping nodepool, listing its instance types failed', details)
    return { nodePool, instanceTypes: [] }
  }
}

/** The types of a pool as they can be bought. */
type TypeSource = (
  deps: Dependencies,
  pool: NodePool,
  signal: AbortSignal,
) => Promise<readonly InstanceType[]>

const offeredTypes: TypeSource = async ({ provider }, pool, signal) =>
  await provider.getInstanceTypes(pool, signal)

/** With no more than is to be expected of each: a pod that runs must not move to where it has no room. */
const expectedTypes: TypeSource = async (deps, pool, signal) => {
  const { learning } = deps
  const types = await offeredTypes(deps, pool, signal)
  if (learning?.capacity.knowsInstances !== true) return types
  return learning.capacity.expected(pool, types, await learning.provider.getInstanceTypes(pool, signal))
}

/** By list of instances what those of each pool have: the list is the same as long as no instance has changed. */
const usages = new WeakMap<readonly StateNode[], ReadonlyMap<string, Resources>>()

/**
 * Capacity of a pool's instances that are not going away, `nodes` among it (cluster-state.md 10).
 * @param nodes never changed after it was given.
 */
export function poolUsage(
  pool: string,
  nodes: readonly StateNode[],
  parse: typeof parseResources = parseResources,
): Resources {
  let known = usages.get(nodes)
  if (known === undefined) {
    known = usageByPool(nodes, parse)
    usages.set(nodes, known)
  }
  return known.get(pool) ?? {}
}

function usageByPool(
  nodes: readonly StateNode[],
  parse: typeof parseResources,
): ReadonlyMap<string, Resources> {
  const byPool = new Map<string, Record<string, number>>()
  for (const node of nodes) {
    if (node.isMarkedForDeletion) continue
    const pool = labelsOf(node)['karpenter.sh/nodepool'] ?? ''
    const usage = byPool.get(pool) ?? {}
    byPool.set(pool, usage)
    accumulate(usage, capacityOf(node, parse))
  }
  return byPool
}

/** Where the pods of the cluster are, as far as rules about other pods need it. */
function topologyInput({ caches, state }: Dependencies, staying: readonly StateNode[]): TopologyInput {
  const candidates = new Set(staying.map(({ node }) => node?.metadata.name))
  return {
    pods: state.pods.bound(),
    nodes: new Map(
      caches.nodes.list().map((node) => [
        node.metadata.name,
        {
          hostname: node.metadata.labels?.['kubernetes.io/hostname'] ?? node.metadata.name,
          labels: node.metadata.labels ?? {},
          taints: node.spec?.taints ?? [],
          isCandidate: candidates.has(node.metadata.name),
        },
      ]),
    ),
    namespaces: new Map(
      caches.namespaces.list().map(({ metadata }) => [metadata.name, metadata.labels ?? {}]),
    ),
  }
}

/** One pod per DaemonSet: its newest, else what its template would make. */
function daemonInputs(deps: Dependencies): readonly DaemonInput[] {
  const { caches, settings, state } = deps
  return caches.daemonSets
    .list()
    .filter((daemonSet) => daemonSet.metadata.deletionTimestamp === undefined)
    .flatMap((daemonSet): readonly DaemonInput[] => {
      const { metadata, spec } = daemonSet.spec.template
      const name = `${daemonSet.metadata.namespace ?? ''}/${daemonSet.metadata.name}`
      if (shapeProblems({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec }) !== undefined) return []
      const newest = newestOf(
        caches.pods.byIndex(indexes.byOwner, daemonSet.metadata.uid ?? ''),
        (pod) => isControlledBy(pod, daemonSet) && state.isWellFormed(pod),
      )
      const base = newest?.spec ?? withRequestsFromLimits(spec)
      if (settings.ignoreDraRequests && (base.resourceClaims ?? []).length > 0) return []
      const { nodeAffinity, ...otherAffinity } = base.affinity ?? {}
      const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
      const ownPin = newest === undefined ? nodeAffinity : undefined
      const affinity =
        required === undefined ? ownPin : { requiredDuringSchedulingIgnoredDuringExecution: required }
      const { nodeName: _, ...unbound } = base
      return [
        {
          name,
          namespace: daemonSet.metadata.namespace ?? '',
          labels: metadata?.labels ?? {},
          spec: { ...unbound, affinity: { ...otherAffinity, ...(affinity && { nodeAffinity: affinity }) } },
        },
      ]
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** The first of those that were created last. */
function newestOf(pods: readonly Pod[], isOne: (pod: Pod) => boolean): Pod | undefined {
  let newest: Pod | undefined
  for (const pod of pods) {
    // Asked last, as it takes the longest and there are as many as nodes.
    if (newest !== undefined && createdOf(pod) <= createdOf(newest)) continue
    if (isOne(pod)) newest = pod
  }
  return newest
}

const createdOf = ({ metadata }: Pod): string => metadata.creationTimestamp ?? ''

function isControlledBy({ metadata }: Pod, { metadata: { uid } }: DaemonSet): boolean {
  return (metadata.ownerReferences ?? []).some((owner) => owner.controller === true && owner.uid === uid)
}

/** Why no pool is eligible, for the log: the pools that cannot launch and what they wait for. */
export function unreadyPools({ caches, provider, state }: Dependencies): readonly string[] {
  const stuck = state.stuckPools()
  return caches.nodePools
    .list()
    .flatMap((pool) => {
      const { name } = pool.metadata
      if (stuck.has(name)) return [`${name}: a NodeClaim of it cannot be launched`]
      const [problem] = state.isManaged(pool) ? validatePool(pool, provider) : []
      if (problem !== undefined) return [`${name}: ${problem}`]
      if (state.readinessPauses.leftMs(name) > 0) return [`${name}: its last nodes did not take pods`]
      if (isConditionTrue(pool, 'Ready')) return []
      return [`${name}: ${conditionOf(pool, 'Ready')?.message ?? 'not reconciled yet'}`]
    })
    .toSorted()
}
