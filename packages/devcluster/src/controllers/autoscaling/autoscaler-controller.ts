import { kinds, type Pod, quantityNanos, type ResourceType } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { ApiError, type LocalScale } from '../../contract.ts'
import type { ControllerContext } from '../context.ts'
import { type Index, keyOf, namespaceOf, splitKey } from '../loop/object-cache.ts'
import type { Outcome, Steps } from '../loop/reconcile-loop.ts'
import { setCondition } from '../objects/conditions.ts'
import {
  type Autoscaler,
  type ScalingRules,
  type WorkloadCondition,
  workloads,
} from '../objects/workloads.ts'
import { type Proposal, proposalOf } from './metric-replicas.ts'
import { bounded, type CompleteRules, ScalingHistory } from './scaling-history.ts'

const component = 'horizontal-pod-autoscaler'
const syncPeriodMs = 15_000
const podsPerStep = 1_000

/** Scales workloads by the resource usage of their pods, which `metric-replicas.ts` simulates. */
export function autoscalers(context: ControllerContext): void {
  const { store } = context
  const cache = store.cache(workloads.autoscaler)
  const podsByNamespace = store.cache(kinds.pod).index(namespaceOf)
  const histories = new Map<string, ScalingHistory>()
  const queue = context.loop.queue('horizontal-pod-autoscalers', (key) => {
    const { namespace, name } = splitKey(key)
    const autoscaler = store.get(workloads.autoscaler, namespace, name)
    if (autoscaler === undefined || autoscaler.metadata.deletionTimestamp !== undefined) return undefined
    const id = autoscaler.metadata.uid ?? ''
    const history = histories.get(id) ?? new ScalingHistory()
    histories.set(id, history)
    return new AutoscalerReconcile(context, podsByNamespace, autoscaler, history).run()
  })
  cache.onChange((now, before) => {
    if (now === undefined) histories.delete(before?.metadata.uid ?? '')
    else if (now.spec !== before?.spec) queue.add(keyOf(now))
  })
}

const defaultRules = {
  up: [
    { type: 'Pods', value: 4, periodSeconds: 15 },
    { type: 'Percent', value: 100, periodSeconds: 15 },
  ],
  down: [{ type: 'Percent', value: 100, periodSeconds: 15 }],
} as const

function completeRules(rules: ScalingRules | undefined, direction: 'up' | 'down'): CompleteRules {
  const { stabilizationWindowSeconds, selectPolicy = 'Max', policies = [], tolerance } = rules ?? {}
  const tolerated = tolerance === undefined ? undefined : quantityNanos(tolerance)
  return {
    stabilizationMs: (stabilizationWindowSeconds ?? (direction === 'up' ? 0 : 300)) * 1000,
    selectPolicy,
    policies: policies.length > 0 ? policies : defaultRules[direction],
    tolerance: tolerated === undefined ? 0.1 : Number(tolerated) / 1e9,
  }
}

/** The result of examining the target. */
interface Decision {
  readonly desired: number
  readonly reason: string
}

class AutoscalerReconcile {
  readonly #context: ControllerContext
  readonly #podsByNamespace: Index<Pod>
  readonly #autoscaler: Autoscaler
  readonly #history: ScalingHistory
  readonly #nowMs: number
  readonly #up: CompleteRules
  readonly #down: CompleteRules
  #conditions: readonly WorkloadCondition[]
  #metrics: readonly object[] | undefined

  constructor(
    context: ControllerContext,
    podsByNamespace: Index<Pod>,
    autoscaler: Autoscaler,
    history: ScalingHistory,
  ) {
    this.#context = context
    this.#podsByNamespace = podsByNamespace
    this.#autoscaler = autoscaler
    this.#history = history
    this.#nowMs = context.clock.now()
    const { behavior } = autoscaler.spec
    this.#up = completeRules(behavior?.scaleUp, 'up')
    this.#down = completeRules(behavior?.scaleDown, 'down')
    this.#conditions = autoscaler.status?.conditions ?? []
  }

