/** Joins Nodes and NodeClaims by provider ID, and keeps what no object says (cluster-state.md). */
import {
  conditionOf,
  karpenterKinds,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  type ObjectMeta,
  parseResources,
  type Pod,
  type ResourceList,
  type Resources,
  type Taint,
  matchesSelector,
} from '@tenon/api'
import type { CloudProvider } from '@tenon/provider'
import { type Clock, Listeners } from '@tenon/runtime'
import { type Caches, indexes } from './caches.ts'
import { isUnreadable, isWhole, unreadableText } from './readable.ts'
import { type NodePoolSelection, type Policy, policyOf, type Settings } from '../settings.ts'
import { type PoolWishes, poolWishes } from './nodepools/pool-annotations.ts'
import { AttachLimits } from './nodes/attach-limits.ts'
import { StorageCapacity } from './storage-capacity.ts'
import { VolumeDrivers } from './nodes/volume-drivers.ts'
import {
  ConsolidationState,
  keyOfNode,
  RecentlyFilledNodes,
  type StateNodeView,
} from './nodes/consolidation-state.ts'
import { StateNodes } from './nodes/state-nodes.ts'
import { ClaimRefusals } from './pods/claim-refusals.ts'
import { BufferPods } from './pods/buffer-pods.ts'
import { MovedPods } from './pods/moved-pods.ts'
import { ReadinessPauses } from './nodepools/readiness-pauses.ts'
import { Rollouts } from './nodepools/rollouts.ts'
import { Brake } from './pause.ts'
import { NodeEvidence } from './nodes/node-evidence.ts'
import { DisruptionWindows } from './pods/disruption-windows.ts'
import { NominatedPods } from './pods/nominated-pods.ts'
import { PodDecisions } from './pods/pod-decisions.ts'
import { PodGroups } from './pods/pod-groups.ts'
import { RequestPods } from './pods/request-pods.ts'
import { PodIndex } from './pods/pod-index.ts'
import { PodPlans } from './pods/pod-plans.ts'
import { Predictions, ResizedPods } from './pods/predictions.ts'
import { SurgingPods } from './pods/surging-pods.ts'
import { PodsOnNodes } from './pods/pods-to-move.ts'
import { poolOf } from './nodepools/managed-pool.ts'
import { controllerOf, isServedBy } from './nodepools/node-pool-selection.ts'
import { PoolClaims } from './nodepools/pool-claims.ts'
import { LimitReservations } from './nodepools/limit-reservations.ts'
import { Quotas } from './quotas.ts'
import { PoolCosts } from './nodepools/pool-costs.ts'
import { SharedParts } from './same-value.ts'
import { RegistrationHealth } from './nodepools/registration-health.ts'
import { SchedulerUpdates } from './pods/unseen-pods.ts'
import { isDeleted, isTracked, joined, ownNode, type StateNode } from './nodes/state-node.ts'

/** Result of {@link ClusterState.synced}. */
export interface SyncAnswer {
  readonly isSynced: boolean
  /** Since the first call that was not synced; 0 if it is synced. */
  readonly unsyncedMs: number
  /** As `nodeclaim/NAME` and `node/NAME`. */
  readonly waitingFor: readonly string[]
}

