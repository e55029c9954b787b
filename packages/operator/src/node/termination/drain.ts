/** Which pods a drain waits for, and in which order they go (lifecycle.md 4.1). */
import type { Pod } from '@tenon/api'
import { isDaemonPod, isMirrorPod, isTerminal, toleratesDisruption } from '../../state/pods/pods.ts'
import { forcedAtMs, isForceEligible } from './force.ts'

/** A pod whose kubelet has not answered for this long after its deletion no longer counts. */
const stuckMs = 60_000

/** Pods of one tier go together, once those of the tiers before are gone. */
export type DrainTier = (typeof tiers)[number]
const tiers = ['pods', 'daemon pods', 'critical pods', 'critical daemon pods'] as const

/** Where the drain of a node stands. */
export interface DrainPlan {
  /** Pods that are still to leave. */
  readonly waiting: readonly Pod[]
  /** Of these, the ones to delete now for the deadline. */
  readonly force: readonly Pod[]
  /** The ones to evict now: the first tier of the others. */
  readonly evict: readonly Pod[]
  /** The tier of these; absent when no pod is left to evict. */
  readonly tier: DrainTier | undefined
  /** When the next waiting pod is to be deleted for the deadline; Infinity when none is. */
  readonly nextForceMs: number
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

/** Critical and daemon pods go last. */
export function drainTier(pod: Pod): DrainTier {
  if (isCritical(pod)) return isDaemonPod(pod) ? 'critical daemon pods' : 'critical pods'
  return isDaemonPod(pod) ? 'daemon pods' : 'pods'
}

/** Pods past their deadline go at once; the others tier by tier. */
export function planDrain(pods: readonly Pod[], deadlineMs: number, nowMs: number): DrainPlan {
  const waiting = pods.filter((pod) => !isTerminal(pod) && isDrainable(pod, nowMs))
  const force: Pod[] = []
  const byTier = new Map<DrainTier, Pod[]>(tiers.map((tier) => [tier, []]))
  let nextForceMs = Number.POSITIVE_INFINITY
  for (const pod of waiting) {
    if (isForceEligible(pod, deadlineMs, nowMs)) {
      force.push(pod)
      continue
    }
    byTier.get(drainTier(pod))?.push(pod)
    if (pod.metadata.deletionTimestamp === undefined)
      nextForceMs = Math.min(nextForceMs, forcedAtMs(pod, deadlineMs))
  }
  const tier = tiers.find((each) => byTier.get(each)?.length !== 0)
  const evict = tier === undefined ? [] : (byTier.get(tier) ?? [])
  return { waiting, force, evict, tier, nextForceMs }
}
