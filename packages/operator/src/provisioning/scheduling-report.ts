/** Tells what a scheduling pass decided: events, metrics, and the state's memory of pods (scheduling.md 12). */
import type { Clock, Logger } from '@tenon/runtime'
import type { EventRecorder } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { isConditionTrue, type NodeClaim, type NodePool, type Pod } from '@tenon/api'
import {
  effectiveZone,
  type NewClaim,
  type PodReason,
  renderPodReason,
  type SchedulingInput,
  type SchedulingResult,
} from '@tenon/engine'
import { keyOf } from '../cluster/pods/pods.ts'
import { poolsAside } from './pools-aside.ts'
import type { LimitReport } from './limit-report.ts'
import type { IgnoredPod, RefusedPod } from './eligible-pods.ts'
import type { Caches } from '../cluster/caches.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Settings } from '../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: Pick<CloudProvider, 'nodeClasses' | 'wellKnownLabels'>
  readonly events: EventRecorder
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
  readonly settings: Settings
  readonly limits: Pick<LimitReport, 'reached'>
}

const controller = 'provisioner'
const failedDedupeMs = 5 * 60_000
const poolDedupeMs = 60_000
const warningPauseMs = 24 * 3_600_000

export class SchedulingReport {
  readonly #deps: Dependencies
  #zones: readonly string[] = []

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Pods that were left out before the decision. */
  ignored(pods: readonly IgnoredPod[]): void {
    this.#deps.metrics.ignoredPods.set(pods.length)
    for (const { pod, reason, isSilent } of pods) {
      this.#remember(pod, reason)
      if (!isSilent) this.#failed(pod, `This pod is left out until it is mended: ${reason}`)
    }
  }

  /** Wishes about other pods keep nodes apart that could be one: users may not expect that. */
  preferences(pods: readonly Pod[]): void {
    const { clock, logger, settings, state } = this.#deps
    if (settings.preferences !== 'Respect') return
    for (const pod of pods) {
      const wishes = hinderingWishes(pod)
      if (wishes.length === 0) continue
      if (!state.podDecisions.mayWarn(pod.metadata.uid ?? '', clock.now(), warningPauseMs)) continue
      logger.info('pod has preferences that can keep nodes from being consolidated', {
        Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
        preferences: wishes.join(', '),
      })
    }
  }

  /** There is nothing to place: what the last pass measured no longer holds. */
  nothingToDo(): void {
    const { unschedulablePods, pendingPodsByZone } = this.#deps.metrics
    unschedulablePods.set({ controller }, 0)
    for (const zone of this.#zones) pendingPodsByZone.set({ controller, zone }, 0)
  }

  /**
   * No pool may launch: every pod stays where it is, in steps. The pools' conditions explain it; pods that a
   * pool which is not valid would serve are told, as that does not pass by itself.
   */
  *withoutPools(pods: readonly Pod[]): Generator<undefined, void, undefined> {
    this.#deps.metrics.unschedulablePods.set({ controller }, pods.length)
    const reason = renderPodReason({ kind: 'noPools' })
    const asideFor = poolsAside(this.#deps)
    for (const pod of pods) {
      yield
      const aside = asideFor(pod)
      this.#remember(pod, aside ?? reason)
      if (aside !== undefined) this.#failed(pod, `No node can be launched for this pod: ${aside}`)
    }
  }

  /** Counts pending pods by the zone they can use, in steps. */
  *pendingZones(
    { pods, volumes }: Pick<SchedulingInput, 'pods' | 'volumes'>,
    { validZones }: Pick<SchedulingResult, 'validZones'>,
  ): Generator<undefined, void, undefined> {
    const { pendingPodsByZone } = this.#deps.metrics
    const counts = new Map<string, number>()
    for (const pod of pods) {
      yield
      if (pod.status?.phase !== 'Pending') continue
      const zone = effectiveZone(pod, volumes?.get(pod.metadata.uid ?? ''), validZones.get(pod))
      counts.set(zone, (counts.get(zone) ?? 0) + 1)
    }
    for (const zone of this.#zones) pendingPodsByZone.remove({ controller, zone })
    for (const [zone, count] of counts) pendingPodsByZone.set({ controller, zone }, count)
    this.#zones = [...counts.keys()]
  }

  /** Tells in steps of pods that found no place. Those that wait for a reservation are only remembered. */
  *failures(result: SchedulingResult, refused: readonly RefusedPod[]): Generator<undefined, void, undefined> {
    // Pods that are alike have one reason, which is rendered once.
    const texts = new Map<PodReason, string>()
    const failures = [...refused]
    for (const { pod, reason } of result.failures) {
      const text = texts.get(reason) ?? renderPodReason(reason)
      texts.set(reason, text)
      if (reason.kind === 'reservationDeferred') this.#remember(pod, text)
      else failures.push({ pod, reason: text })
      yield
    }
    this.#limitsReached(texts.keys())
    this.#deps.metrics.unschedulablePods.set({ controller }, failures.length)
    const asideFor = poolsAside(this.#deps)
    for (const { pod, reason: why } of failures) {
      yield
      const aside = asideFor(pod)
      const reason = aside === undefined ? why : `${why}; ${aside}`
      this.#remember(pod, reason)
      const message = `No node can be launched for this pod: ${reason}`
      this.#deps.logger.debug('could not schedule pod', {
        Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
        reason: message,
      })
      this.#failed(pod, message)
    }
    if (result.undecided.length > 0)
      this.#deps.logger.info('stopped deciding, the rest follows', { pods: result.undecided.length })
  }

  /** Tells of pools that pods wait for because of their limits. */
  #limitsReached(reasons: Iterable<PodReason>): void {
    const names = new Set<string>()
    for (const reason of reasons) {
      if (reason.kind !== 'noTemplate') continue
      for (const { nodePool, reason: why } of reason.templates)
        if (why.kind === 'nodeLimit' || why.kind === 'limits') names.add(nodePool)
    }
    for (const name of names) {
      const pool = this.#deps.caches.nodePools.get({ name })
      if (pool !== undefined) this.#deps.limits.reached(pool, 'pods wait that it could take')
    }
  }

  /** A pod has a place; pods that move off a leaving node were decided about long ago. */
  placed(pod: Pod, pool: NodePool | undefined, nodeClaim: string | undefined): void {
    if (!this.#isWaiting(pod)) return
    const { state, clock } = this.#deps
    const isPoolHealthy = pool !== undefined && isConditionTrue(pool, 'NodeRegistrationHealthy')
    const place = { nodeClaim, isPoolHealthy }
    this.#observe(state.podDecisions.placed(pod.metadata.uid ?? '', place, clock.now()))
  }

  nominated(pod: Pod, claim: NodeClaim | undefined, node: string | undefined): void {
    if (!isUnbound(pod)) return
    const targets = [
      ...(claim === undefined ? [] : [`nodeclaim/${claim.metadata.name}`]),
      ...(node === undefined ? [] : [`node/${node}`]),
    ]
    this.#deps.events.record({
      object: pod,
      type: 'Normal',
      reason: 'Nominated',
      message: `Pod should schedule on: ${targets.join(', ')}`,
      dedupe: [pod.metadata.uid ?? ''],
    })
  }

