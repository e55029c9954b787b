/** Which pods and volumes a drain waits for, and in which order pods are evicted (lifecycle.md 4.1, 4.3, 4.5). */
import { type Node, type NodeClass, type Pod, type ResourceType, terminationFinalizer } from '@tenon/api'
import { type Caches, indexes } from '../../state/caches.ts'
import { isDaemonPod, isMirrorPod, isTerminal, toleratesDisruption } from '../../state/pods/pods.ts'
import { isManagedNode } from '../hydration.ts'

/** After this long, the kubelet of a pod that should have ended is taken to be dead. */
const stuckMs = 60_000

/** Pods of a tier are evicted together, after those of the tiers before are gone. */
export type DrainTier = (typeof tiers)[number]
const tiers = ['pods', 'daemon pods', 'critical pods', 'critical daemon pods'] as const

export interface DrainPlan {
  /** All pods that the drain waits for. */
  readonly waiting: readonly Pod[]
  /** Those to delete now because of the deadline. */
  readonly force: readonly Pod[]
  /** Those to evict now: the first tier of the others. */
  readonly evict: readonly Pod[]
  /** Their tier; undefined if there are none. */
  readonly tier: DrainTier | undefined
  /** When the deadline forces the next pod; Infinity if none. */
  readonly nextForceMs: number
}

/** Whether a drain evicts the pod and waits for it. */
export function isDrainable(pod: Pod, nowMs: number): boolean {
  const deletedAt = pod.metadata.deletionTimestamp
  const isStuck = deletedAt !== undefined && nowMs - Date.parse(deletedAt) > stuckMs
  return !toleratesDisruption(pod) && !isStuck && !isMirrorPod(pod)
}

const isCritical = (pod: Pod) =>
  pod.spec.priorityClassName === 'system-cluster-critical' ||
  pod.spec.priorityClassName === 'system-node-critical'

export function drainTier(pod: Pod): DrainTier {
  if (isCritical(pod)) return isDaemonPod(pod) ? 'critical daemon pods' : 'critical pods'
  return isDaemonPod(pod) ? 'daemon pods' : 'pods'
}

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

/** Grace period of a pod that is deleted because of the deadline; never 0, which would skip its kubelet. */
export function grantedSeconds(deadlineMs: number, nowMs: number): number {
  return Math.max(Math.floor((deadlineMs - nowMs) / 1000), 1)
}

/**
 * When a pod is deleted because of the deadline, whatever protects it: early enough for its own grace period. Infinity
 * without a deadline or a grace period.
 */
export function forcedAtMs(pod: Pod, deadlineMs: number): number {
  const grace = pod.spec.terminationGracePeriodSeconds
  return grace === undefined ? Number.POSITIVE_INFINITY : deadlineMs - grace * 1000
}

/** Whether the deadline forces the pod now. One that is terminating is only deleted again if that ends it earlier. */
export function isForceEligible(pod: Pod, deadlineMs: number, nowMs: number): boolean {
  if (!Number.isFinite(deadlineMs)) return false
  if (pod.metadata.deletionTimestamp !== undefined) {
    const endsMs = Date.parse(pod.metadata.deletionTimestamp)
    return endsMs > deadlineMs && endsMs > nowMs + grantedSeconds(deadlineMs, nowMs) * 1000
  }
  return nowMs > forcedAtMs(pod, deadlineMs)
}

/** Names of the persistent volumes attached to a node, without those of the pods that stay on it; sorted. */
export function pendingVolumes(
  caches: Pick<Caches, 'persistentVolumeClaims' | 'volumeAttachments'>,
  nodeName: string,
  staying: readonly Pod[],
): readonly string[] {
  const inUse = new Set(staying.flatMap((pod) => volumeNames(caches, pod)))
  return caches.volumeAttachments
    .byIndex(indexes.byNode, nodeName)
    .map((attachment) => attachment.spec.source.persistentVolumeName ?? '')
    .filter((name) => name !== '' && !inUse.has(name))
    .toSorted()
}

function volumeNames(caches: Pick<Caches, 'persistentVolumeClaims'>, pod: Pod): readonly string[] {
  const namespace = pod.metadata.namespace ?? ''
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const claimName =
      volume.persistentVolumeClaim?.claimName ?? (volume.ephemeral && `${pod.metadata.name}-${volume.name}`)
    if (claimName === undefined) return []
    const name = caches.persistentVolumeClaims.get({ namespace, name: claimName })?.spec.volumeName
    return name === undefined ? [] : [name]
  })
}

/** Whether the termination controller drains the Node. */
export function isTerminatingNode(node: Node, nodeClasses: readonly ResourceType<NodeClass>[]): boolean {
  return (
    node.metadata.deletionTimestamp !== undefined &&
    isManagedNode(node, nodeClasses) &&
    (node.metadata.finalizers ?? []).includes(terminationFinalizer)
  )
}
