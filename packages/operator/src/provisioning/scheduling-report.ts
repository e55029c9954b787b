/** Events, metrics and remembered outcomes of a scheduling pass (scheduling.md 12). */
import { labels, type NodeClaim, type NodePool, type Pod } from '@tenon/api'
import {
  type Deferral,
  effectiveZone,
  type NewClaim,
  type PodReason,
  type PoolWithoutTypes,
  renderPodReason,
  renderShortage,
  type SchedulingInput,
  type SchedulingResult,
} from '@tenon/engine'
import type { EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import { podList } from '../text.ts'
import { type DecisionMemory, isUnbound } from './decision-memory.ts'
import { poolsAside, type PoolsAsideParts } from './pools-aside.ts'
import type { UnreadyPool } from './input/eligible-pools.ts'
import { noPoolsText, type OutlookCode, waitingByCode } from './pod-outlook.ts'
import type { LimitReport } from '../nodepool/limit-report.ts'
import type { IgnoredPod, RefusedPod } from './input/eligible-pods.ts'
import type { GatheredInput } from './input/scheduling-input.ts'
import { labelsOf } from '../state/nodes/state-node.ts'
import type { Metrics } from '../metrics/metrics.ts'

interface Dependencies extends PoolsAsideParts {
  readonly events: EventRecorder
  readonly metrics: Pick<Metrics, 'ignoredPods' | 'pendingPodsByZone' | 'unschedulablePods'>
  /** Pods by code; undefined in compatibility mode. */
  readonly waitingPods: Metrics['waitingPods'] | undefined
  readonly logger: Logger
  readonly limits: LimitReport
  readonly memory: DecisionMemory
  /** Reports on groups of pods. */
  readonly groups: { readonly decided: (result: SchedulingResult) => void }
}

const controller = 'provisioner'
const failedDedupeMs = 5 * 60_000
const poolDedupeMs = 60_000

export class SchedulingReport {
  readonly #deps: Dependencies
  #zones: readonly string[] = []
  #codes: readonly OutlookCode[] = []
  /** Pods that the pass leaves out, for the same metric. */
  #leftOut: readonly (readonly ['leftOut', number])[] = []

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Pods that were left out of the decision. */
  ignored(pods: readonly IgnoredPod[]): void {
    this.#deps.metrics.ignoredPods.set(pods.length)
    this.#leftOut = pods.length > 0 ? [['leftOut', pods.length]] : []
    for (const { pod, reason, isSilent } of pods) {
      this.#deps.memory.failed(pod, reason)
      if (!isSilent) this.#failed(pod, `Pod skipped until fixed:  ${reason}`)
    }
  }

  /** @param waiting NodePools that cannot launch, with the reason. */
  noPools(waiting: readonly string[]): void {
    this.#deps.logger.info('no nodepool can launch', { waiting })
  }

  /** @param tookMs milliseconds from the beginning of the pass. */
  decided(pods: readonly Pod[], tookMs: number): void {
    this.#deps.logger.info('found provisionable pod(s)', {
      Pods: podList(pods),
      duration: `${tookMs.toFixed(1)}ms`,
    })
  }

  /** Resets the metrics of the last pass: nothing is pending. */
  nothingToDo(): void {
    const { unschedulablePods, pendingPodsByZone } = this.#deps.metrics
    unschedulablePods.set({ controller }, 0)
    this.#waiting(new Map(this.#leftOut))
    for (const zone of this.#zones) pendingPodsByZone.set({ controller, zone }, 0)
  }

  /**
   * No NodePool may launch. Their conditions say why; only pods that an invalid NodePool would serve get an event, as that
   * does not pass by itself. In steps.
   */
  *withoutPools(
    pods: readonly Pod[],
    unready: readonly UnreadyPool[],
  ): Generator<undefined, void, undefined> {
    this.#deps.metrics.unschedulablePods.set({ controller }, pods.length)
    this.#waiting(new Map([...this.#leftOut, ['noPools', pods.length]]))
    const reason = noPoolsText(unready)
    const asideFor = poolsAside(this.#deps)
    for (const pod of pods) {
      yield
      const aside = asideFor(pod)
      this.#deps.memory.failed(pod, aside ?? reason)
      if (aside !== undefined) this.#failed(pod, `No node can be launched for this pod: ${aside}`)
    }
  }

  /** Sets the metric; codes of the last pass that no pod has any more are removed. */
  #waiting(counts: ReadonlyMap<OutlookCode, number>): void {
    const { waitingPods } = this.#deps
    if (waitingPods === undefined) return
    for (const code of this.#codes) if (!counts.has(code)) waitingPods.remove({ code })
    for (const [code, count] of counts) waitingPods.set({ code }, count)
    this.#codes = [...counts.keys()]
  }

  /** Counts pending pods by the zones they can use, in steps. */
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

  /** Reports what a decision says of each pod and NodePool, in steps. */
  *outcome(input: GatheredInput, result: SchedulingResult): Generator<undefined, void, undefined> {
    const { caches, groups, logger } = this.#deps
    this.#waiting(waitingByCode({ input, result }))
    for (const { pod, node } of result.placements) {
      yield
      const target = input.stateNodes.get(node)
      if (target === undefined) continue
      const pool = caches.nodePools.get({ name: labelsOf(target)[labels.nodePool] ?? '' })
      this.placed(pod, pool, target.claim?.metadata.name)
      this.nominated(pod, target.claim, target.node?.metadata.name)
    }
    // A pod whose claim waits for a limit has a decision all the same.
    for (const { nodePool, pods } of [...result.claims, ...deferredFor('limitReserved', result)]) {
      const current = caches.nodePools.get({ name: nodePool })
      for (const pod of pods) this.placed(pod, current, undefined)
      yield
    }
    const waitingForTrial = deferredFor('offeringsOnTrial', result).flatMap(({ pods }) => pods)
    if (waitingForTrial.length > 0)
      logger.info('pods wait for one launch that tests whether there is capacity again', {
        Pods: podList(waitingForTrial),
      })
    groups.decided(result)
    yield* this.failures(result, input.refused)
    for (const pool of input.poolsWithoutListing) this.#poolWithoutTypes(pool, { becauseOfMinValues: false })
    for (const { nodePool: name, ...why } of result.poolsWithoutTypes) {
      const pool = caches.nodePools.get({ name })
      if (pool !== undefined) this.#poolWithoutTypes(pool, why)
    }
    for (const object of result.malformed) logger.error('ignored an invalid object', { ...object })
  }

  /** Events of pods without a place, in steps. Pods that wait for a reservation are only remembered. */
  *failures(
    result: Pick<SchedulingResult, 'failures' | 'undecided'>,
    refused: readonly RefusedPod[],
  ): Generator<undefined, void, undefined> {
    // Pods that are alike share one reason, which is rendered once.
    const texts = new Map<PodReason, string>()
    const failures = [...refused]
    for (const { pod, reason } of result.failures) {
      // A group gets one event as a whole.
      const isQuiet = reason.kind === 'reservationDeferred' || reason.kind.startsWith('podGroup')
      const text = texts.get(reason) ?? renderPodReason(reason)
      texts.set(reason, text)
      if (isQuiet) this.#deps.memory.failed(pod, text)
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
      this.#deps.memory.failed(pod, reason)
      const message = `No node can be launched for this pod: ${reason}`
      this.#deps.logger.debug('could not schedule pod', {
        Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
        reason: message,
      })
      this.#failed(pod, message)
    }
    if (result.undecided.length > 0)
      this.#deps.logger.info('scheduling pass stopped early; the rest follows', {
        pods: result.undecided.length,
      })
  }

  /** Events of NodePools whose limits keep pods pending. */
  #limitsReached(reasons: Iterable<PodReason>): void {
    const names = new Set<string>()
    for (const reason of reasons) {
      if (reason.kind !== 'noTemplate') continue
      for (const { nodePool, reason: why } of reason.templates)
        if (why.kind === 'nodeLimit' || why.kind === 'limits') names.add(nodePool)
    }
    for (const name of names) {
      this.#deps.limits.reachedBy(name, 'pods that would fit are pending')
    }
  }

  /** As {@link DecisionMemory.placed}. */
  placed(pod: Pod, pool: NodePool | undefined, nodeClaim: string | undefined): void {
    this.#deps.memory.placed(pod, pool, nodeClaim)
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

  #poolWithoutTypes(pool: NodePool, why: Omit<PoolWithoutTypes, 'nodePool'>): void {
    this.#deps.events.record({
      object: pool,
      type: 'Warning',
      reason: 'NoCompatibleInstanceTypes',
      message: withoutTypes(why),
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
}

function withoutTypes({ becauseOfMinValues, unavailable }: Omit<PoolWithoutTypes, 'nodePool'>): string {
  if (becauseOfMinValues)
    return 'No set of available instance types satisfies minValues of this NodePool; lower minValues or widen its requirements'
  if (unavailable === undefined) return 'No available instance type meets the requirements of this NodePool'
  return `What meets the requirements of this NodePool is unavailable now (${renderShortage(unavailable)}); it is retried automatically`
}

function deferredFor(kind: Deferral['kind'], { deferred }: SchedulingResult): readonly NewClaim[] {
  return deferred.flatMap(({ claim, because }) => (because.kind === kind ? [claim] : []))
}
