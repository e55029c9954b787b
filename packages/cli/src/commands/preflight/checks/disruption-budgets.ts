/**
 * Finds PodDisruptionBudgets that never allow an eviction, even if all pods are healthy: their nodes cannot be
 * drained.
 */
import { kinds, matchesSelector, type Pod, type PodDisruptionBudget } from '@tenon/api'
import { type Check, type CheckOutcome, few, type Finding } from '../check.ts'

export const disruptionBudgets: Check = {
  name: 'disruption-budgets',
  run: async ({ kube }, signal) => {
    const [budgets, pods] = await Promise.all([
      kube.list(kinds.podDisruptionBudget, { signal }),
      kube.list(kinds.pod, { signal }),
    ])
    return judge(budgets, pods)
  },
}

function judge(budgets: readonly PodDisruptionBudget[], pods: readonly Pod[]): CheckOutcome {
  const covered = budgets.map((budget) => ({ budget, pods: podsOf(budget, pods) }))
  const stuck = covered.flatMap(({ budget, pods: own }): readonly Finding[] => {
    const reason = own.length === 0 ? undefined : reasonOf(budget, own.length)
    return reason === undefined ? [] : [finding(nameOf(budget), reason)]
  })
  return {
    summary: `${budgets.length} PodDisruptionBudgets can be met`,
    findings: [...stuck, ...overlaps(covered)],
  }
}

interface Reason {
  readonly message: string
  readonly fix: string
}

function finding(name: string, { message, fix }: Reason): Finding {
  return { status: 'warn', message: `PodDisruptionBudget ${name}: ${message}`, fix }
}

/** Why it can never allow a disruption; undefined if it can. */
function reasonOf({ spec, status }: PodDisruptionBudget, found: number): Reason | undefined {
  const pods = Math.max(found, status?.expectedPods ?? 0)
  const { maxUnavailable, minAvailable } = spec
  const nodes = 'nodes with its pods are never drained before their deadline'
  if (maxUnavailable !== undefined && partOf(maxUnavailable, pods) === 0)
    return {
      message: `spec.maxUnavailable: ${maxUnavailable} lets no pod go; ${nodes}`,
      fix: 'set maxUnavailable to 1 or more',
    }
  if (minAvailable !== undefined && (partOf(minAvailable, pods) ?? 0) >= pods)
    return {
      message: `spec.minAvailable: ${minAvailable} keeps all ${pods} pods; ${nodes}`,
      fix: `set minAvailable below ${pods}, use maxUnavailable: 1, or run one replica more`,
    }
  return undefined
}

/** Percentages round up, as in Kubernetes; undefined if the text is neither. */
function partOf(value: number | string, of: number): number | undefined {
  if (typeof value === 'number') return value
  const [, percent] = /^(\d+)%$/.exec(value) ?? []
  return percent === undefined ? undefined : Math.ceil((Number(percent) * of) / 100)
}

/** The eviction API rejects a pod with several budgets. */
function overlaps(
  covered: readonly { readonly budget: PodDisruptionBudget; readonly pods: readonly Pod[] }[],
): readonly Finding[] {
  const byPod = new Map<Pod, string[]>()
  for (const { budget, pods } of covered)
    for (const pod of pods) byPod.set(pod, [...(byPod.get(pod) ?? []), nameOf(budget)])
  const groups = new Map<string, number>()
  for (const names of byPod.values()) {
    if (names.length < 2) continue
    const text = few(names.toSorted())
    groups.set(text, (groups.get(text) ?? 0) + 1)
  }
  return [...groups].map(([names, count]) => ({
    status: 'warn',
    message: `PodDisruptionBudgets ${names} select the same ${count} pods, which the API server therefore never evicts`,
    fix: 'leave each pod to one budget',
  }))
}

/** Pods that should keep running. */
function podsOf({ metadata, spec }: PodDisruptionBudget, pods: readonly Pod[]): readonly Pod[] {
  const { selector } = spec
  if (selector === undefined) return []
  return pods.filter(
    (pod) =>
      pod.metadata.namespace === metadata.namespace &&
      pod.status?.phase !== 'Succeeded' &&
      pod.status?.phase !== 'Failed' &&
      matchesSelector(selector, pod.metadata.labels),
  )
}

function nameOf({ metadata }: PodDisruptionBudget): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}
