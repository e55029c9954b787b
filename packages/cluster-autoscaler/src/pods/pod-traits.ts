/** What drain rules, utilization and evictions read from a pod. */
import { type OwnerReference, ownValue, type Pod } from '@tenon/api'
import { annotations } from '../names.ts'

const defaultGraceSeconds = 30
/** So long after its deadline a pod that is being deleted still counts (cluster-autoscaler.md 6.4). */
const overdueMs = 30_000

export function nameOf(pod: Pod): string {
  return `${pod.metadata.namespace ?? 'default'}/${pod.metadata.name}`
}

export function controllerReference(pod: Pod): OwnerReference | undefined {
  return pod.metadata.ownerReferences?.find((owner) => owner.controller === true)
}

/** A static pod: it lives and dies with its node. */
export function isMirrorPod(pod: Pod): boolean {
  return ownValue(pod.metadata.annotations, annotations.mirror) !== undefined
}

/** A DaemonSet controls the pod, or it says so itself. */
export function isDaemonSetPod(pod: Pod): boolean {
  if (controllerReference(pod)?.kind === 'DaemonSet') return true
  return ownValue(pod.metadata.annotations, annotations.daemonSetPod) === 'true'
}

/** Seconds that a pod may take to end. */
export function graceSeconds(pod: Pod): number {
  return pod.spec.terminationGracePeriodSeconds ?? defaultGraceSeconds
}

/** Whether a pod should have been gone for a while: its deletion time plus its grace plus 30 s have passed. */
export function isLongTerminating(pod: Pod, nowMs: number): boolean {
  const { deletionTimestamp } = pod.metadata
  if (deletionTimestamp === undefined) return false
  return nowMs > Date.parse(deletionTimestamp) + graceSeconds(pod) * 1000 + overdueMs
}

/** Whether a pod has ended for good. */
export function isFinished(pod: Pod): boolean {
  const phase = pod.status?.phase
  if (phase === 'Failed') return true
  const { restartPolicy } = pod.spec
  return phase === 'Succeeded' && (restartPolicy === 'Never' || restartPolicy === 'OnFailure')
}

/** Value of the annotation `safe-to-evict`, as it is written. */
export function safeToEvict(pod: Pod): string | undefined {
  return ownValue(pod.metadata.annotations, annotations.safeToEvict)
}

/** Names of volumes that are lost with the node, but for those that the pod declares as no loss. */
export function localVolumes(pod: Pod): readonly string[] {
  const volumes = pod.spec.volumes ?? []
  if (volumes.length === 0) return []
  // Upstream does not trim the names: a blank after a comma is part of the name.
  const listed = ownValue(pod.metadata.annotations, annotations.safeToEvictLocalVolumes)?.split(',') ?? []
  return volumes
    .filter(({ hostPath, emptyDir }) => {
      // The API server answers null for a source that is not set by some clients.
      if (hostPath !== undefined && hostPath !== null) return true
      return emptyDir !== undefined && emptyDir !== null && emptyDir.medium !== 'Memory'
    })
    .map(({ name }) => name)
    .filter((name) => !listed.includes(name))
}
