/** `capacityquota`: writes what nodes use of each CapacityQuota, and whether it is enforced (quotas.md 1). */
import {
  autoscalingKinds,
  type CapacityQuota,
  type Condition,
  conditionOf,
  formatResources,
  type NewCondition,
  quotaValidType,
  readQuota,
} from '@tenon/api'
import type { Cache, EventRecorder, KubeClient, ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { withCondition } from '../../conditions.ts'
import type { SingletonSpec } from '../../controller.ts'
import { inParallel } from '../../in-parallel.ts'
import { patchStatus } from '../../patch-status.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { isSameValue } from '../../state/same-value.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly quotas: Cache<CapacityQuota>
  readonly state: Pick<ClusterState, 'quotas'>
  readonly events: EventRecorder
  readonly clock: Clock
}

const periodMs = 10_000
const parallelPatches = 5

export class CapacityQuotas implements SingletonSpec {
  readonly name = 'capacityquota'
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(): Promise<ReconcileResult> {
    const failures = await inParallel(this.#deps.quotas.list(), parallelPatches, async (quota) => {
      await this.#write(quota)
    })
    const [first] = failures
    if (first !== undefined) throw first
    return { kind: 'after', delayMs: periodMs }
  }

  async #write(quota: CapacityQuota): Promise<void> {
    const { client, clock, events, state } = this.#deps
    const reading = readQuota(quota)
    const used = state.quotas.usageOf(quota)
    if (reading.kind === 'unreadable') {
      const { field, fix, problem } = reading
      const message = `${field} ${problem}; the quota is not enforced. ${fix}`
      const { name, uid = name } = quota.metadata
      events.record({
        object: quota,
        type: 'Warning',
        reason: 'QuotaUnreadable',
        message,
        dedupe: [uid, message],
      })
    }
    const conditions = conditionsOf(quota, clock.now())
    const { generation: observedGeneration = 0 } = quota.metadata
    const status = {
      ...(used !== undefined && { used: { resources: formatResources(used) } }),
      observedGeneration,
      conditions,
    }
    if (isSameValue({ ...quota.status, ...status }, quota.status)) return
    // After a conflict the next look writes.
    await patchStatus(client, autoscalingKinds.capacityQuota, quota, status)
  }
}

function conditionsOf(quota: CapacityQuota, nowMs: number): readonly Condition[] {
  const reading = readQuota(quota)
  const isRead = reading.kind === 'read'
  const problem = isRead ? '' : `${reading.field} ${reading.problem}. ${reading.fix}`
  const wanted: readonly NewCondition[] = [
    isRead
      ? { type: 'Reconciled', status: 'True', reason: 'ReconciliationSucceeded' }
      : { type: 'Reconciled', status: 'False', reason: 'ReconciliationFailed', message: problem },
    ...(isRefused(quota)
      ? []
      : [
          isRead
            ? { type: quotaValidType, status: 'True' as const, reason: 'Valid' }
            : { type: quotaValidType, status: 'False' as const, reason: 'Invalid', message: problem },
        ]),
  ]
  return wanted.reduce<readonly Condition[]>(
    (conditions, condition) => withCondition({ ...quota, status: { conditions } }, condition, nowMs),
    quota.status?.conditions ?? [],
  )
}

/** Whether this generation has been called invalid: it stays so, as Cluster Autoscaler may know why. */
function isRefused(quota: CapacityQuota): boolean {
  const condition = conditionOf(quota, quotaValidType)
  return condition?.status === 'False' && condition.observedGeneration === quota.metadata.generation
}
