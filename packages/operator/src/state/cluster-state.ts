/** Nodes and claims joined by provider ID, with what runs on them (cluster-state.md). */
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
} from '@tenon/api'
import type { Change } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { type Clock, Listeners } from '@tenon/runtime'
import { type Caches, indexes } from './caches.ts'
import { isUnreadable, isWhole, unreadableText } from './readable.ts'
import { type Policy, policyOf, type Settings } from '../settings.ts'
import { AttachLimits } from './nodes/attach-limits.ts'
import { ConsolidationState, keyOfNode, type StateNodeView } from './nodes/consolidation-state.ts'
import { StateNodes } from './nodes/state-nodes.ts'
import { BufferPods } from './pods/buffer-pods.ts'
import { MovedPods } from './pods/moved-pods.ts'
import { RecentlyFilledNodes } from './nodes/recently-filled-nodes.ts'
import { ReadinessPauses } from './nodepools/readiness-pauses.ts'
import { Rollouts } from './nodepools/rollouts.ts'
import { Brake } from './pause.ts'
import { NodeEvidence } from './nodes/node-evidence.ts'
import { NominatedPods } from './pods/nominated-pods.ts'
import { PodDecisions } from './pods/pod-decisions.ts'
import { PodGroups } from './pods/pod-groups.ts'
import { RequestPods } from './pods/request-pods.ts'
import { PodIndex } from './pods/pod-index.ts'
import { PodPlans } from './pods/pod-plans.ts'
import { Predictions } from './pods/predictions.ts'
import { ResizedPods } from './pods/resized-pods.ts'
import { PodsOnNodes } from './pods/pods-to-move.ts'
import { PoolClaims } from './nodepools/pool-claims.ts'
import { LimitReservations } from './nodepools/limit-reservations.ts'
import { PoolCosts } from './nodepools/pool-costs.ts'
import { SharedParts } from './shared-parts.ts'
import { RegistrationHealth } from './nodepools/registration-health.ts'
import { SchedulerWords } from './pods/scheduler-words.ts'
import { ownNode } from './nodes/twin-nodes.ts'
import { isDeleted, isTracked, joined, type StateNode } from './nodes/state-node.ts'

/** Whether decisions can be made. */
export interface SyncAnswer {
  readonly isSynced: boolean
  /** How long it has not been so, as far as somebody asked; 0 when it is. */
  readonly unsyncedMs: number
  /** What is waited for, as `nodeclaim/NAME` and `node/NAME`. */
  readonly waitingFor: readonly string[]
}

/** Joins what the caches hold and remembers what no object tells: marks, nominations, fresh claims. */
export class ClusterState {
  readonly #caches: Caches
  readonly #provider: Pick<CloudProvider, 'nodeClasses' | 'wellKnownLabels' | 'startupTaints'>
  readonly #clock: Clock
  readonly #marked = new Set<string>()
  readonly #nominatedUntil = new Map<string, number>()
  /** Claims this process created that its cache has not shown yet. */
  readonly #seeded = new Map<string, NodeClaim>()
  /** UIDs of claims that this process has deleted, until the cache shows that they are gone. */
  readonly #deletedClaims = new Set<string>()
  /** Claims of the cache that are not launched yet, by name: asked for all the time, and mostly none. */
  readonly #unlaunched = new Map<string, NodeClaim>()
  readonly #stateNodes: StateNodes
  /** Objects of a cache never change, so that each is read only once. */
  readonly #amounts = new WeakMap<ResourceList, Resources>()
  readonly #sharedAmounts = new SharedParts()
  readonly pods: PodIndex
  /** What the pods of each node are to those who would take it away. */
  readonly podsOnNodes: PodsOnNodes
  /** Names of claims that no cache has shown yet. */
  readonly seeds: Listeners<string> = new Listeners()
  /** Every answer of {@link synced}. */
  readonly syncAnswers: Listeners<SyncAnswer> = new Listeners()
  readonly #policy: Policy
  #hasSynced = false
  #unsyncedSinceMs: number | undefined
  /** When pods last came to or left a node whose claim does not tell of it yet, by Node name; Unix milliseconds. */
  readonly unnotedPodEvents = new Map<string, number>()
  /** What was decided about pods, and when. */
  readonly podDecisions: PodDecisions = new PodDecisions()
  /** How the last launches of each NodePool ended. */
  readonly registrationHealth: RegistrationHealth
  /** The room that CapacityBuffers keep. */
  readonly buffers: BufferPods = new BufferPods()
  /** Pods that were resized in place. */
  readonly resized: ResizedPods = new ResizedPods()
  /** What pods will ask for when they are made again. */
  readonly predictions: Predictions = new Predictions(this.resized)
  /** Where pods are meant to go. */
  readonly plans: PodPlans
  /** Groups of pods that run together or not at all. */
  readonly podGroups: PodGroups
  /** Room that ProvisioningRequests ask for. */
  readonly requests: RequestPods
  readonly nominations: NominatedPods
  /** Nodes that proved useless for the pods they were launched for. */
  readonly evidence: NodeEvidence
  /** When the scheduler last said something about a pod. */
  readonly words: SchedulerWords
  /** The claims of each NodePool, and room set aside for more. */
  readonly poolClaims: PoolClaims
  /** Room below the limits of NodePools that is taken by what is on its way. */
  readonly limitReservations: LimitReservations
  /** What the instances of each NodePool cost. */
  readonly poolCosts: PoolCosts
  /** Whether it may be worth to look for nodes to consolidate again. */
  readonly consolidation: ConsolidationState
  /** Workloads that consolidation has moved in vain. */
  readonly movedPods: MovedPods
  /** How many volumes nodes attach. */
  readonly attachLimits: AttachLimits
  readonly recentlyFilledNodes: RecentlyFilledNodes
  /** What is paused. */
  readonly brake: Brake
  /** Replacements of drifted nodes. */
  readonly rollouts: Rollouts
  /** By NodePool what its last launch failed with; gone once one succeeds. */
  readonly launchFailures = new Map<string, string>()
  /** NodePools for which nothing is launched, as their nodes do not take pods. */
  readonly readinessPauses: ReadinessPauses

