/** What a drain waits for, pod by pod, with the rule that holds each and when it ends. */
import type { Pod, PodDisruptionBudget } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { doNotDisrupt, isTerminating, keyOf } from '../../state/pods/pods.ts'
import type { BudgetIndex } from './budget-index.ts'
import { drainTier, type DrainTier, planDrain } from './drain.ts'
import { forcedAtMs } from './force.ts'

/** Why a pod is still on its node. Times are RFC 3339. */
export type DrainRule =
  /** Told to go; `until` is when its grace period ends. */
  | { readonly kind: 'leaving'; readonly until: string }
  /** Annotation `karpenter.sh/do-not-disrupt`; without `until` it holds for as long as it is there. */
  | { readonly kind: 'doNotDisrupt'; readonly until?: string }
  | {
      readonly kind: 'podDisruptionBudget'
      /** `namespace/name`. */
      readonly budget: string
      readonly currentHealthy: number
      readonly desiredHealthy: number
    }
  /** The API server evicts no pod that has more than one. */
  | { readonly kind: 'severalPodDisruptionBudgets'; readonly budgets: readonly string[] }
  /** Its turn comes when the pods of `after` are gone. */
  | { readonly kind: 'laterTier'; readonly after: DrainTier }
  /** Nothing holds it; its eviction is under way. */
  | { readonly kind: 'evicting' }

/** A pod that a drain waits for. */
export interface WaitingPod {
  readonly namespace: string
  readonly name: string
  readonly rule: DrainRule
  /** From when on the deadline of the node overrides the rule; RFC 3339. Absent: never. */
  readonly forcedAt?: string
}

/** Where the drain of one node stands. */
export interface DrainReport {
  readonly node: string
  readonly nodeClaim?: string
  /** When the drain began; RFC 3339. */
  readonly since: string
  /** When pods that are left are deleted whatever holds them; RFC 3339. Absent: never. */
  readonly deadline?: string
  /** By namespace and name. */
  readonly pods: readonly WaitingPod[]
  /** Persistent volumes to be detached; looked at once no pod is waited for. */
  readonly volumes: readonly string[]
}

/** What a report is made from. */
export interface DrainFacts {
  readonly node: string
  readonly nodeClaim?: string
  readonly since: string
  /** Infinity when nothing limits the drain. */
  readonly deadlineMs: number
  /** All pods on the node. */
  readonly pods: readonly Pod[]
  readonly budgets: BudgetIndex
  readonly pendingVolumes: readonly string[]
}

/** @param nowMs Unix milliseconds. */
export function drainReport(facts: DrainFacts, nowMs: number): DrainReport {
  const { node, nodeClaim, since, deadlineMs } = facts
  const plan = planDrain(facts.pods, deadlineMs, nowMs)
  const pods = plan.waiting
    .map((pod) => waitingPod(pod, facts, plan.tier, nowMs))
    .toSorted((one, other) => byText(one.namespace, other.namespace) || byText(one.name, other.name))
  return {
    node,
    ...(nodeClaim !== undefined && { nodeClaim }),
    since,
    ...(Number.isFinite(deadlineMs) && { deadline: rfc3339(deadlineMs) }),
    pods,
    volumes: pods.length === 0 ? facts.pendingVolumes : [],
  }
}

/** Whether a pod stays although its turn has come and it was not told to go. */
export function isHeld({ rule }: WaitingPod): boolean {
  return (
    rule.kind === 'doNotDisrupt' ||
    rule.kind === 'podDisruptionBudget' ||
    rule.kind === 'severalPodDisruptionBudgets'
  )
}

function waitingPod(
  pod: Pod,
  { budgets, deadlineMs }: DrainFacts,
  tier: DrainTier | undefined,
  nowMs: number,
): WaitingPod {
  const { namespace = '', name } = pod.metadata
  const forcedMs = isTerminating(pod) ? Number.POSITIVE_INFINITY : forcedAtMs(pod, deadlineMs)
  return {
    namespace,
    name,
    rule: nowMs > forcedMs ? { kind: 'evicting' } : ruleOf(pod, budgets, tier, nowMs),
    ...(Number.isFinite(forcedMs) && { forcedAt: rfc3339(forcedMs) }),
  }
}

/** The rule that must give way first, in the order in which the eviction of a pod meets them. */
function ruleOf(pod: Pod, budgets: BudgetIndex, tier: DrainTier | undefined, nowMs: number): DrainRule {
  const leavingBy = pod.metadata.deletionTimestamp
  if (leavingBy !== undefined) return { kind: 'leaving', until: leavingBy }
  const protection = doNotDisrupt(pod, nowMs)
  if (protection.kind === 'active') {
    const isForGood = !Number.isFinite(protection.untilMs)
    return { kind: 'doNotDisrupt', ...(!isForGood && { until: rfc3339(protection.untilMs) }) }
  }
  const covering = pod.status?.phase === 'Pending' ? [] : budgets.covering(pod)
  const [budget] = covering
  if (covering.length > 1)
    return { kind: 'severalPodDisruptionBudgets', budgets: covering.map(({ metadata }) => keyOf(metadata)) }
  if (budget !== undefined && !allows(budget, pod)) {
    const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {}
    return { kind: 'podDisruptionBudget', budget: keyOf(budget.metadata), currentHealthy, desiredHealthy }
  }
  if (tier !== undefined && drainTier(pod) !== tier) return { kind: 'laterTier', after: tier }
  return { kind: 'evicting' }
}

/** As the API server would answer an eviction now. */
function allows({ spec, status = {} }: PodDisruptionBudget, pod: Pod): boolean {
  const { disruptionsAllowed = 0, currentHealthy = 0, desiredHealthy = 0 } = status
  if (disruptionsAllowed > 0) return true
  if (pod.status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True')) return false
  if (spec.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy
}

const byText = (one: string, other: string) => (one < other ? -1 : Number(one > other))
