/** Launches nodes for pods that cannot be scheduled (scheduling.md 3, 12). */
import type { CloudProvider } from '@tenon/provider'
import { karpenterKinds, labels, type NodePool, type Pod, type Resources } from '@tenon/api'
import type { NewClaim, SchedulingResult } from '@tenon/engine'
import { type EventRecorder, isKubeError, type KubeClient } from '@tenon/kube'
import { type Clock, inSlices, type Logger, type Random, type Turns, uuid } from '@tenon/runtime'
import { type CapacityLearning, settingsNote } from '../cloud/corrected-provider.ts'
import { isExpectedFailure } from '../cloud/expected-failures.ts'
import { nodeClaimFor } from './create-claim.ts'
import { limitError, type PlannedClaims, refuseAboveLimits } from './planned-claims.ts'
import type { LimitReport } from './limit-report.ts'
import type { LoopSpec } from '../controller.ts'
import { Batcher } from './batcher.ts'
import { type GatheredInput, poolUsage, type SchedulingInputs, unreadyPools } from './scheduling-input.ts'
import { podList, SchedulingReport, shortened } from './scheduling-report.ts'
import { sliceMs } from '../decider/slice.ts'
import { isWhole } from '../cluster/readable.ts'
import { Triggers } from './triggers.ts'
import type { LimitReservation } from '../cluster/nodepools/limit-reservations.ts'
import { ClaimRefusals } from '../cluster/pods/claim-refusals.ts'
import { isDrifted, labelsOf } from '../cluster/nodes/state-node.ts'
import { workloadOf } from '../cluster/pods/workloads.ts'
import { NodeEvidenceJudge, type OnTrial } from '../node/evidence/judge.ts'
import { launchedFor } from '../node/evidence/launched-for.ts'
import { DecisionPlan } from '../placement/planner.ts'
import { withTwinsInTurn } from '../placement/twin-order.ts'
import type { Caches } from '../cluster/caches.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { LaunchGuard } from '../cloud/launch-guard.ts'
import type { SchedulingDecider } from '../decider/decider.ts'
import type { PlacementGate } from '../placement/gate.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { FrameworkMetrics } from '../metrics/framework/framework.ts'
import type { PassAges } from '../metrics/pass-ages.ts'
import type { Settings } from '../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly plannedClaims: PlannedClaims
  readonly inputs: SchedulingInputs
  readonly limits: LimitReport
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly learning?: CapacityLearning
  readonly launchGuard: LaunchGuard
  readonly events: EventRecorder
  readonly decider: SchedulingDecider
  readonly placementGate: PlacementGate
  readonly metrics: Metrics
  readonly framework: FrameworkMetrics
  readonly passAges: PassAges
  readonly clock: Clock
  readonly turns: Turns
  readonly random: Random
  readonly logger: Logger
  readonly settings: Settings
}

const nothingOnTrial: OnTrial = new Map()
const parallelCreates = 20
const unsyncedPollMs = 250
/** How often the age of a decision under way is told. */
const unfinishedWorkMs = 1000

interface ReservedClaim {
  readonly claim: NewClaim
  /** What its NodePool had when the reservation was made. */
  readonly usage: Resources
  readonly reservation: LimitReservation
}

/** Runs until `signal` aborts; errors of a pass are logged and the pass is tried again. */
export class Provisioner implements LoopSpec {
  readonly name = 'provisioner'
  readonly #deps: Dependencies
  readonly #batcher: Batcher
  readonly #triggers: Triggers
  readonly #report: SchedulingReport
  readonly #refusals: ClaimRefusals
  readonly #judge: NodeEvidenceJudge
  #hasLearned = false

  constructor(deps: Dependencies) {
    this.#deps = deps
    const { clock, settings } = deps
    this.#batcher = new Batcher(clock, settings.batchMaxMs, settings.batchIdleMs)
    this.#triggers = new Triggers(deps, this.#batcher)
    this.#report = new SchedulingReport(deps)
    this.#refusals = new ClaimRefusals(clock)
    this.#judge = new NodeEvidenceJudge(deps)
  }

