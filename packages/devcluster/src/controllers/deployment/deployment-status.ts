import { rfc3339 } from '@tenon/runtime'
import { findCondition, withoutCondition } from '../objects/conditions.ts'
import type { Deployment, ReplicaSet, WorkloadCondition } from '../objects/workloads.ts'
import { availableOf, desiredReplicas, rolloutBounds, sumOf } from './deployment-math.ts'

export type DeploymentStatus = NonNullable<Deployment['status']>

/** The API's value for "no deadline". */
const noDeadline = 2_147_483_647

/** Counters and availability of a Deployment from its ReplicaSets. */
export function countedStatus(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  newSet: ReplicaSet | undefined,
  nowMs: number,
): DeploymentStatus {
  const replicas = sumOf(sets, (set) => set.status?.replicas ?? 0)
  const updated = newSet?.status?.replicas ?? 0
  const ready = sumOf(sets, (set) => set.status?.readyReplicas ?? 0)
  const available = sumOf(sets, availableOf)
  const unavailable = Math.max(0, sumOf(sets, desiredReplicas) - available)
  const { collisionCount, conditions } = deployment.status ?? {}
  const least = desiredReplicas(deployment) - rolloutBounds(deployment).maxUnavailable
  return {
    ...(deployment.metadata.generation !== undefined && {
      observedGeneration: deployment.metadata.generation,
    }),
    ...(replicas > 0 && { replicas }),
    ...(updated > 0 && { updatedReplicas: updated }),
    ...(ready > 0 && { readyReplicas: ready }),
    ...(available > 0 && { availableReplicas: available }),
    ...(unavailable > 0 && { unavailableReplicas: unavailable }),
    ...(collisionCount !== undefined && { collisionCount }),
    conditions: withDeploymentCondition(conditions, availability(available >= least), nowMs),
  }
}

function availability(enough: boolean): WorkloadCondition {
  return enough
    ? {
        type: 'Available',
        status: 'True',
        reason: 'MinimumReplicasAvailable',
        message: 'Deployment has minimum availability.',
      }
    : {
        type: 'Available',
        status: 'False',
        reason: 'MinimumReplicasUnavailable',
        message: 'Deployment does not have minimum availability.',
      }
}

/** Sets a condition; with `always` its update time changes even if nothing else does. */
export function withDeploymentCondition(
  conditions: readonly WorkloadCondition[] | undefined,
  condition: WorkloadCondition,
  nowMs: number,
  always = false,
): readonly WorkloadCondition[] {
  const old = findCondition(conditions, condition.type)
  if (!always && old?.status === condition.status && old.reason === condition.reason) return conditions ?? []
  const now = rfc3339(nowMs)
  const kept = old?.status === condition.status ? old.lastTransitionTime : undefined
  const next = { ...condition, lastUpdateTime: now, lastTransitionTime: kept ?? now }
  return [...withoutCondition(conditions, condition.type), next]
}

export function progressing(
  status: WorkloadCondition['status'],
  reason: string,
  message: string,
): WorkloadCondition {
  return { type: 'Progressing', status, reason, message }
}

export function hasProgressDeadline(deployment: Deployment): boolean {
  return (deployment.spec.progressDeadlineSeconds ?? 600) !== noDeadline
}

/** All pods have the current template and are available, and no other pod exists. */
export function isComplete(deployment: Deployment, status: DeploymentStatus): boolean {
  const desired = desiredReplicas(deployment)
  return (
    (status.updatedReplicas ?? 0) === desired &&
    (status.replicas ?? 0) === desired &&
    (status.availableReplicas ?? 0) === desired &&
    (status.observedGeneration ?? 0) >= (deployment.metadata.generation ?? 0)
  )
}

/** Milliseconds until the rollout exceeds its deadline; 0 or less if it has; undefined for never. */
export function stuckInMs(
  deployment: Deployment,
  status: DeploymentStatus,
  nowMs: number,
): number | undefined {
  const condition = findCondition(status.conditions, 'Progressing')
  if (!hasProgressDeadline(deployment) || condition === undefined) return undefined
  if (condition.reason === 'NewReplicaSetAvailable') return undefined
  if (condition.reason === 'ProgressDeadlineExceeded') return 0
  const since = Date.parse(condition.lastUpdateTime ?? '')
  if (Number.isNaN(since)) return undefined
  return since + (deployment.spec.progressDeadlineSeconds ?? 600) * 1000 - nowMs
}

/** The status of a rollout: counters and the Progressing condition. */
export function rolloutStatus(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  newSet: ReplicaSet | undefined,
  nowMs: number,
): DeploymentStatus {
  const counted = countedStatus(deployment, sets, newSet, nowMs)
  const progressed = withProgress(deployment, counted, newSet, nowMs)
  return { ...progressed, conditions: withReplicaFailure(progressed.conditions, sets, nowMs) }
}

function withProgress(
  deployment: Deployment,
  status: DeploymentStatus,
  newSet: ReplicaSet | undefined,
  nowMs: number,
): DeploymentStatus {
  const { conditions } = status
  if (!hasProgressDeadline(deployment)) {
    return { ...status, conditions: withoutCondition(conditions, 'Progressing') }
  }
  const subject =
    newSet === undefined ? `Deployment "${deployment.metadata.name}"` : `ReplicaSet "${newSet.metadata.name}"`
  const reason = findCondition(conditions, 'Progressing')?.reason
  const settled =
    (status.replicas ?? 0) === (status.updatedReplicas ?? 0) && reason === 'NewReplicaSetAvailable'
  if (settled) return status
  if (isComplete(deployment, status)) {
    const condition = progressing('True', 'NewReplicaSetAvailable', `${subject} has successfully progressed.`)
    return { ...status, conditions: withDeploymentCondition(conditions, condition, nowMs) }
  }
  if (hasProgressed(deployment.status, status)) {
    const condition = progressing('True', 'ReplicaSetUpdated', `${subject} is progressing.`)
    return { ...status, conditions: withDeploymentCondition(conditions, condition, nowMs, true) }
  }
  const leftMs = stuckInMs(deployment, status, nowMs)
  if (leftMs === undefined || leftMs > 0) return status
  const condition = progressing('False', 'ProgressDeadlineExceeded', `${subject} has timed out progressing.`)
  return { ...status, conditions: withDeploymentCondition(conditions, condition, nowMs) }
}

function hasProgressed(old: DeploymentStatus | undefined, now: DeploymentStatus): boolean {
  const outdated = (status: DeploymentStatus | undefined) =>
    (status?.replicas ?? 0) - (status?.updatedReplicas ?? 0)
  return (
    (now.updatedReplicas ?? 0) > (old?.updatedReplicas ?? 0) ||
    outdated(now) < outdated(old) ||
    (now.readyReplicas ?? 0) > (old?.readyReplicas ?? 0) ||
    (now.availableReplicas ?? 0) > (old?.availableReplicas ?? 0)
  )
}

function withReplicaFailure(
  conditions: readonly WorkloadCondition[] | undefined,
  sets: readonly ReplicaSet[],
  nowMs: number,
): readonly WorkloadCondition[] {
  const failure = sets
    .map((set) => findCondition(set.status?.conditions, 'ReplicaFailure'))
    .find((condition) => condition !== undefined)
  if (failure === undefined) return withoutCondition(conditions, 'ReplicaFailure')
  const { status, reason, message } = failure
  const condition = {
    type: 'ReplicaFailure',
    status,
    ...(reason !== undefined && { reason }),
    ...(message !== undefined && { message }),
  }
  return withDeploymentCondition(conditions, condition, nowMs)
}
