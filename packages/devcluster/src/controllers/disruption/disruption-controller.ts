import { kinds, type Pod, type PodDisruptionBudget, ownValue, setOwn, matchesSelector } from '@tenon/api'
import type { ControllerContext } from '../context.ts'
import { type Index, keyOf, namespaceOf, splitKey } from '../loop/object-cache.ts'
import type { Steps } from '../loop/reconcile-loop.ts'
import { setCondition } from '../objects/conditions.ts'
import { resolveIntOrPercent } from '../objects/int-or-percent.ts'
import { conditionOf, isFinished, isReady, isTerminating } from '../objects/pods.ts'
import type { WorkloadCondition } from '../objects/workloads.ts'
import { expectedPods } from './expected-pods.ts'

/** How long an allowed eviction counts against the budget while its pod still exists. */
const disruptedPodMs = 120_000
const podsPerStep = 1_000

interface Budget extends PodDisruptionBudget {
  readonly status?: PodDisruptionBudget['status'] & {
    readonly disruptedPods?: Readonly<Record<string, string>>
    readonly conditions?: readonly WorkloadCondition[]
  }
}

/** Maintains in every PDB's status how many of its pods may be evicted. */
export function disruptionBudgets(context: ControllerContext): void {
  const { store } = context
  const budgets = store.cache(kinds.podDisruptionBudget)
  const byNamespace = budgets.index(namespaceOf)
  const pods = store.cache(kinds.pod)
  const found = { byNamespace: pods.index(namespaceOf), byLabel: pods.index(labelsOf) }
  const queue = context.loop.queue('disruption', (key) => reconcile(context, found, key))
  budgets.onChange((now) => {
    if (now !== undefined) queue.add(keyOf(now))
  })
  pods.onChange((now, before, pod) => {
    if (now !== undefined && before !== undefined && !isRelevant(now, before)) return
    for (const budget of byNamespace.of(pod.metadata.namespace ?? '')) {
      const { selector } = budget.spec
      const touched =
        matchesSelector(selector, now?.metadata.labels) || matchesSelector(selector, before?.metadata.labels)
      if (touched) queue.add(keyOf(budget))
    }
  })
}

/** Finds pods by selector. */
interface FoundPods {
  readonly byNamespace: Index<Pod>
  /** By namespace and label. */
  readonly byLabel: Index<Pod>
}

const labelKey = (namespace: string, name: string, value: string) => `${namespace}/${name}=${value}`

function labelsOf({ metadata: { namespace = '', labels = {} } }: Pod): readonly string[] {
  return Object.entries(labels).map(([name, value]) => labelKey(namespace, name, value))
}

function isRelevant(now: Pod, before: Pod): boolean {
  return (
    now.metadata.labels !== before.metadata.labels ||
    now.metadata.ownerReferences !== before.metadata.ownerReferences ||
    now.metadata.deletionTimestamp !== before.metadata.deletionTimestamp ||
    now.status?.phase !== before.status?.phase ||
    conditionOf(now, 'Ready')?.status !== conditionOf(before, 'Ready')?.status
  )
}

function* reconcile(context: ControllerContext, found: FoundPods, key: string): Steps {
  const { namespace, name } = splitKey(key)
  const budget = context.store.get<Budget>(kinds.podDisruptionBudget, namespace, name)
  if (budget === undefined || budget.metadata.deletionTimestamp !== undefined) return undefined
  const pods = yield* podsOf(budget, found)
  const counted = counts(context, budget, pods)
  yield
  const { disruptedPods, nextExpiryMs } = stillDisrupted(budget, pods, context.clock.now())
  const healthy = pods.filter(
    (pod) => isReady(pod) && !isTerminating(pod) && ownValue(disruptedPods, pod.metadata.name) === undefined,
  ).length
  const known = counted.kind === 'counted'
  const { expected, desired } = known ? counted : { expected: pods.length, desired: 0 }
  const allowed = known && expected > 0 ? Math.max(0, healthy - desired) : 0
  const condition: WorkloadCondition = {
    type: 'DisruptionAllowed',
    status: allowed > 0 ? 'True' : 'False',
    reason: known ? (allowed > 0 ? 'SufficientPods' : 'InsufficientPods') : 'SyncFailed',
    message: known ? '' : counted.message,
    ...(budget.metadata.generation !== undefined && { observedGeneration: budget.metadata.generation }),
  }
  context.store.setStatus(kinds.podDisruptionBudget, budget, {
    currentHealthy: healthy,
    desiredHealthy: desired,
    expectedPods: expected,
    disruptionsAllowed: allowed,
    ...(budget.metadata.generation !== undefined && { observedGeneration: budget.metadata.generation }),
    ...(Object.keys(disruptedPods).length > 0 && { disruptedPods }),
    conditions: setCondition(budget.status?.conditions, condition, context.clock.now()),
  })
  return { touched: pods.length, ...(nextExpiryMs !== undefined && { afterMs: nextExpiryMs }) }
}

function* podsOf(
  { metadata: { namespace = '' }, spec: { selector } }: Budget,
  { byNamespace, byLabel }: FoundPods,
): Generator<undefined, Pod[], undefined> {
  const pods: Pod[] = []
  // One required label narrows the search enough.
  const [label] = Object.entries(selector?.matchLabels ?? {})
  const near = label === undefined ? byNamespace.of(namespace) : byLabel.of(labelKey(namespace, ...label))
  let seen = 0
  for (const pod of near) {
    if (++seen % podsPerStep === 0) yield
    if (!isFinished(pod) && matchesSelector(selector, pod.metadata.labels)) pods.push(pod)
  }
  return pods
}

type Counts =
  | { readonly kind: 'counted'; readonly expected: number; readonly desired: number }
  | { readonly kind: 'unknown'; readonly message: string }

/** The expected number of pods, and how many must stay healthy. */
function counts(context: ControllerContext, budget: Budget, pods: readonly Pod[]): Counts {
  const { minAvailable, maxUnavailable } = budget.spec
  if (maxUnavailable === undefined && typeof minAvailable !== 'string') {
    return { kind: 'counted', expected: pods.length, desired: minAvailable ?? 0 }
  }
  const scaled = expectedPods(context.store.api, pods)
  if (scaled.kind === 'unknown') {
    context.log.debug('disruption budget has no expected count', {
      budget: keyOf(budget),
      why: scaled.message,
    })
    return scaled
  }
  const expected = scaled.count
  const desired =
    maxUnavailable === undefined
      ? resolveIntOrPercent(minAvailable ?? 0, expected, 'up')
      : Math.max(0, expected - resolveIntOrPercent(maxUnavailable, expected, 'up'))
  return { kind: 'counted', expected, desired }
}

/** Recent evictions whose pod exists and is not terminating. */
function stillDisrupted(
  budget: Budget,
  pods: readonly Pod[],
  nowMs: number,
): { disruptedPods: Record<string, string>; nextExpiryMs: number | undefined } {
  const disruptedPods: Record<string, string> = {}
  const noted = budget.status?.disruptedPods ?? {}
  let next = Number.POSITIVE_INFINITY
  for (const pod of pods) {
    const since = ownValue(noted, pod.metadata.name)
    if (since === undefined || isTerminating(pod)) continue
    const leftMs = Date.parse(since) + disruptedPodMs - nowMs
    if (leftMs <= 0) continue
    setOwn(disruptedPods, pod.metadata.name, since)
    next = Math.min(next, leftMs)
  }
  return { disruptedPods, nextExpiryMs: Number.isFinite(next) ? next : undefined }
}
