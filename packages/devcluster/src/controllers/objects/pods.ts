import type { Pod, PodCondition } from '@tenon/api'

/** The pod's Ready condition, if it has one. */
export function conditionOf(pod: Pod, type: string): PodCondition | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type)
}

export function isReady(pod: Pod): boolean {
  return conditionOf(pod, 'Ready')?.status === 'True'
}

export function isTerminating(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined
}

export function isFinished(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
}

/** Neither finished nor terminating: counts as a replica. */
export function isActive(pod: Pod): boolean {
  return !isFinished(pod) && !isTerminating(pod)
}

/**
 * Milliseconds until the pod has been ready for `minReadySeconds`: 0 = available, `undefined` = not ready.
 */
export function availableInMs(pod: Pod, minReadySeconds: number, nowMs: number): number | undefined {
  const ready = conditionOf(pod, 'Ready')
  if (ready?.status !== 'True') return undefined
  if (minReadySeconds === 0) return 0
  const since = Date.parse(ready.lastTransitionTime ?? '')
  return Number.isNaN(since) ? undefined : Math.max(0, since + minReadySeconds * 1000 - nowMs)
}

export interface ContainerState {
  readonly name?: string
  readonly ready?: boolean
  readonly restartCount?: number
  readonly state?: {
    readonly running?: { readonly startedAt?: string }
    readonly terminated?: { readonly exitCode?: number; readonly finishedAt?: string }
  }
}

/** Container statuses, which the shared Pod type omits. */
export function containerStates(pod: Pod): readonly ContainerState[] {
  const status = pod.status as { readonly containerStatuses?: readonly ContainerState[] } | undefined
  return status?.containerStatuses ?? []
}

/** Pod conditions with `condition` set; its transition time only changes with the status. */
export function withCondition(pod: Pod, condition: PodCondition): PodCondition[] {
  const others = (pod.status?.conditions ?? []).filter((each) => each.type !== condition.type)
  const old = conditionOf(pod, condition.type)
  const kept = old?.status === condition.status ? old.lastTransitionTime : undefined
  return [...others, kept === undefined ? condition : { ...condition, lastTransitionTime: kept }]
}

/** The DisruptionTarget condition, by which users and tools see why the pod is deleted. */
export function disruptionTarget(reason: string, message: string, now: string): PodCondition {
  return { type: 'DisruptionTarget', status: 'True', reason, message, lastTransitionTime: now }
}