  /** A claim was made although nobody knows what it will cost. */
  unpriced(claim: NodeClaim, { nodePool, instanceTypes }: NewClaim): void {
    const what = `No price is known for any instance type that holds the pods of this NodeClaim (${shortened(instanceTypes)})`
    const consequence = 'its cost is left out of all sums, and it is not replaced to save money'
    this.#deps.logger.warn('bought without a known price', {
      NodePool: { name: nodePool },
      NodeClaim: { name: claim.metadata.name },
      'instance-types': shortened(instanceTypes),
    })
    this.#deps.events.record({
      object: claim,
      type: 'Warning',
      reason: 'PriceUnknown',
      message: `${what}; ${consequence}. A NodeOverlay with spec.price gives it one`,
      dedupe: [claim.metadata.uid ?? claim.metadata.name],
    })
  }

  poolWithoutTypes(pool: NodePool, becauseOfMinValues: boolean): void {
    this.#deps.events.record({
      object: pool,
      type: 'Warning',
      reason: 'NoCompatibleInstanceTypes',
      message: becauseOfMinValues
        ? 'No set of available instance types keeps minValues of this NodePool; lower minValues or widen its requirements'
        : 'No available instance type meets the requirements of this NodePool',
      dedupe: [pool.metadata.uid ?? ''],
      dedupeTtlMs: poolDedupeMs,
    })
  }

  #failed(pod: Pod, message: string): void {
    this.#deps.events.record({
      object: pod,
      type: 'Warning',
      reason: 'FailedScheduling',
      message,
      dedupe: [pod.metadata.uid ?? ''],
      dedupeTtlMs: failedDedupeMs,
    })
  }

  #remember(pod: Pod, reason: string): void {
    if (!this.#isWaiting(pod)) return
    const { state, clock } = this.#deps
    this.#observe(state.podDecisions.failed(pod.metadata.uid ?? '', reason, clock.now()))
  }

  /** A pod that went, or began to serve, while it was decided about is forgotten already, and stays so. */
  #isWaiting(pod: Pod): boolean {
    const { name, namespace, uid } = pod.metadata
    const key = namespace === undefined ? { name } : { name, namespace }
    const { caches, state } = this.#deps
    const current = caches.pods.get(key)
    if (current === undefined || current.metadata.uid !== uid) return false
    return isUnbound(pod) && !state.pods.isSettled(current)
  }

  #observe(waitedMs: number | undefined): void {
    if (waitedMs !== undefined) this.#deps.metrics.schedulingDecisionDuration.observe(waitedMs / 1000)
  }
}

function hinderingWishes({ spec }: Pod): readonly string[] {
  const wishes: string[] = []
  if ((spec.affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).length > 0)
    wishes.push('preferred pod anti-affinity')
  if ((spec.topologySpreadConstraints ?? []).some((c) => c.whenUnsatisfiable === 'ScheduleAnyway'))
    wishes.push('topology spread with ScheduleAnyway')
  return wishes
}

/** Pods that move off a leaving node are bound still. */
function isUnbound(pod: Pod): boolean {
  const spec = pod.spec as Partial<Pod['spec']> | null | undefined
  return (spec?.nodeName ?? '') === ''
}

/** `namespace/name` of the first pods. */
export function podList(pods: readonly Pod[]): string {
  return shortened(pods.map((pod) => keyOf(pod.metadata)))
}

/** The first names of a list that may be long. */
export function shortened(names: readonly string[]): string {
  const rest = names.length - 5
  return `${names.slice(0, 5).join(', ')}${rest > 0 ? ` and ${rest} other(s)` : ''}`
}
