import type { Pod } from '@tenon/api'
import { findCondition, setCondition, withoutCondition } from '../objects/conditions.ts'
import { availableInMs, isReady } from '../objects/pods.ts'
import { labelsInclude } from '../objects/selectors.ts'
import type { ReplicaSet, WorkloadCondition } from '../objects/workloads.ts'

export interface ReplicaCount {
  readonly status: NonNullable<ReplicaSet['status']>
  /** When the next ready pod becomes available, if any. */
  readonly nextAvailableMs: number | undefined
}

/** The status of a ReplicaSet from its active pods. */
export function replicaStatus(
  set: ReplicaSet,
  active: readonly Pod[],
  failure: Pick<WorkloadCondition, 'reason' | 'message'> | undefined,
  nowMs: number,
): ReplicaCount {
  const minReadySeconds = set.spec.minReadySeconds ?? 0
  const wanted = set.spec.template.metadata?.labels
  let fullyLabeled = 0
  let ready = 0
  let available = 0
  let next = Number.POSITIVE_INFINITY
  for (const pod of active) {
    if (labelsInclude(pod.metadata.labels, wanted)) fullyLabeled++
    if (!isReady(pod)) continue
    ready++
    const inMs = availableInMs(pod, minReadySeconds, nowMs)
    if (inMs === 0) available++
    else if (inMs !== undefined) next = Math.min(next, inMs)
  }
  const conditions = failureConditions(set, failure, nowMs)
  const status = {
    replicas: active.length,
    ...(fullyLabeled > 0 && { fullyLabeledReplicas: fullyLabeled }),
    ...(ready > 0 && { readyReplicas: ready }),
    ...(available > 0 && { availableReplicas: available }),
    ...(set.metadata.generation !== undefined && { observedGeneration: set.metadata.generation }),
    ...(conditions.length > 0 && { conditions }),
  }
  return { status, nextAvailableMs: Number.isFinite(next) ? next : undefined }
}

function failureConditions(
  set: ReplicaSet,
  failure: Pick<WorkloadCondition, 'reason' | 'message'> | undefined,
  nowMs: number,
): readonly WorkloadCondition[] {
  const conditions = set.status?.conditions
  if (failure === undefined) return withoutCondition(conditions, 'ReplicaFailure')
  if (findCondition(conditions, 'ReplicaFailure') !== undefined) return conditions ?? []
  return setCondition(conditions, { type: 'ReplicaFailure', status: 'True', ...failure }, nowMs)
}