  /** @param planAgeMs how long a plan is held on to that is not carried out. */
  constructor(
    caches: Caches,
    provider: Pick<CloudProvider, 'nodeClasses' | 'wellKnownLabels' | 'startupTaints'>,
    clock: Clock,
    settings: Pick<Settings, 'compatibility' | 'registrationTimeoutMs'>,
  ) {
    this.#caches = caches
    this.#provider = provider
    this.#clock = clock
    this.#policy = policyOf(settings)
    // First of all that listens, so that nobody who hears of a change is answered from before it.
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
    this.words = new SchedulerWords(caches, this.plans, clock)
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
    const podFacts = {
      isWellFormed: (pod: Pod) => this.pods.isWellFormed(pod),
      takesTheSame: (change: Change<Pod>) => this.pods.takesTheSame(change),
      arrivingAt: (node: string) => this.nominations.arrivingAt(node),
    }
    this.podsOnNodes = new PodsOnNodes(caches, podFacts, clock)
    this.registrationHealth = new RegistrationHealth(caches.nodePools)
    this.poolClaims = new PoolClaims(caches.nodeClaims, {
      unseen: () => this.#seeded.values(),
      isManaged: (claim) => this.isManaged(claim) || isUnreadable(claim),
      isLeaving: (claim) => isDeleted(undefined, claim) || this.#marked.has(claim.status?.providerID ?? ''),
    })
    this.limitReservations = new LimitReservations(caches.nodeClaims)
    this.poolCosts = new PoolCosts(caches, (claim) => this.isManaged(claim))
    this.consolidation = new ConsolidationState(clock)
    this.movedPods = new MovedPods(clock)
    this.attachLimits = new AttachLimits(caches, clock)
    this.recentlyFilledNodes = new RecentlyFilledNodes(clock)
    this.brake = new Brake(caches, clock)
    this.rollouts = new Rollouts(caches, clock)
    this.readinessPauses = new ReadinessPauses(caches, clock)
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
    this.consolidation.follow(caches, {
      stateNode: (key) => this.#stateNode(key),
      isManaged: (object) => this.isManaged(object),
    })
  }

  /** Taints that the cloud removes from Nodes that start. */
  get taintsOfCloud(): readonly Taint[] {
    return this.#provider.startupTaints ?? []
  }

  /** Whether this provider serves the node class of the claim, or of the NodePool's claims. */
  isManaged({ spec }: NodeClaim | NodePool): boolean {
    const ref = 'template' in spec ? spec.template.spec.nodeClassRef : spec.nodeClassRef
    return this.#provider.nodeClasses.some((type) => type.group === ref.group && type.kind === ref.kind)
  }

  /** Tells the state about a claim that was just created, so that no pass launches for its pods again. */
  seed(claim: NodeClaim): void {
    // Nothing is known of one that cannot be read, and nothing waits for it.
    if (!isWhole(karpenterKinds.nodeClaim.kind, claim)) return
    if (this.#caches.nodeClaims.get({ name: claim.metadata.name }) === undefined) {
      this.#seeded.set(claim.metadata.name, claim)
      this.seeds.notify(claim.metadata.name)
    }
  }

  /** Drops a seed whose claim turned out to be gone from the API. */
  dropSeed(name: string): void {
    this.#seeded.delete(name)
    this.poolClaims.unmark(name)
    this.limitReservations.forget(name)
    this.plans.dropTarget({ kind: 'claim', name })
  }

  /** A claim that this process created and no cache has shown yet. */
  seedOf(name: string): NodeClaim | undefined {
    return this.#seeded.get(name)
  }