export class ClusterState {
  readonly #caches: Caches
  readonly #provider: Pick<CloudProvider, 'nodeClasses' | 'wellKnownLabels' | 'startupTaints'>
  readonly #clock: Clock
  readonly #marked = new Set<string>()
  readonly #nominatedUntil = new Map<string, number>()
  /** Claims that this process created and the cache does not show yet, by name. */
  readonly #seeded = new Map<string, NodeClaim>()
  /** UIDs of claims that this process deleted, until the cache shows it. */
  readonly #deletedClaims = new Set<string>()
  /** Cached claims without an instance, by name. */
  readonly #unlaunched = new Map<string, NodeClaim>()
  readonly #stateNodes: StateNodes
  /** Parsed amounts by list; cached objects are immutable. */
  readonly #amounts = new WeakMap<ResourceList, Resources>()
  readonly #sharedAmounts = new SharedParts()
  readonly pods: PodIndex
  readonly surgingPods: SurgingPods
  readonly podsOnNodes: PodsOnNodes
  /** Empty where decisions are those of Karpenter. */
  readonly windows: DisruptionWindows = new DisruptionWindows()
  /** Names of claims that were created and the cache does not show yet. */
  readonly seeds: Listeners<string> = new Listeners()
  readonly syncAnswers: Listeners<SyncAnswer> = new Listeners()
  readonly #policy: Policy
  readonly #selection: NodePoolSelection | undefined
  #hasSynced = false
  #unsyncedSinceMs: number | undefined
  /** When a pod last came to or left a node, until its claim records it; Unix milliseconds by Node name. */
  readonly unnotedPodEvents = new Map<string, number>()
  readonly podDecisions: PodDecisions = new PodDecisions()
  readonly registrationHealth: RegistrationHealth
  readonly buffers: BufferPods = new BufferPods()
  readonly resized: ResizedPods = new ResizedPods()
  /** Requests that pods will have when they are recreated (VerticalPodAutoscalers). */
  readonly predictions: Predictions = new Predictions(this.resized)
  readonly plans: PodPlans
  readonly podGroups: PodGroups
  /** Placeholder pods of ProvisioningRequests. */
  readonly requests: RequestPods
  readonly nominations: NominatedPods
  /** Nodes that were launched in vain. */
  readonly evidence: NodeEvidence
  readonly schedulerUpdates: SchedulerUpdates
  readonly poolClaims: PoolClaims
  readonly limitReservations: LimitReservations
  readonly quotas: Quotas
  readonly poolCosts: PoolCosts
  readonly consolidation: ConsolidationState
  readonly movedPods: MovedPods
  readonly attachLimits: AttachLimits
  readonly volumeDrivers: VolumeDrivers
  readonly storageCapacity: StorageCapacity
  readonly recentlyFilledNodes: RecentlyFilledNodes
  readonly brake: Brake
  readonly rollouts: Rollouts
  /** Error of the last launch, by NodePool; removed after a success. */
  readonly launchFailures = new Map<string, string>()
  readonly readinessPauses: ReadinessPauses
  readonly claimRefusals: ClaimRefusals