  *run(): Steps {
    const again: Outcome = { afterMs: syncPeriodMs }
    const target = this.#target()
    if (target === undefined) return again
    const { type, scale } = target
    const message = "the HPA controller was able to get the target's current scale"
    this.#condition('AbleToScale', 'True', 'SucceededGetScale', message)
    this.#history.begin(scale.replicas, this.#nowMs)
    const decision = yield* this.#decide(scale)
    if (decision === undefined) {
      this.#writeStatus(scale.replicas, this.#autoscaler.status?.desiredReplicas ?? 0)
      return again
    }
    if (decision.desired === scale.replicas) this.#writeStatus(scale.replicas, scale.replicas)
    else this.#rescale(type, scale.replicas, decision)
    return again
  }

  #target(): { readonly type: ResourceType; readonly scale: LocalScale } | undefined {
    const { kind, name, apiVersion = '' } = this.#autoscaler.spec.scaleTargetRef
    const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
    const { api } = this.#context.store
    const type = api.definitions().find((each) => each.kind === kind && each.group === group)
    const fail = (why: string): undefined => {
      const message = `the HPA controller was unable to get the target's current scale: ${why}`
      this.#condition('AbleToScale', 'False', 'FailedGetScale', message)
      this.#tell('Warning', 'FailedGetScale', why)
      this.#writeStatus(
        this.#autoscaler.status?.currentReplicas ?? 0,
        this.#autoscaler.status?.desiredReplicas ?? 0,
      )
    }
    if (type === undefined) return fail(`no matches for kind "${kind}" in group "${group}"`)
    try {
      const scale = api.scale(type, this.#autoscaler.metadata.namespace, name)
      const plural = group === '' ? type.plural : `${type.plural}.${group}`
      return scale === undefined ? fail(`${plural} "${name}" not found`) : { type, scale }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return fail(error.message)
    }
  }

  *#decide(scale: LocalScale): Generator<undefined, Decision | undefined, undefined> {
    const { minReplicas = 1, maxReplicas } = this.#autoscaler.spec
    const { replicas } = scale
    if (replicas === 0 && minReplicas !== 0) {
      const message = 'scaling is disabled since the replica count of the target is zero'
      this.#condition('ScalingActive', 'False', 'ScalingDisabled', message)
      return { desired: 0, reason: '' }
    }
    if (replicas > maxReplicas)
      return { desired: maxReplicas, reason: 'Current number of replicas above Spec.MaxReplicas' }
    if (replicas < minReplicas)
      return { desired: minReplicas, reason: 'Current number of replicas below Spec.MinReplicas' }
    const pods: Pod[] = []
    let seen = 0
    for (const pod of this.#podsByNamespace.of(this.#autoscaler.metadata.namespace ?? '')) {
      if (scale.selects(pod.metadata.labels ?? {})) pods.push(pod)
      if (++seen % podsPerStep === 0) yield
    }
    const best = this.#highest(pods, replicas)
    if (best === undefined) return undefined
    const reason = best.replicas > replicas ? `${best.metric} above target` : 'All metrics below target'
    return { desired: this.#normalized(replicas, best.replicas), reason }
  }

  /** The highest proposal of all metrics; unknown if a metric that is not known might be higher. */
  #highest(pods: readonly Pod[], replicas: number): Extract<Proposal, { kind: 'replicas' }> | undefined {
    const tolerances = { up: this.#up.tolerance, down: this.#down.tolerance }
    const situation = { pods, replicas, tolerances, nowMs: this.#nowMs }
    const proposals = (this.#autoscaler.spec.metrics ?? []).map((metric) => proposalOf(metric, situation))
    const known = proposals.filter((each) => each.kind === 'replicas')
    const unknown = proposals.find((each) => each.kind === 'unknown')
    const best = known.toSorted((a, b) => b.replicas - a.replicas)[0]
    this.#metrics = known.map(({ status }) => status)
    if (unknown !== undefined && (best === undefined || best.replicas < replicas)) {
      const message = `the HPA was unable to compute the replica count: ${unknown.message}`
      this.#condition('ScalingActive', 'False', unknown.reason, message)
      this.#tell('Warning', unknown.reason, unknown.message)
      const invalid = `invalid metrics (${proposals.length - known.length} invalid out of ${proposals.length}), first error is: ${unknown.message}`
      this.#tell('Warning', 'FailedComputeMetricsReplicas', invalid)
      return undefined
    }
    if (best === undefined) return undefined
    const message = `the HPA was able to successfully calculate a replica count from ${best.metric}`
    this.#condition('ScalingActive', 'True', 'ValidMetricFound', message)
    return best
  }

  /** The recommendation within the stabilization windows, policies and bounds of the autoscaler. */
  #normalized(current: number, wanted: number): number {
    const stable = this.#history.stabilize(current, wanted, this.#up, this.#down, this.#nowMs)
    if (stable === wanted) {
      const message = 'recommended size matches current size'
      this.#condition('AbleToScale', 'True', 'ReadyForNewScale', message)
    } else {
      const [reason, words] =
        stable > wanted
          ? ['ScaleDownStabilized', 'higher than current one, applying the highest']
          : ['ScaleUpStabilized', 'lower than current one, applying the lowest']
      const message = `recent recommendations were ${words} recent recommendation`
      this.#condition('AbleToScale', 'True', reason, message)
    }
    const { minReplicas = 1, maxReplicas } = this.#autoscaler.spec
    const least = {
      replicas: minReplicas,
      reason: 'TooFewReplicas',
      message: 'the desired replica count is less than the minimum replica count',
    }
    const most = {
      replicas: maxReplicas,
      reason: 'TooManyReplicas',
      message: 'the desired replica count is more than the maximum replica count',
    }
    const lowest = this.#history.lowerLimit(current, this.#down, this.#nowMs)
    const highest = this.#history.upperLimit(current, this.#up, this.#nowMs)
    const slowest = {
      replicas: lowest,
      reason: 'ScaleDownLimit',
      message: 'the desired replica count is decreasing faster than the maximum scale rate',
    }
    const fastest = {
      replicas: highest,
      reason: 'ScaleUpLimit',
      message: 'the desired replica count is increasing faster than the maximum scale rate',
    }
    const { replicas, reason, message } = bounded(
      stable,
      lowest > minReplicas ? slowest : least,
      highest < maxReplicas ? fastest : most,
    )
    const isLimited = reason === 'DesiredWithinRange' ? 'False' : 'True'
    this.#condition('ScalingLimited', isLimited, reason, message)
    return replicas
  }

  #rescale(type: ResourceType, replicas: number, { desired, reason }: Decision): void {
    const { api } = this.#context.store
    const { namespace } = this.#autoscaler.metadata
    const { name } = this.#autoscaler.spec.scaleTargetRef
    try {
      api.setScale(type, namespace, name, desired)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const message = `the HPA controller was unable to update the target scale: ${error.message}`
      this.#condition('AbleToScale', 'False', 'FailedUpdateScale', message)
      this.#tell(
        'Warning',
        'FailedRescale',
        `New size: ${desired}; reason: ${reason}; error: ${error.message}`,
      )
      this.#writeStatus(replicas, replicas)
      return
    }
    const message = `the HPA controller was able to update the target scale to ${desired}`
    this.#condition('AbleToScale', 'True', 'SucceededRescale', message)
    this.#tell('Normal', 'SuccessfulRescale', `New size: ${desired}; reason: ${reason}`)
    this.#history.scaled(replicas, desired, this.#nowMs)
    this.#writeStatus(replicas, desired, rfc3339(this.#nowMs))
  }

  #writeStatus(currentReplicas: number, desiredReplicas: number, scaledAt?: string): void {
    const { generation } = this.#autoscaler.metadata
    const lastScaleTime = scaledAt ?? this.#autoscaler.status?.lastScaleTime
    const metrics = this.#metrics ?? this.#autoscaler.status?.currentMetrics ?? null
    this.#context.store.setStatus(workloads.autoscaler, this.#autoscaler, {
      ...(generation !== undefined && { observedGeneration: generation }),
      ...(lastScaleTime !== undefined && { lastScaleTime }),
      currentReplicas,
      desiredReplicas,
      currentMetrics: metrics,
      conditions: this.#conditions,
    })
  }

  #condition(type: string, status: 'True' | 'False', reason: string, message: string): void {
    this.#conditions = setCondition(this.#conditions, { type, status, reason, message }, this.#nowMs)
  }

  #tell(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#context.events.record(component, this.#autoscaler, type, reason, message)
  }
}
