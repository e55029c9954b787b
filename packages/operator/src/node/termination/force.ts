/** When a deadline overrides what protects a pod (lifecycle.md 4.3). */
import type { Pod } from '@tenon/api'

/** Seconds a pod gets that is deleted for the deadline; never 0, which would skip its kubelet. */
export function grantedSeconds(deadlineMs: number, nowMs: number): number {
  return Math.max(Math.floor((deadlineMs - nowMs) / 1000), 1)
}

/**
 * The instant after which a pod that was not told to go is deleted for the deadline, whatever protects
 * it: the deadline less the pod's own grace period. Infinity without either.
 */
export function forcedAtMs(pod: Pod, deadlineMs: number): number {
  const grace = pod.spec.terminationGracePeriodSeconds
  return grace === undefined ? Number.POSITIVE_INFINITY : deadlineMs - grace * 1000
}

/**
 * Whether the deadline leaves the pod less than its own grace period. A pod that ends no earlier for
 * being deleted again is left alone.
 */
export function isForceEligible(pod: Pod, deadlineMs: number, nowMs: number): boolean {
  if (!Number.isFinite(deadlineMs)) return false
  if (pod.metadata.deletionTimestamp !== undefined) {
    const endsMs = Date.parse(pod.metadata.deletionTimestamp)
    return endsMs > deadlineMs && endsMs > nowMs + grantedSeconds(deadlineMs, nowMs) * 1000
  }
  return nowMs > forcedAtMs(pod, deadlineMs)
}