  async loop(signal: AbortSignal): Promise<void> {
    const { clock, framework, logger, passAges, state } = this.#deps
    passAges.complete(this.name)
    framework.known(this.name)
    const unfollow = this.#triggers.follow()
    const unjudge = this.#judges ? this.#judge.follow() : () => undefined
    state.limitReservations.freed.add((pool) => {
      this.#batcher.trigger(`room of ${pool}`)
    })
    let failures = 0
    let startedMs = clock.monotonic()
    while (!signal.aborted) {
      try {
        await this.#batcher.wait(signal)
        startedMs = clock.monotonic()
        passAges.waiting(this.name)
        await this.#learn(signal)
        await this.#deps.plannedClaims.settle(signal)
        await this.#synced(signal)
        await this.#pass(signal)
        passAges.complete(this.name)
        framework.passed(this.name, 'success', clock.monotonic() - startedMs)
        failures = 0
      } catch (error) {
        if (signal.aborted) break
        failures++
        if (isExpectedFailure(error)) logger.warn('Reconciler error', { controller: this.name, error })
        else logger.error('Reconciler error', { controller: this.name, error })
        framework.passed(this.name, 'error', clock.monotonic() - startedMs)
        await clock.sleep(Math.min(10_000, 2 ** failures * 100), signal).catch(() => undefined)
        this.#batcher.trigger('retry')
      }
    }
    unfollow()
    unjudge()
  }

  /**
   * Waits until every created claim is launched or gone: before that, capacity on its way is unknown. Those
   * that are stuck only hold up their own NodePool.
   */
  async #synced(signal: AbortSignal): Promise<void> {
    const { clock, state } = this.#deps
    while (!state.decidable()) await clock.sleep(unsyncedPollMs, signal)
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { clock, metrics, placementGate } = this.#deps
    await placementGate.settled()
    const start = clock.monotonic()
    const onTrial = this.#judges ? await this.#judge.run(signal) : nothingOnTrial
    let decided: { readonly input: GatheredInput; readonly result: SchedulingResult } | undefined
    try {
      decided = await this.#decided(onTrial, signal)
    } finally {
      // Beside the decision itself, and where there is nothing to decide (operations.md 9.1).
      metrics.schedulingDuration.observe({ controller: this.name }, (clock.monotonic() - start) / 1000)
    }
    if (decided === undefined) return
    const { input } = decided
    const placement = input.policy.improvement === 'planned' ? 'planned' : 'free'
    const result = placement === 'planned' ? withTwinsInTurn(decided.result) : decided.result
    this.#nominate(input, result)
    const plan = await DecisionPlan.of(this.#deps, input, result)
    await this.#inSlices(this.#telling(input, result))
    if (result.claims.length > 0) await this.#create(result.claims, { plan, placement }, signal)
  }