  constructor(
    caches: Caches,
    provider: Pick<CloudProvider, 'nodeClasses' | 'wellKnownLabels' | 'startupTaints'>,
    clock: Clock,
    settings: Pick<Settings, 'compatibility' | 'nodePools' | 'registrationTimeoutMs' | 'surgeOnDrain'>,
  ) {
    this.#caches = caches
    this.#provider = provider
    this.#clock = clock
    this.#policy = policyOf(settings)
    this.#selection = settings.nodePools
    // The first listener, so that later ones see the state after a change.
    this.#stateNodes = new StateNodes(caches, {
      isManaged: (claim) => this.isManaged(claim),
      isMarked: (providerID) => this.#marked.has(providerID),
    })
    caches.nodeClaims.onChange(({ kind, object }) => {
      if (kind !== 'deleted' && this.#isUnlaunched(object)) this.#unlaunched.set(object.metadata.name, object)
      else this.#unlaunched.delete(object.metadata.name)
    })
    this.plans = new PodPlans(clock, settings.registrationTimeoutMs)
    this.requests = new RequestPods(caches, this.plans)
    this.podGroups = new PodGroups(caches, this.requests)
    this.evidence = new NodeEvidence(caches, clock)
    this.schedulerUpdates = new SchedulerUpdates(caches, this.plans, clock)
    const nodeOf = (claim: NodeClaim) => this.nodeOf(claim)
    const isLeaving = (node: Node) =>
      node.metadata.deletionTimestamp !== undefined ||
      isDeleted(node, this.claimOf(node)) ||
      this.#marked.has(node.spec?.providerID ?? '')
    this.nominations = new NominatedPods(caches, nodeOf, isLeaving, this.plans, clock)
    this.pods = new PodIndex(
      caches.pods,
      (pod) => this.nominations.isHeldByOthers(pod),
      this.#policy.remembersPods,
    )
    if (this.#policy.remembersPods) this.resized.follow(caches.pods)
    if (this.#policy.readsAnnotations) this.windows.follow(caches)
    this.surgingPods = new SurgingPods(caches, settings.surgeOnDrain)
    this.podsOnNodes = new PodsOnNodes(caches, this.pods, this.nominations, {
      surging: this.surgingPods,
      windows: this.windows,
      clock,
      judgesBudgets: this.#policy.judgesBudgets,
    })
    this.registrationHealth = new RegistrationHealth(caches.nodePools)
    this.poolClaims = new PoolClaims(caches.nodeClaims, {
      unseen: () => this.#seeded.values(),
      isManaged: (claim) => this.isManaged(claim) || isUnreadable(claim),
      isLeaving: (claim) => isDeleted(undefined, claim) || this.#marked.has(claim.status?.providerID ?? ''),
    })
    this.limitReservations = new LimitReservations(caches.nodeClaims)
    this.quotas = new Quotas({
      caches,
      unseen: () => this.#seeded.values(),
      nodeOf,
      reserved: (quota) => this.limitReservations.ofQuota(quota),
      wellKnown: provider.wellKnownLabels,
    })
    this.poolCosts = new PoolCosts(caches, (claim) => this.isManaged(claim))
    this.consolidation = new ConsolidationState(clock)
    this.movedPods = new MovedPods(clock)
    this.attachLimits = new AttachLimits(caches, clock)
    this.volumeDrivers = new VolumeDrivers(caches, clock)
    this.storageCapacity = new StorageCapacity(caches, clock)
    this.recentlyFilledNodes = new RecentlyFilledNodes(clock)
    this.brake = new Brake(caches, clock)
    this.rollouts = new Rollouts(caches, clock)
    this.readinessPauses = new ReadinessPauses(caches, clock)
    this.claimRefusals = new ClaimRefusals(clock)
    caches.nodeClaims.onChange((change) => {
      this.#seeded.delete(change.object.metadata.name)
      if (change.kind !== 'deleted') return
      this.#deletedClaims.delete(change.object.metadata.uid ?? change.object.metadata.name)
      this.#forget(change.object.status?.providerID)
      this.poolClaims.unmark(change.object.metadata.name)
    })
    caches.pods.onChange((change) => {
      if (change.kind === 'deleted') this.evidence.forget(change.object.metadata.uid ?? '')
      if (change.kind === 'deleted' || this.pods.isSettled(change.object))
        this.podDecisions.forget(change.object.metadata.uid ?? '')
    })
    this.plans.follow(caches)
    this.attachLimits.follow()
    this.volumeDrivers.follow()
    this.consolidation.follow(caches, {
      stateNode: (key) => this.#stateNode(key),
      isManaged: (object) => this.isManaged(object),
    })
  }

  /** Taints that the cloud removes from starting Nodes. */
  get taintsOfCloud(): readonly Taint[] {
    return this.#provider.startupTaints ?? []
  }

  /** Whether this process serves the object: its provider has the node class, and no other controller serves it. */
  isManaged(object: NodeClaim | NodePool): boolean {
    return this.#hasOwnClass(object) && (this.#selection === undefined || isServedBy(this.#selection, object))
  }

  #hasOwnClass({ spec }: NodeClaim | NodePool): boolean {
    const ref = 'template' in spec ? spec.template.spec.nodeClassRef : spec.nodeClassRef
    return this.#provider.nodeClasses.some((type) => type.group === ref.group && type.kind === ref.kind)
  }

  /** The NodePool, if this process serves it. */
  managedPool(name: string): NodePool | undefined {
    const pool = this.#caches.nodePools.get({ name })
    return pool !== undefined && this.isManaged(pool) ? pool : undefined
  }

  /** Whether it is a NodeClaim that no controller has taken, of a NodePool that this process serves. */
  isUntaken(object: NodeClaim | NodePool): boolean {
    if ('template' in object.spec || controllerOf(object) !== undefined || !this.#hasOwnClass(object))
      return false
    return this.managedPool(poolOf(object as NodeClaim)) !== undefined
  }

  /** The name to write on a claim that this controller takes over, with its NodePool or because no NodePool exists. */
  controllerToNote(claim: NodeClaim): string | undefined {
    const selection = this.#selection
    const holder = controllerOf(claim)
    if (selection === undefined || holder === selection.controller) return undefined
    const pool = this.#caches.nodePools.get({ name: poolOf(claim) })
    const isOurs =
      pool === undefined
        ? holder === undefined && matchesSelector(selection.selector, claim.metadata.labels ?? {})
        : this.isManaged(pool)
    return isOurs ? selection.controller : undefined
  }

  /** Why this process does not serve the NodePool, a clause without a full stop; undefined if it does. */
  notServedText(pool: NodePool): string | undefined {
    if (this.isManaged(pool)) return undefined
    const { group, kind } = pool.spec.template.spec.nodeClassRef
    const selection = this.#selection
    if (
      selection === undefined ||
      !this.#provider.nodeClasses.some((type) => type.group === group && type.kind === kind)
    )
      return 'its node class is of another provider'
    const isSelected = matchesSelector(selection.selector, pool.metadata.labels ?? {})
    const holder = controllerOf(pool)
    if (holder === undefined)
      return isSelected
        ? 'its controller has not taken it yet'
        : `no controller has taken it; its labels do not match --node-pools "${selection.text}" of ${selection.controller}`
    if (holder === selection.controller)
      return `its labels no longer match --node-pools "${selection.text}" of ${holder}`
    return isSelected
      ? `controller ${holder} serves it, and ${selection.controller} selects it, too`
      : `controller ${holder} serves it`
  }

  /** Whether another controller serves the Node: its claim says so, or the Node if it has none. */
  isForeign(node: Node): boolean {
    if (this.#selection === undefined) return false
    const claims = this.#caches.nodeClaims.byIndex(indexes.byProviderId, node.spec?.providerID ?? '')
    if (claims.length > 0) return !claims.some((claim) => this.isManaged(claim))
    const pool = this.#caches.nodePools.get({ name: node.metadata.labels?.[labels.nodePool] ?? '' })
    return (controllerOf(node) ?? (pool && controllerOf(pool))) !== this.#selection.controller
  }

  /** What annotations of the NodePool ask for; nothing where decisions are those of Karpenter. */
  poolWishes(pool: NodePool): PoolWishes {
    return this.#policy.readsAnnotations ? poolWishes(pool) : {}
  }

  /** Adds a claim that was just created, so that no pass launches for its pods again. */
  seed(claim: NodeClaim): void {
    // Nothing waits for an invalid claim.
    if (!isWhole(karpenterKinds.nodeClaim.kind, claim)) return
    if (this.#caches.nodeClaims.get({ name: claim.metadata.name }) === undefined) {
      this.#seeded.set(claim.metadata.name, claim)
      this.limitReservations.see(claim.metadata.name)
      this.quotas.changed()
      this.seeds.notify(claim.metadata.name)
    }
  }

  /** Removes a seed whose claim is gone from the API server. */
  dropSeed(name: string): void {
    this.#seeded.delete(name)
    this.quotas.changed()
    this.poolClaims.unmark(name)
    this.limitReservations.forget(name)
    this.plans.dropTarget({ kind: 'claim', name })
  }

  seedOf(name: string): NodeClaim | undefined {
    return this.#seeded.get(name)
  }

  /** Claims that are not launched yet. Their capacity is unknown, so decisions wait for them. */
  unlaunched(): readonly NodeClaim[] {
    return [...this.#seeded.values(), ...this.#unlaunched.values()]
  }

  #isUnlaunched(claim: NodeClaim): boolean {
    const { metadata, status } = claim
    return (
      (status?.providerID ?? '') === '' && metadata.deletionTimestamp === undefined && this.isManaged(claim)
    )
  }

  /**
   * Whether decisions can be made: every claim is launched, nothing is being listed again and, until that was true once,
   * every managed node has its provider ID and instance type.
   */
  synced(): boolean {
    const waitingFor = this.waitingFor()
    const isSynced = waitingFor.length === 0
    const nowMs = this.#clock.monotonic()
    this.#hasSynced ||= isSynced
    this.#unsyncedSinceMs = isSynced ? undefined : (this.#unsyncedSinceMs ?? nowMs)
    this.syncAnswers.notify({ isSynced, unsyncedMs: nowMs - (this.#unsyncedSinceMs ?? nowMs), waitingFor })
    return isSynced
  }

  /** What {@link synced} waits for: `nodeclaim/NAME`, `node/NAME`, and `list of KIND`. */
  waitingFor(): readonly string[] {
    const claims = this.unlaunched().map(({ metadata }) => `nodeclaim/${metadata.name}`)
    const nodes = this.#untracked().map(({ metadata }) => `node/${metadata.name}`)
    return [...claims, ...nodes, ...this.#listedAgain().map((plural) => `list of ${plural}`)]
  }

  /**
   * Kinds whose content is unknown until a list has answered. Others may be listed already: pods whose nodes are still
   * missing would get new ones.
   */
  #listedAgain(): readonly string[] {
    const { nodeClaims, nodes, pods } = this.#caches
    return [nodeClaims, nodes, pods]
      .filter(({ isListedAgain }) => isListedAgain)
      .map(({ type }) => type.plural)
  }

  #untracked(): readonly Node[] {
    return this.#hasSynced
      ? []
      : this.#caches.nodes.list().filter((node) => !isTracked(node) && !isUnreadable(node))
  }

  /** Whether decisions can be made, without the {@link stuckPools} if there are any. */
  decidable(): boolean {
    if (this.synced()) return true
    if (!this.#policy.isolates || this.#listedAgain().length > 0) return false
    const now = this.#clock.now()
    return (
      this.unlaunched().every(
        (claim) => !this.#seeded.has(claim.metadata.name) && isStuckClaim(claim, now),
      ) && this.#untracked().every((node) => isStuckNode(node, now))
    )
  }

  /**
   * Names of NodePools with a claim that cannot be launched, or may or may not exist. Decisions leave them out: their
   * capacity on the way is unknown, and another claim would likely fail, too.
   */
  stuckPools(): ReadonlySet<string> {
    const unsettled = this.poolClaims.unsettledPools()
    if (!this.#policy.isolates) return new Set(unsettled)
    const now = this.#clock.now()
    const stuck = this.unlaunched().filter((claim) => isStuckClaim(claim, now))
    return new Set([...stuck.map(({ metadata }) => metadata.labels?.[labels.nodePool] ?? ''), ...unsettled])
  }

  /** Whether the state was complete once, so that everything left by earlier processes is known. */
  get hasSynced(): boolean {
    return this.#hasSynced || this.synced()
  }

  /** Every node and launched claim by name, without nodes that lack their provider ID or type. */
  stateNodes(): readonly StateNode[] {
    return this.#stateNodes.all()
  }

  /** The Node of a claim; undefined if there is none, or if it is unclear which of several it is. */
  nodeOf(claim: NodeClaim): Node | undefined {
    const providerID = claim.status?.providerID ?? ''
    const nodes = providerID === '' ? [] : this.#caches.nodes.byIndex(indexes.byProviderId, providerID)
    return ownNode(nodes, claim)
  }

  /**
   * Notes that the API server accepted the deletion of a claim. Its instance counts as being deleted before the cache
   * shows it.
   * @returns false if that was noted before.
   */
  noteDeletion({ metadata: { name, uid = name } }: NodeClaim): boolean {
    if (this.#deletedClaims.has(uid)) return false
    const known = this.#caches.nodeClaims.get({ name })
    // Already gone from the cache.
    if (known?.metadata.uid !== uid) return true
    this.#deletedClaims.add(uid)
    const providerID = known.status?.providerID ?? ''
    if (providerID !== '') this.mark(providerID)
    return true
  }

  /** Whether {@link noteDeletion} was called and the cache does not show it yet. */
  isDeletionNoted({ metadata: { name, uid = name } }: NodeClaim): boolean {
    return this.#deletedClaims.has(uid)
  }

  /** What is wrong with an unreadable Node of an instance. */
  unreadableNodeText({ node, claim }: StateNode): string | undefined {
    const named = node ?? this.#caches.nodes.get({ name: claim?.status?.nodeName ?? '' })
    return named && unreadableText(named)
  }

  #stateNode(key: string): StateNodeView | undefined {
    const { nodes, nodeClaims } = this.#caches
    const claim = nodeClaims.byIndex(indexes.byProviderId, key).find((each) => this.isManaged(each))
    const found = ownNode(nodes.byIndex(indexes.byProviderId, key), claim) ?? nodes.get({ name: key })
    const node = found !== undefined && keyOfNode(found) === key && isTracked(found) ? found : undefined
    if (claim === undefined && node === undefined) return undefined
    return { isInitialized: this.#joined(node, claim, key).isInitialized, isLeaving: isDeleted(node, claim) }
  }

  /** The claim of a Node, if exactly one managed claim has its provider ID. */
  claimOf(node: Node): NodeClaim | undefined {
    const providerID = node.spec?.providerID ?? ''
    const claims = providerID === '' ? [] : this.#caches.nodeClaims.byIndex(indexes.byProviderId, providerID)
    const managed = claims.filter((claim) => this.isManaged(claim))
    return managed.length === 1 ? managed[0] : undefined
  }

  isWellFormed(pod: Pod): boolean {
    return this.pods.isWellFormed(pod)
  }

  /**
   * Memoized `parseResources`, as decisions read the lists of cached objects again and again. Equal amounts are the same
   * object.
   */
  readonly parsed = (list: ResourceList | undefined): Resources => {
    if (list === undefined) return {}
    let amounts = this.#amounts.get(list)
    if (amounts === undefined) {
      amounts = this.#sharedAmounts.of(parseResources(list))
      this.#amounts.set(list, amounts)
    }
    return amounts
  }

  podsOn(nodeName: string): readonly Pod[] {
    return this.#caches.pods.byIndex(indexes.byNode, nodeName)
  }

  marked(): Iterable<string> {
    return this.#marked
  }

  /** Claims that this process created and the cache does not show yet. */
  seeded(): Iterable<NodeClaim> {
    return this.#seeded.values()
  }

  /** Marks an instance for deletion before any object shows it. */
  mark(providerID: string): void {
    this.#marked.add(providerID)
    this.#stateNodes.see(providerID)
    this.#unmarkClaims(providerID)
  }

  unmark(providerID: string): void {
    this.#marked.delete(providerID)
    this.#stateNodes.see(providerID)
    this.#unmarkClaims(providerID)
  }

  #unmarkClaims(providerID: string): void {
    for (const { metadata } of this.#caches.nodeClaims.byIndex(indexes.byProviderId, providerID))
      this.poolClaims.unmark(metadata.name)
  }

  /**
   * Protects an instance from disruption while pods are expected on it, as Karpenter does. Pods with
   * `status.nominatedNodeName` are in {@link nominations}.
   */
  nominate(providerID: string, durationMs: number): void {
    const until = this.#clock.now() + durationMs
    this.#nominatedUntil.set(providerID, Math.max(until, this.#nominatedUntil.get(providerID) ?? 0))
  }

  isNominated(providerID: string): boolean {
    return (this.#nominatedUntil.get(providerID) ?? 0) > this.#clock.now()
  }

  #forget(providerID: string | undefined): void {
    if (providerID === undefined) return
    this.#marked.delete(providerID)
    this.#stateNodes.see(providerID)
    this.#nominatedUntil.delete(providerID)
  }

  #joined(node: Node | undefined, claim: NodeClaim | undefined, providerID: string): StateNode {
    return joined(node, claim, providerID, this.#marked.has(providerID))
  }
}

/** How long decisions wait for a claim whose launch failed, or a node without its provider ID or type. */
const failingMs = 30_000
/** How long decisions wait for a launch that has not failed. */
const slowMs = 2 * 60_000

/** Whether a claim has been without an instance for too long. */
function isStuckClaim(claim: NodeClaim, nowMs: number): boolean {
  const { status, reason = '' } = conditionOf(claim, 'Launched') ?? {}
  const hasFailed = status === 'Unknown' && reason !== '' && reason !== 'AwaitingReconciliation'
  return isOlder(claim.metadata, hasFailed ? failingMs : slowMs, nowMs)
}

/** Whether a node has been without its provider ID or type for too long. */
function isStuckNode({ metadata }: { readonly metadata: ObjectMeta }, nowMs: number): boolean {
  return isOlder(metadata, failingMs, nowMs)
}

function isOlder({ creationTimestamp = '' }: ObjectMeta, ms: number, nowMs: number): boolean {
  return nowMs - Date.parse(creationTimestamp) > ms
}
