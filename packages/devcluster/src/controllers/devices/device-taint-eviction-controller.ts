import { type DeviceTaintRule, deviceTaintRuleKinds, kinds, type Pod, type ResourceClaim } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { isDeepStrictEqual } from 'node:util'
import type { ControllerContext } from '../context.ts'
import { type Index, keyOf, splitKey } from '../loop/object-cache.ts'
import type { Outcome } from '../loop/reconcile-loop.ts'
import { disruptionTarget, isTerminating, withCondition } from '../objects/pods.ts'
import {
  type DeviceEviction,
  earlierEviction,
  evictionOf,
  poolKey,
  type TaintSources,
} from './evicting-taints.ts'
import { RuleReports } from './rule-reports.ts'

const component = 'device-taint-eviction'
/** Delay of a rule's status write after evictions. */
const reportAfterMs = 10_000

/**
 * Deletes pods that use devices with NoExecute taints which their claims do not tolerate, and writes the progress to
 * the status of DeviceTaintRules, like the controller of Kubernetes.
 */
export function deviceTaintEviction(context: ControllerContext): void {
  const { store, loop } = context
  const pods = store.cache(kinds.pod)
  const claims = store.cache(kinds.resourceClaim)
  const slices = store.cache(kinds.resourceSlice)
  const rules = store.cache(deviceTaintRuleKinds.v1beta2)
  const claimsOfPool: Index<ResourceClaim> = claims.index(poolsOfClaim)
  const slicesOfPool = slices.index(({ spec }) => [poolKey(spec.driver, spec.pool.name)])
  const sources = (only?: DeviceTaintRule): TaintSources => ({
    slices: (pool) => (only === undefined ? slicesOfPool.of(pool) : []),
    rules: only === undefined ? rules.values() : [only],
  })
  const evictions = new Evictions(context, sources)
  const reports = new RuleReports({
    store,
    clock: context.clock,
    evicted: (rule) => evictions.evicted(rule),
    pending: (rule) => [...pods.values()].filter((pod) => evictions.isFor(pod, rule)),
    devices: () => {
      const published = [...slices.values()].flatMap(({ spec }) =>
        (spec.devices ?? []).map(({ name }) => ({ driver: spec.driver, pool: spec.pool.name, device: name })),
      )
      const allocated = [...claims.values()].flatMap(
        ({ status }) => status?.allocation?.devices?.results ?? [],
      )
      return { published, allocated }
    },
  })
  const ruleQueue = loop.queue('device-taint-rules', (name) => reports.reconcile(name))
  const podQueue = loop.queue('device-taint-eviction', (key) =>
    evictions.reconcile(key, (rule) => ruleQueue.addAfter(rule.metadata.name, reportAfterMs)),
  )
  const lookAt = (claim: ResourceClaim): void => {
    for (const { apiGroup = '', resource, name } of claim.status?.reservedFor ?? [])
      if (apiGroup === '' && resource === 'pods') podQueue.add(`${claim.metadata.namespace ?? ''}/${name}`)
  }
  pods.onChange((now, before, latest) => {
    if (now === undefined) return evictions.forget(keyOf(latest))
    if ((now.spec.resourceClaims ?? []).length === 0) return
    if (now.spec.nodeName !== before?.spec.nodeName) podQueue.add(keyOf(now))
  })
  claims.onChange((now, before) => {
    if (now !== undefined && !isDeepStrictEqual(now.status, before?.status)) lookAt(now)
  })
  slices.onChange((now, before, { spec }) => {
    if (isDeepStrictEqual(now?.spec.devices, before?.spec.devices)) return
    for (const claim of claimsOfPool.of(poolKey(spec.driver, spec.pool.name))) lookAt(claim)
  })
  rules.onChange((now, before, latest) => {
    if (isDeepStrictEqual(now?.spec, before?.spec)) return
    ruleQueue.add(latest.metadata.name)
    for (const claim of claims.values()) lookAt(claim)
  })
}