  /** @returns undefined when there is nothing to decide, or no pool that could launch anything. */
  async #decided(
    onTrial: OnTrial,
    signal: AbortSignal,
  ): Promise<{ readonly input: GatheredInput; readonly result: SchedulingResult } | undefined> {
    const { clock, logger } = this.#deps
    const start = clock.monotonic()
    const input = this.#inTurn(await this.#deps.inputs.forPending(signal))
    this.#report.ignored(input.ignored)
    if (input.pods.length + input.refused.length === 0) {
      this.#report.nothingToDo()
      return undefined
    }
    if (!input.hasEligiblePool) {
      const pods = [...input.pods, ...input.refused.map(({ pod }) => pod)]
      await this.#inSlices(this.#report.withoutPools(pods))
      logger.info('no nodepool can launch', { waiting: unreadyPools(this.#deps) })
      return undefined
    }
    this.#report.preferences(input.pods)
    const whole = await this.#decide(input, signal)
    this.#judge.decided(whole)
    const result = this.#withoutTrials(this.#withoutCrowds(input, whole), onTrial)
    signal.throwIfAborted()
    await this.#inSlices(this.#report.pendingZones(input, result))
    logger.info('found provisionable pod(s)', {
      Pods: podList(input.pods),
      duration: `${(clock.monotonic() - start).toFixed(1)}ms`,
    })
    return { input, result }
  }

  /** The input with those pods that are decided about now: some for whom claims were refused have to wait. */
  #inTurn(input: GatheredInput): GatheredInput {
    const { pods, refused, hasMore } = this.#refusals.turn(input.pods)
    if (hasMore) this.#batcher.trigger('refused claims')
    if (pods.length === input.pods.length) return input
    const more = Array.from(refused, ([pod, reason]) => ({ pod, reason }))
    return { ...input, pods, refused: [...input.refused, ...more] }
  }

  /** The decision, within its time, measured. */
  async #decide(input: GatheredInput, signal: AbortSignal): Promise<SchedulingResult> {
    const { clock, decider, metrics, random, settings } = this.#deps
    const series = { controller: this.name, scheduling_id: uuid(random) }
    const start = clock.monotonic()
    const elapsedMs = () => clock.monotonic() - start
    // The last depth stays until the next decision begins.
    metrics.schedulingQueueDepth.reset()
    metrics.schedulingQueueDepth.set(series, input.pods.length)
    let stopTelling = () => {}
    const tell = () => {
      metrics.schedulingUnfinishedWork.set(series, elapsedMs() / 1000)
      stopTelling = clock.after(unfinishedWorkMs, tell)
    }
    tell()
    try {
      const result = await decider.decide(input, { deadlineMs: settings.solveTimeoutMs, signal })
      metrics.schedulingQueueDepth.set(series, result.undecided.length)
      return result
    } finally {
      stopTelling()
      metrics.schedulingDuration.observe({ controller: this.name }, elapsedMs() / 1000)
      metrics.schedulingUnfinishedWork.remove(series)
    }
  }

  /** Leaves pods for later whose claims would all stand or fall with one that is on trial. */
  #withoutCrowds({ pools }: GatheredInput, result: SchedulingResult): SchedulingResult {
    const { launchGuard } = this.#deps
    const types = new Map(pools.map(({ nodePool, instanceTypes }) => [nodePool.metadata.name, instanceTypes]))
    const claims = launchGuard.withoutCrowds(result.claims, types)
    if (claims.length === result.claims.length) return result
    const kept = new Set(claims)
    const later = result.claims.filter((claim) => !kept.has(claim)).flatMap(({ pods }) => pods)
    return { ...result, claims, undecided: [...result.undecided, ...later] }
  }

  /** The pod without what decisions changed of it. */
  #asStored(pod: Pod): Pod {
    const { name, namespace, uid } = pod.metadata
    const { caches, state } = this.#deps
    const stored = caches.pods.get(namespace === undefined ? { name } : { name, namespace })
    return stored?.metadata.uid === uid && stored !== undefined && state.isWellFormed(stored) ? stored : pod
  }

  /** What later processes want to know of a claim. */
  #notes({ pods }: NewClaim, pool: NodePool): Readonly<Record<string, string>> {
    if (!this.#judges) return {}
    return {
      ...settingsNote(this.#deps.learning, pool),
      ...launchedFor(pods.map((pod) => this.#asStored(pod))),
    }
  }

  /** Whether it is looked at what becomes of nodes. */
  get #judges(): boolean {
    return this.#deps.settings.compatibility !== 'karpenter'
  }

  /** Leaves pods for later whose own nodes are there already, and may yet take them. */
  #withoutTrials(result: SchedulingResult, onTrial: OnTrial): SchedulingResult {
    if (onTrial.size === 0) return result
    const wanted = new Map<string, number>()
    for (const { pods } of result.claims)
      for (const pod of pods.map((each) => this.#asStored(each))) {
        const workload = workloadOf(pod)
        wanted.set(workload, (wanted.get(workload) ?? 0) + 1)
      }
    const isOnTrial = (pod: Pod) => {
      const workload = workloadOf(this.#asStored(pod))
      return (wanted.get(workload) ?? 0) <= (onTrial.get(workload) ?? 0)
    }
    const claims = result.claims.filter(({ pods }) => !pods.every(isOnTrial))
    if (claims.length === result.claims.length) return result
    const kept = new Set(claims)
    const later = result.claims.filter((claim) => !kept.has(claim)).flatMap(({ pods }) => pods)
    this.#deps.logger.info('pods wait for nodes that were launched for them; no others are launched yet', {
      Pods: podList(later),
    })
    // Their node has not the room that was planned: nominated for it still, they would keep it from the others.
    this.#deps.state.plans.giveUp(later.map(({ metadata }) => metadata.uid ?? ''))
    return { ...result, claims }
  }

  #nominate({ stateNodes, origins }: GatheredInput, { placements }: SchedulingResult): void {
    const awaited = new Set(
      placements.filter(({ pod }) => origins?.has(pod.metadata.uid ?? '') !== true).map(({ node }) => node),
    )
    for (const name of new Set(placements.map(({ node }) => node))) {
      const target = stateNodes.get(name)
      if (target === undefined) continue
      // Pods that have a node yet may go anywhere; a drifted node need not wait for them.
      if (awaited.has(name) || !isDrifted(target))
        this.#deps.state.nominate(target.providerID, this.#nominationMs)
      if (target.claim !== undefined) this.#deps.state.recentlyFilledNodes.fill(target.claim.metadata.name)
    }
  }

  /** Tells in steps what was decided. */
  *#telling(input: GatheredInput, result: SchedulingResult): Generator<undefined, void, undefined> {
    const { caches, logger } = this.#deps
    for (const { pod, node } of result.placements) {
      yield
      const target = input.stateNodes.get(node)
      if (target === undefined) continue
      const pool = caches.nodePools.get({ name: labelsOf(target)[labels.nodePool] ?? '' })
      this.#report.placed(pod, pool, target.claim?.metadata.name)
      this.#report.nominated(pod, target.claim, target.node?.metadata.name)
    }
    for (const { pool, pods } of result.claims) {
      const current = caches.nodePools.get({ name: pool.metadata.name })
      for (const pod of pods) this.#report.placed(pod, current, undefined)
      yield
    }
    yield* this.#report.failures(result, input.refused)
    for (const pool of input.poolsWithoutListing) this.#report.poolWithoutTypes(pool, false)
    for (const { nodePool: name, becauseOfMinValues } of result.poolsWithoutTypes) {
      const pool = caches.nodePools.get({ name })
      if (pool !== undefined) this.#report.poolWithoutTypes(pool, becauseOfMinValues)
    }
    for (const object of result.malformed)
      logger.error('left out an object that cannot be read', { ...object })
  }

  get #nominationMs(): number {
    return Math.max(2 * this.#deps.settings.batchMaxMs, 10_000)
  }

  async #inSlices(steps: Iterator<unknown, void, undefined>): Promise<void> {
    const { clock, turns } = this.#deps
    await inSlices(steps, { clock, turns, sliceMs })
  }

  async #create(
    claims: readonly NewClaim[],
    { plan, placement }: { readonly plan: DecisionPlan; readonly placement: 'planned' | 'free' },
    signal: AbortSignal,
  ): Promise<void> {
    const { logger } = this.#deps
    logger.info('computed new nodeclaim(s) to fit pod(s)', {
      nodeclaims: claims.length,
      pods: claims.reduce((count, claim) => count + claim.pods.length, 0),
      // Without steering the plan has to hold wherever pods land, which may cost more.
      placement,
    })
    const failures: unknown[] = []
    const queue = this.#reserve(claims, failures)
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        try {
          await this.#createOne(next, plan, signal)
        } catch (error) {
          if (isKubeError(error, 'invalid', 'forbidden')) this.#refuse(next.claim, error.message)
          else failures.push(error)
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(parallelCreates, claims.length) }, worker))
    if (failures.length > 0)
      throw new AggregateError(
        failures,
        `creating ${failures.length} NodeClaim(s): ${(failures[0] as Error).message}`,
      )
  }

  /** The API server will not have the claim, however often it is asked: its pods are found out about. */
  #refuse({ nodePool: name, pods }: NewClaim, message: string): void {
    const atFault = this.#refusals.note(pods, `the API server refuses its NodeClaim: ${message}`)
    this.#deps.logger.warn('the API server refuses a nodeclaim', {
      NodePool: { name },
      Pods: podList(pods),
      ...(atFault.length === 0 && { next: 'its pods are decided about in two halves' }),
      error: message,
    })
    this.#batcher.trigger('refused claims')
  }

  /** Makes the state know every claim: a cache that follows late may not show what another process made. */
  async #learn(signal: AbortSignal): Promise<void> {
    if (this.#hasLearned) return
    const { client, state } = this.#deps
    for (const claim of await client.list(karpenterKinds.nodeClaim, { signal }))
      if (isWhole(karpenterKinds.nodeClaim.kind, claim) && state.isManaged(claim)) state.seed(claim)
    this.#hasLearned = true
  }

  /**
   * The claims there is room for below the limits of their NodePools, for all at once: meanwhile others may be
   * launched.
   */
  #reserve(claims: readonly NewClaim[], failures: unknown[]): ReservedClaim[] {
    const { logger, state } = this.#deps
    const nodes = state.stateNodes()
    return claims.flatMap((claim): readonly ReservedClaim[] => {
      try {
        const pool = this.#deps.plannedClaims.pool(claim.nodePool)
        const usage = poolUsage(claim.nodePool, nodes, state.parsed)
        const reservation = state.limitReservations.take({ pool, usage, largest: claim.largest })
        if (typeof reservation !== 'string') return [{ claim, usage, reservation }]
        if (!state.limitReservations.want(claim.nodePool)) throw limitError(claim.nodePool, reservation)
        // An expected outcome: the pods are decided about again once it is known what became of it.
        logger.info('room below the limit of a nodepool is taken by nodes on their way; the pods wait', {
          NodePool: { name: claim.nodePool },
          limit: reservation,
          Pods: podList(claim.pods),
        })
        return []
      } catch (error) {
        failures.push(error)
        return []
      }
    })
  }

  /** The NodePool, whose limits may have been lowered meanwhile. */
  #poolWithin(name: string, usage: Resources, reservation: LimitReservation): NodePool {
    try {
      const pool = this.#deps.plannedClaims.pool(name)
      refuseAboveLimits(pool, usage)
      return pool
    } catch (error) {
      this.#deps.state.limitReservations.giveBack(reservation)
      throw error
    }
  }

  async #createOne(
    { claim, usage, reservation }: ReservedClaim,
    plan: DecisionPlan,
    signal: AbortSignal,
  ): Promise<void> {
    const { metrics, logger, provider, state } = this.#deps
    const pool = this.#poolWithin(claim.nodePool, usage, reservation)
    const object = plan.noted(
      nodeClaimFor(claim, provider.defaultTerminationGracePeriodMs, this.#notes(claim, pool)),
      claim.pods,
    )
    const created = await this.#deps.plannedClaims.create(pool, object, reservation, signal)
    plan.launched(created, claim.pods)
    this.#refusals.forget(claim.pods)
    if (claim.pricePerHour === undefined) this.#report.unpriced(created, claim)
    state.recentlyFilledNodes.fill(created.metadata.name)
    const workloads = state.movedPods.launchFor(claim.pods)
    if (workloads > 0)
      logger.info(
        'consolidation moved pods that needed a new node; their workloads are let alone for a while',
        {
          NodeClaim: { name: created.metadata.name },
          workloads,
          Pods: podList(claim.pods),
        },
      )
    metrics.nodeClaimsCreated.inc({
      reason: 'provisioned',
      nodepool: claim.nodePool,
      min_values_relaxed: String(claim.minValuesRelaxed),
    })
    logger.info('created nodeclaim', {
      NodePool: { name: claim.nodePool },
      NodeClaim: { name: created.metadata.name },
      requests: created.spec.resources?.requests,
      'instance-types': shortened(claim.instanceTypes),
      Pods: podList(claim.pods),
    })
    for (const pod of claim.pods) {
      this.#report.placed(pod, pool, created.metadata.name)
      this.#report.nominated(pod, created, undefined)
    }
  }
}
