/** `capacityquota`: writes what nodes use of each CapacityQuota, and whether it is enforced (quotas.md 1). */
import {
  autoscalingKinds,
  type CapacityQuota,
  quotaFailedReason,
  quotaProblem,
  quotaStatus,
  readQuota,
} from '@tenon/api'
import type { Cache, EventRecorder, KubeClient } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { SingletonSpec } from '../../controller.ts'
import { inParallel } from '../../in-parallel.ts'
import { patchStatus } from '../../patch-status.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { isSameValue } from '../../state/same-value.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly state: Pick<ClusterState, 'quotas'>
  readonly events: EventRecorder
  readonly clock: Clock
}

const periodMs = 10_000
const parallelPatches = 5

export function capacityQuotas(
  { client, clock, events, state }: Dependencies,
  quotas: Cache<CapacityQuota>,
): SingletonSpec {
  const write = async (quota: CapacityQuota) => {
    const problem = quotaProblem(readQuota(quota))
    if (problem !== undefined) {
      const { name, uid = name } = quota.metadata
      const message = `${problem}; the quota is not enforced`
      const reason = quotaFailedReason
      events.record({ object: quota, type: 'Warning', reason, message, dedupe: [uid, message] })
    }
    const status = quotaStatus(quota, state.quotas.usageOf(quota), clock.now())
    if (isSameValue({ ...quota.status, ...status }, quota.status)) return
    // After a conflict the next look writes.
    await patchStatus(client, autoscalingKinds.capacityQuota, quota, status)
  }
  return {
    name: 'capacityquota',
    async run() {
      const failures = await inParallel(quotas.list(), parallelPatches, write)
      if (failures.length > 0) throw failures[0]
      return { kind: 'after', delayMs: periodMs }
    },
  }
}
