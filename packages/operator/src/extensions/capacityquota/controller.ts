/** `capacityquota`: writes what nodes use of each CapacityQuota, and whether it is enforced (quotas.md 1). */
import {
  autoscalingKinds,
  type CapacityQuota,
  type Condition,
  formatResources,
  isQuotaEnforced,
  type NewCondition,
  type QuotaReading,
  quotaValidType,
  readQuota,
  unreadableReason,
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

const failedReason = 'ReconciliationFailed'
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
    const problem = problemOf(reading)
    if (problem !== undefined) {
      const { name, uid = name } = quota.metadata
      const message = `${problem}; the quota is not enforced`
      events.record({ object: quota, type: 'Warning', reason: failedReason, message, dedupe: [uid, message] })
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

/** What cannot be read; undefined if everything can. */
function problemOf(reading: QuotaReading): string | undefined {
  return reading.kind === 'read' ? undefined : `${reading.field} ${reading.problem}; ${reading.fix}`
}

function conditionsOf(quota: CapacityQuota, nowMs: number): readonly Condition[] {
  const problem = problemOf(readQuota(quota))
  const wanted: readonly NewCondition[] =
    problem === undefined
      ? [
          { type: 'Reconciled', status: 'True', reason: 'ReconciliationSucceeded' },
          // A verdict of somebody else about this generation is left as it is.
          ...(isQuotaEnforced(quota)
            ? [{ type: quotaValidType, status: 'True' as const, reason: 'Valid' }]
            : []),
        ]
      : [
          { type: 'Reconciled', status: 'False', reason: failedReason, message: problem },
          { type: quotaValidType, status: 'False', reason: unreadableReason, message: problem },
        ]
  return wanted.reduce<readonly Condition[]>(
    (conditions, condition) => withCondition({ ...quota, status: { conditions } }, condition, nowMs),
    quota.status?.conditions ?? [],
  )
}
