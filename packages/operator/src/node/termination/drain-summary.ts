/** A drain in one sentence, for the event on its Node. */
import { annotations } from '@tenon/api'
import type { DrainReport, DrainRule, WaitingPod } from './drain-report.ts'

const budgetsNamed = 3
const podsNamed = 2

/** Names the deadline first, then what holds pods, by rule; the event's limit cuts the end. */
export function drainSummary({ pods, deadline }: DrainReport): string {
  const limit = deadline === undefined ? '' : `; the rest is deleted by ${deadline}`
  const parts = [
    ...ofKind(pods, 'severalPodDisruptionBudgets', severalBudgets),
    ...budgetParts(pods),
    ...ofKind(pods, 'doNotDisrupt', protectedPods),
    ...ofKind(pods, 'leaving', leavingPods),
    ...ofKind(pods, 'evicting', (held) => `${held.length} being evicted`),
    ...ofKind(pods, 'laterTier', (held) => `${held.length} evicted later`),
  ]
  return `Waiting for ${pods.length} pod(s) to leave the node${limit}: ${parts.join('; ')}`
}

type Kind = DrainRule['kind']
type Held<K extends Kind> = WaitingPod & { readonly rule: Extract<DrainRule, { readonly kind: K }> }

function ofKind<K extends Kind>(
  pods: readonly WaitingPod[],
  kind: K,
  tell: (held: readonly Held<K>[]) => string,
): readonly string[] {
  const held = pods.filter((pod): pod is Held<K> => pod.rule.kind === kind)
  return held.length === 0 ? [] : [tell(held)]
}

function severalBudgets(held: readonly Held<'severalPodDisruptionBudgets'>[]): string {
  const names = new Set(held.flatMap(({ rule }) => rule.budgets))
  return `${held.length} covered by more than one PodDisruptionBudget, which evictions do not allow (${some([...names])}; ${named(held)})`
}

/** The PDBs that hold the most pods are named one by one. */
function budgetParts(pods: readonly WaitingPod[]): readonly string[] {
  const groups = new Map<string, Held<'podDisruptionBudget'>[]>()
  for (const pod of pods) {
    if (pod.rule.kind !== 'podDisruptionBudget') continue
    const group = groups.get(pod.rule.budget) ?? []
    group.push({ ...pod, rule: pod.rule })
    groups.set(pod.rule.budget, group)
  }
  const largest = [...groups].toSorted(([, one], [, other]) => other.length - one.length)
  const rest = largest.slice(budgetsNamed).flatMap(([, held]) => held)
  return [
    ...largest.slice(0, budgetsNamed).map(([budget, held]) => heldByBudget(budget, held)),
    ...(rest.length === 0
      ? []
      : [`${rest.length} held by ${largest.length - budgetsNamed} other PodDisruptionBudget(s)`]),
  ]
}

function heldByBudget(budget: string, held: readonly Held<'podDisruptionBudget'>[]): string {
  const { currentHealthy = 0, desiredHealthy = 0 } = held[0]?.rule ?? {}
  return `${held.length} held by PodDisruptionBudget ${budget}, which needs ${desiredHealthy} healthy pods and has ${currentHealthy} (${named(held)})`
}

function protectedPods(held: readonly Held<'doNotDisrupt'>[]): string {
  const ends = held.flatMap(({ rule }) => (rule.until === undefined ? [] : [rule.until])).toSorted()
  const last = ends.at(-1)
  const isForGood = ends.length < held.length
  const until = isForGood || last === undefined ? 'until it is removed' : `until ${last} at the latest`
  return `${held.length} protected by ${annotations.doNotDisrupt} ${until} (${named(held)})`
}

function leavingPods(held: readonly Held<'leaving'>[]): string {
  const last =
    held
      .map(({ rule }) => rule.until)
      .toSorted()
      .at(-1) ?? ''
  return `${held.length} being stopped, the last by ${last}`
}

const named = (pods: readonly WaitingPod[]) => some(pods.map(({ namespace, name }) => `${namespace}/${name}`))

function some(names: readonly string[]): string {
  const rest = names.length - podsNamed
  return `${names.slice(0, podsNamed).join(', ')}${rest > 0 ? ` and ${rest} other(s)` : ''}`
}
