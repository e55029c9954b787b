/** Which pods a drain waits for, and in which order they go (lifecycle.md 4.1). */
import type { Pod } from '@tenon/api'
import { isDaemonPod, isMirrorPod, isTerminal, toleratesDisruption } from '../../state/pods.ts'
import { isForceEligible } from './eviction-queue.ts'

/** A pod whose kubelet has not answered for this long after its deletion no longer counts. */
const stuckMs = 60_000

/** Where the drain of a node stands. */
export interface DrainPlan {
  /** Pods that are still to leave. */
  readonly waiting: readonly Pod[]
  /** Of these, the ones to evict or delete now. */
  readonly evictNow: readonly Pod[]
}

/** Whether a drain has to wait for the pod to go. */
export function isDrainable(pod: Pod, nowMs: number): boolean {
  const deletedAt = pod.metadata.deletionTimestamp
  const isStuck = deletedAt !== undefined && nowMs - Date.parse(deletedAt) > stuckMs
  return !toleratesDisruption(pod) && !isStuck && !isMirrorPod(pod)
}

const isCritical = (pod: Pod) =>
  pod.spec.priorityClassName === 'system-cluster-critical' ||
  pod.spec.priorityClassName === 'system-node-critical'

const tier = (pod: Pod) => (isCritical(pod) ? 2 : 0) + (isDaemonPod(pod) ? 1 : 0)

/** Pods past their deadline go at once; the others tier by tier, critical and daemon pods last. */
export function planDrain(pods: readonly Pod[], deadlineMs: number, nowMs: number): DrainPlan {
  const waiting = pods.filter((pod) => !isTerminal(pod) && isDrainable(pod, nowMs))
  const forced = waiting.filter((pod) => isForceEligible(pod, deadlineMs, nowMs))
  const graceful = waiting.filter((pod) => !forced.includes(pod))
  const first = Math.min(...graceful.map(tier))
  return { waiting, evictNow: [...forced, ...graceful.filter((pod) => tier(pod) === first)] }
}
