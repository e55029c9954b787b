import { matchesSelector, type Pod, type PodDisruptionBudget } from '@tenon/api'
import type { LocalDeleteOptions } from '../../contract.ts'
import { namespacePrefix } from '../../storage/index.ts'
import type { ObjectKey, ServerContext, WriteOptions } from '../context.ts'
import { deleteObject } from './delete.ts'
import type { Served } from '../kinds/registry.ts'
import { internalError, notFound, tooManyRequests } from '../http/status.ts'
import { commit, readObject, timestamp } from './writing.ts'

/** Maximum disrupted pods in a budget's status; above it, its controller must catch up first. */
const disruptedPodsLimit = 2000

/**
 * Evicts a pod if its budgets allow it.
 * @throws ApiError 429 if they do not.
 */
export function evictPod(
  ctx: ServerContext,
  pods: Served,
  key: ObjectKey,
  request: LocalDeleteOptions,
  options: WriteOptions,
): void {
  const found = readObject(ctx, pods, key)
  if (found === undefined) throw notFound(pods.definition, key.name)
  const pod = found as unknown as Pod
  if (!deletesFreely(pod)) {
    const budgets = budgetsOf(ctx, pod)
    if (budgets.length > 1)
      throw internalError(
        'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
      )
    const budget = budgets[0]
    if (budget !== undefined && !evictsUnready(pod, budget)) takeFromBudget(ctx, budget, pod, options)
  }
  deleteObject(ctx, pods, key, request, options)
}

/** Pods that have finished, not started or are terminating do not count against a budget. */
function deletesFreely(pod: Pod): boolean {
  const phase = pod.status?.phase
  return (
    pod.metadata.deletionTimestamp !== undefined ||
    phase === 'Succeeded' ||
    phase === 'Failed' ||
    phase === 'Pending'
  )
}

function budgetsOf(ctx: ServerContext, pod: Pod): PodDisruptionBudget[] {
  const budgets: PodDisruptionBudget[] = []
  const prefix = namespacePrefix(pod.metadata.namespace ?? '')
  ctx.store.collection('poddisruptionbudgets.policy').scan({ prefix }, (object) => {
    const budget = object as unknown as PodDisruptionBudget
    if (matchesSelector(budget.spec.selector, pod.metadata.labels)) budgets.push(budget)
    return true
  })
  return budgets
}

/** Whether an unready pod may be evicted although the budget is used up (`unhealthyPodEvictionPolicy`). */
function evictsUnready(pod: Pod, budget: PodDisruptionBudget): boolean {
  const ready = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
  if (ready === true) return false
  if (budget.spec.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true
  const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {}
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy
}

function takeFromBudget(
  ctx: ServerContext,
  budget: PodDisruptionBudget,
  pod: Pod,
  options: WriteOptions,
): void {
  const { name, generation = 0 } = budget.metadata
  const status = budget.status ?? {}
  const disrupted = (status as { disruptedPods?: Readonly<Record<string, string>> }).disruptedPods ?? {}
  const allowed = status.disruptionsAllowed ?? 0
  if ((status.observedGeneration ?? 0) < generation)
    throw refused(`The disruption budget ${name} is still being processed by the server.`)
  if (Object.keys(disrupted).length > disruptedPodsLimit)
    throw refused(`The disruption budget ${name} has too many pods in its DisruptedPods map.`)
  if (allowed <= 0)
    throw refused(
      `The disruption budget ${name} needs ${status.desiredHealthy ?? 0} healthy pods and has ${status.currentHealthy ?? 0} currently`,
    )
  const served = ctx.registry.find('policy', 'v1', 'poddisruptionbudgets')
  if (served === undefined) return
  const next = {
    ...status,
    disruptionsAllowed: allowed - 1,
    disruptedPods: { ...disrupted, [pod.metadata.name]: timestamp(ctx) },
  }
  commit(ctx, served, { ...budget, status: next }, options)
}

function refused(message: string) {
  return tooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", [
    { reason: 'DisruptionBudget', message },
  ])
}