function poolsOfClaim({ status }: ResourceClaim): readonly string[] {
  const results = status?.allocation?.devices?.results ?? []
  return [...new Set(results.map(({ driver, pool }) => poolKey(driver, pool)))]
}

class Evictions {
  readonly #context: ControllerContext
  readonly #sources: (only?: DeviceTaintRule) => TaintSources
  /** Keys of pods with a future eviction. */
  readonly #waiting = new Set<string>()
  /** The number of evicted pods, by UID of the rule. */
  readonly #evicted = new Map<string, number>()

  constructor(context: ControllerContext, sources: (only?: DeviceTaintRule) => TaintSources) {
    this.#context = context
    this.#sources = sources
  }

  forget(key: string): void {
    this.#waiting.delete(key)
  }

  /** How many pods were evicted for a rule. */
  evicted({ metadata }: DeviceTaintRule): number {
    return this.#evicted.get(metadata.uid ?? '') ?? 0
  }

  /** Whether a rule evicts an existing pod, or would if its effect were NoExecute. */
  isFor(pod: Pod, rule: DeviceTaintRule): boolean {
    const { spec } = rule
    const evicting: DeviceTaintRule = {
      ...rule,
      spec: { ...spec, taint: { ...spec.taint, effect: 'NoExecute' } },
    }
    return !isTerminating(pod) && this.#evictionOf(pod, this.#sources(evicting)) !== undefined
  }

  reconcile(key: string, report: (rule: DeviceTaintRule) => void): Outcome {
    const { store, clock, events } = this.#context
    const { namespace, name } = splitKey(key)
    const pod = store.get(kinds.pod, namespace, name)
    if (pod === undefined || isTerminating(pod)) return this.#done(key)
    const eviction = this.#evictionOf(pod, this.#sources())
    if (eviction === undefined) {
      if (this.#waiting.delete(key))
        events.record(component, pod, 'Normal', 'DeviceTaintManagerEviction', 'Cancelling deletion')
      return undefined
    }
    for (const rule of eviction.rules) report(rule)
    const leftMs = eviction.atMs - clock.now()
    if (leftMs > 0) {
      this.#waiting.add(key)
      return { afterMs: leftMs }
    }
    this.#evict(pod)
    for (const { metadata } of eviction.rules)
      this.#evicted.set(metadata.uid ?? '', (this.#evicted.get(metadata.uid ?? '') ?? 0) + 1)
    return this.#done(key)
  }

  #done(key: string): undefined {
    this.#waiting.delete(key)
  }

  #evictionOf(pod: Pod, sources: TaintSources): DeviceEviction | undefined {
    const { namespace, uid } = pod.metadata
    if ((pod.spec.nodeName ?? '') === '') return undefined
    let eviction: DeviceEviction | undefined
    for (const { name, resourceClaimName } of pod.spec.resourceClaims ?? []) {
      const made = pod.status?.resourceClaimStatuses?.find((each) => each.name === name)
      const claimName = resourceClaimName ?? made?.resourceClaimName
      const claim = claimName && this.#context.store.get(kinds.resourceClaim, namespace, claimName)
      if (!claim || claim.status?.reservedFor?.some((user) => user.uid === uid) !== true) continue
      eviction = earlierEviction(eviction, evictionOf(claim, sources))
    }
    return eviction
  }

  #evict(pod: Pod): void {
    const { store, clock, events } = this.#context
    events.record(component, pod, 'Normal', 'DeviceTaintManagerEviction', 'Marking for deletion')
    const condition = disruptionTarget(
      'DeletionByDeviceTaintManager',
      'Device Taint manager: deleting due to NoExecute taint',
      rfc3339(clock.now()),
    )
    store.setStatus(kinds.pod, pod, { ...pod.status, conditions: withCondition(pod, condition) })
    store.delete(kinds.pod, pod)
  }
}
