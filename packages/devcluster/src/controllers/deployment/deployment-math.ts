import { resolveIntOrPercent } from '../objects/int-or-percent.ts'
import type { Deployment, ReplicaSet } from '../objects/workloads.ts'
import { byCreation, desiredReplicasAnnotation, maxReplicasAnnotation } from './revisions.ts'

export function desiredReplicas(object: Deployment | ReplicaSet): number {
  return object.spec.replicas ?? 1
}

export function isRolling(deployment: Deployment): boolean {
  return deployment.spec.strategy?.type !== 'Recreate'
}

/**
 * How many pods may exist above and be missing below the desired number. Surge rounds up, unavailable down; if both are
 * 0, one may be missing, as the rollout could not progress otherwise.
 */
export function rolloutBounds(deployment: Deployment): { maxSurge: number; maxUnavailable: number } {
  if (!isRolling(deployment)) return { maxSurge: 0, maxUnavailable: 0 }
  const replicas = desiredReplicas(deployment)
  const rolling = deployment.spec.strategy?.rollingUpdate
  const maxSurge = resolveIntOrPercent(rolling?.maxSurge ?? '25%', replicas, 'up')
  const unavailable = resolveIntOrPercent(rolling?.maxUnavailable ?? '25%', replicas, 'down')
  const maxUnavailable = maxSurge === 0 && unavailable === 0 ? 1 : unavailable
  return { maxSurge, maxUnavailable: Math.min(maxUnavailable, replicas) }
}

export function sumOf(sets: readonly ReplicaSet[], count: (set: ReplicaSet) => number): number {
  return sets.reduce((total, set) => total + count(set), 0)
}

export function availableOf(set: ReplicaSet): number {
  return set.status?.availableReplicas ?? 0
}

/** The allowed size of the new ReplicaSet, given all others. */
export function newSetSize(deployment: Deployment, sets: readonly ReplicaSet[], size: number): number {
  const desired = desiredReplicas(deployment)
  if (!isRolling(deployment)) return desired
  const most = desired + rolloutBounds(deployment).maxSurge
  const current = sumOf(sets, desiredReplicas)
  if (current >= most) return size
  return size + Math.min(most - current, desired - size)
}

/** The new size of each old ReplicaSet that can shrink now. */
export function shrinkOldSets(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  newSet: ReplicaSet,
): Map<ReplicaSet, number> {
  const old = sets.filter((set) => set !== newSet && desiredReplicas(set) > 0).sort(byCreation)
  const sizes = new Map(old.map((set) => [set, desiredReplicas(set)]))
  const leastAvailable = desiredReplicas(deployment) - rolloutBounds(deployment).maxUnavailable
  const newUnavailable = desiredReplicas(newSet) - availableOf(newSet)
  let removable = sumOf(sets, desiredReplicas) - leastAvailable - newUnavailable
  if (removable <= 0) return new Map()
  // Unavailable replicas serve no requests, so they are removed first, from any ReplicaSet.
  for (const set of old) {
    const size = sizes.get(set) as number
    const unhealthy = Math.max(0, Math.min(removable, size - availableOf(set)))
    sizes.set(set, size - unhealthy)
    removable -= unhealthy
  }
  let spare = sumOf(sets, availableOf) - leastAvailable
  for (const set of old) {
    if (spare <= 0) break
    const size = sizes.get(set) as number
    const healthy = Math.min(spare, size)
    sizes.set(set, size - healthy)
    spare -= healthy
  }
  return new Map([...sizes].filter(([set, size]) => size !== desiredReplicas(set)))
}

/** Whether the Deployment was resized since its ReplicaSets were last sized. */
export function isResized(deployment: Deployment, sets: readonly ReplicaSet[]): boolean {
  return sets.some((set) => {
    const noted = set.metadata.annotations?.[desiredReplicasAnnotation]
    return desiredReplicas(set) > 0 && noted !== undefined && Number(noted) !== desiredReplicas(deployment)
  })
}

/**
 * Distributes a change of size over the ReplicaSets of a rollout in proportion to their size, so that a stuck rollout
 * does not get all the new pods. Larger and newer ones get the remainder.
 */
export function proportionalSizes(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
): Map<ReplicaSet, number> {
  const active = sets.filter((set) => desiredReplicas(set) > 0)
  const desired = desiredReplicas(deployment)
  const allowed = desired > 0 ? desired + rolloutBounds(deployment).maxSurge : 0
  const toAdd = allowed - sumOf(active, desiredReplicas)
  const direction = toAdd < 0 ? 1 : -1
  const ordered = [...active].sort(
    (a, b) => desiredReplicas(b) - desiredReplicas(a) || direction * byCreation(a, b),
  )
  let added = 0
  const sizes = new Map<ReplicaSet, number>()
  for (const set of ordered) {
    const left = toAdd - added
    const share = left === 0 ? 0 : clampTowards(shareOf(set, deployment, allowed), left)
    sizes.set(set, desiredReplicas(set) + share)
    added += share
  }
  const first = ordered[0]
  if (first !== undefined) sizes.set(first, Math.max(0, (sizes.get(first) as number) + toAdd - added))
  return sizes
}

function shareOf(set: ReplicaSet, deployment: Deployment, allowed: number): number {
  const size = desiredReplicas(set)
  if (desiredReplicas(deployment) === 0) return -size
  const noted = Number(set.metadata.annotations?.[maxReplicasAnnotation])
  const most = noted > 0 ? noted : Math.max(1, deployment.status?.replicas ?? size)
  return Math.round((size * allowed) / most) - size
}

function clampTowards(value: number, limit: number): number {
  return limit > 0 ? Math.min(Math.max(value, 0), limit) : Math.max(Math.min(value, 0), limit)
}