  /** Claims that are not launched yet; while there are any, decisions would be made blind. */
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
   * Whether decisions can be made: no claim is on its way and, until that was so once, no node keeps back
   * what it is.
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

  /** What keeps the state from being complete, as `nodeclaim/NAME` and `node/NAME`. */
  waitingFor(): readonly string[] {
    const claims = this.unlaunched().map(({ metadata }) => `nodeclaim/${metadata.name}`)
    return [...claims, ...this.#untracked().map(({ metadata }) => `node/${metadata.name}`)]
  }

  #untracked(): readonly Node[] {
    return this.#hasSynced
      ? []
      : this.#caches.nodes.list().filter((node) => !isTracked(node) && !isUnreadable(node))
  }

  /** Whether decisions can be made, if need be without the {@link stuckPools}. */
  decidable(): boolean {
    if (this.synced()) return true
    if (!this.#policy.isolates) return false
    const now = this.#clock.now()
    return (
      this.unlaunched().every(
        (claim) => !this.#seeded.has(claim.metadata.name) && isStuckClaim(claim, now),
      ) && this.#untracked().every((node) => isStuckNode(node, now))
    )
  }

  /**
   * NodePools with a claim that cannot be launched, or of which it is not known whether it exists, by name.
   * Decisions leave them out: what is on its way there is not known, and another claim would likely fail too.
   */
  stuckPools(): ReadonlySet<string> {
    const unsettled = this.poolClaims.unsettledPools()
    if (!this.#policy.isolates) return new Set(unsettled)
    const now = this.#clock.now()
    const stuck = this.unlaunched().filter((claim) => isStuckClaim(claim, now))
    return new Set([...stuck.map(({ metadata }) => metadata.labels?.[labels.nodePool] ?? ''), ...unsettled])
  }

  /** Whether there was a moment when the state was complete: all that earlier processes left was known. */
  get hasSynced(): boolean {
    return this.#hasSynced || this.synced()
  }

  /** Every node and every launched claim, in order of name. Nodes that do not say yet what they are count not. */
  stateNodes(): readonly StateNode[] {
    return this.#stateNodes.all()
  }

  /** The Node of a claim; undefined while there is none, or when nobody can tell which of several it is. */
  nodeOf(claim: NodeClaim): Node | undefined {
    const providerID = claim.status?.providerID ?? ''
    const nodes = providerID === '' ? [] : this.#caches.nodes.byIndex(indexes.byProviderId, providerID)
    return ownNode(nodes, claim)
  }

  /**
   * The API server has accepted the deletion of a claim, whose instance counts as going from now on, however late the
   * cache is.
   * @returns whether nobody noted that before.
   */
  noteDeletion({ metadata: { name, uid = name } }: NodeClaim): boolean {
    if (this.#deletedClaims.has(uid)) return false
    const known = this.#caches.nodeClaims.get({ name })
    // One that is gone already is not found again.
    if (known?.metadata.uid !== uid) return true
    this.#deletedClaims.add(uid)
    const providerID = known.status?.providerID ?? ''
    if (providerID !== '') this.mark(providerID)
    return true
  }

  /** What is wrong with an instance's Node that cannot be read, which may not even say whose it is. */
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

  /** Whether every field of the pod that a decision reads is what the API promises. */
  isWellFormed(pod: Pod): boolean {
    return this.pods.isWellFormed(pod)
  }

  /**
   * `parseResources` for lists of cached objects, which decisions read over and over. Equal amounts are one object.
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

  /** Provider IDs of the instances that are to be removed. */
  marked(): Iterable<string> {
    return this.#marked
  }

  /** Claims that this process created and no cache has shown yet. */
  seeded(): Iterable<NodeClaim> {
    return this.#seeded.values()
  }

  /** Marks an instance as going away, before any object says so. */
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

  /** Keeps an instance from being disrupted while pods are on their way to it. */
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

/** A claim whose launch has failed, and a node that does not say what it is, are waited for this long. */
const failingMs = 30_000
/** A launch that has not ended yet may still. */
const slowMs = 2 * 60_000

/** Whether a claim without an instance has been so for too long. */
function isStuckClaim(claim: NodeClaim, nowMs: number): boolean {
  const { status, reason = '' } = conditionOf(claim, 'Launched') ?? {}
  const hasFailed = status === 'Unknown' && reason !== '' && reason !== 'AwaitingReconciliation'
  return isOlder(claim.metadata, hasFailed ? failingMs : slowMs, nowMs)
}

/** Whether a node that does not say what it is has been so for too long. */
function isStuckNode({ metadata }: { readonly metadata: ObjectMeta }, nowMs: number): boolean {
  return isOlder(metadata, failingMs, nowMs)
}

function isOlder({ creationTimestamp = '' }: ObjectMeta, ms: number, nowMs: number): boolean {
  return nowMs - Date.parse(creationTimestamp) > ms
}
