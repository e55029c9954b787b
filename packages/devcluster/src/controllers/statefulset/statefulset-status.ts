import type { Pod } from '@tenon/api'
import { availableInMs, isReady, isTerminating } from '../objects/pods.ts'
import { revisionHashLabel } from '../objects/revision-history.ts'
import type { StatefulSet } from '../objects/workloads.ts'

export type StatefulSetStatus = NonNullable<StatefulSet['status']>

/** The counters of a StatefulSet; ends an update when all pods have the new revision. */
export function statefulSetStatus(
  set: StatefulSet,
  pods: readonly Pod[],
  current: string,
  update: string,
  nowMs: number,
): StatefulSetStatus {
  const minReadySeconds = set.spec.minReadySeconds ?? 0
  const live = pods.filter((pod) => !isTerminating(pod))
  const ofRevision = (name: string) =>
    live.filter((pod) => pod.metadata.labels?.[revisionHashLabel] === name).length
  const running = pods.filter((pod) => pod.status?.phase === 'Running' && isReady(pod))
  const available = running.filter((pod) => availableInMs(pod, minReadySeconds, nowMs) === 0).length
  const updated = ofRevision(update)
  const complete =
    current !== update &&
    set.spec.updateStrategy?.type !== 'OnDelete' &&
    updated === pods.length &&
    running.length === pods.length
  const now = complete ? update : current
  const { collisionCount, conditions } = set.status ?? {}
  return {
    ...(set.metadata.generation !== undefined && { observedGeneration: set.metadata.generation }),
    replicas: pods.length,
    ...(running.length > 0 && { readyReplicas: running.length }),
    availableReplicas: available,
    ...(ofRevision(now) > 0 && { currentReplicas: ofRevision(now) }),
    ...(updated > 0 && { updatedReplicas: updated }),
    currentRevision: now,
    updateRevision: update,
    collisionCount: collisionCount ?? 0,
    ...(conditions !== undefined && { conditions }),
  }
}
