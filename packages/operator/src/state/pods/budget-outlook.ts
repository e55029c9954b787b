/** Whether a PodDisruptionBudget that allows no eviction now may allow one later (wanted.md 3). */
import { controllerOf, counted, type Pod, type PodDisruptionBudget } from '@tenon/api'
import { isUnreadable } from '../readable.ts'
import { budgetsOf, isActive, isSettled, keyOf } from './pods.ts'

export interface BudgetOutlook {
  /** Whether it can never allow an eviction, unless somebody changes it or its workload. */
  readonly isNever: boolean
  /** A clause about the PDB: why never and what to do, or what it waits for. */
  readonly text: string
}

const podsNamed = 3

/** @param unready pods of its namespace that may get ready; see {@link isAwaited}. */
export function outlookOf(budget: PodDisruptionBudget, unready: readonly Pod[]): BudgetOutlook {
  if (isUnreadable(budget)) return { isNever: false, text: 'cannot be read' }
  const never = whyNever(budget)
  if (never !== undefined)
    return { isNever: true, text: `can never allow one, as ${never}: ${wayOut(budget)}` }
  const { currentHealthy, desiredHealthy } = budget.status ?? {}
  if (!isCurrent(budget) || currentHealthy === undefined || desiredHealthy === undefined)
    return { isNever: false, text: 'allows none now' }
  const awaited = unready.filter((pod) => budgetsOf(pod, [budget]).length > 0).map(({ metadata }) => metadata)
  const names = awaited.slice(0, podsNamed).map(keyOf)
  const rest = awaited.length - names.length
  const pods = `${names.join(', ')}${rest > 0 ? ` and ${counted(rest, 'other')}` : ''}`
  const needs = `has ${currentHealthy} healthy pods and must keep ${desiredHealthy}`
  return { isNever: false, text: names.length === 0 ? needs : `${needs}; it waits for ${pods} to be ready` }
}

/** Whether the status is about the current spec. */
export function isCurrent({ metadata, status }: PodDisruptionBudget): boolean {
  return metadata.generation === undefined || status?.observedGeneration === metadata.generation
}

function whyNever(budget: PodDisruptionBudget): string | undefined {
  const { maxUnavailable, minAvailable } = budget.spec
  if (maxUnavailable === 0 || maxUnavailable === '0%') return `maxUnavailable is ${maxUnavailable}`
  if (minAvailable === '100%') return 'minAvailable is 100%'
  const { desiredHealthy = 0, expectedPods = 0 } = budget.status ?? {}
  if (!isCurrent(budget) || expectedPods === 0 || desiredHealthy < expectedPods) return undefined
  return `it must keep ${desiredHealthy} of ${counted(expectedPods, 'pod')}${minAvailable === undefined ? '' : ` (minAvailable ${minAvailable})`}`
}

function wayOut(budget: PodDisruptionBudget): string {
  const owner = controllerOf(budget)
  if (owner !== undefined)
    return `${owner.kind} ${owner.name} owns it; run another instance there, or let it go without one`
  return budget.spec.maxUnavailable === undefined
    ? 'run more replicas, or set maxUnavailable: 1 in place of minAvailable'
    : 'set maxUnavailable to 1 or more'
}

/** Whether a PDB may wait for the pod to become ready; false for malformed ones, as an index is made of it. */
export function isAwaited(pod: Pod): boolean {
  const conditions: unknown = pod.status?.conditions ?? []
  return Array.isArray(conditions) && !conditions.includes(null) && isActive(pod) && !isSettled(pod)
}
