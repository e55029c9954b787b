/** What drain rules, utilization and evictions read from a pod. */
import { type OwnerReference, ownValue, type Pod } from '@tenon/api'
import { annotations } from '../names.ts'

const defaultGraceSeconds = 30
/** How long a terminating pod still counts after its deadline (cluster-autoscaler.md 6.4). */
const overdueMs = 30_000

export function nameOf(pod: Pod): string {
  return `${pod.metadata.namespace ?? 'default'}/${pod.metadata.name}`
}

export function controllerReference(pod: Pod): OwnerReference | undefined {
  return pod.metadata.ownerReferences?.find((owner) => owner.controller === true)
}

/** A static pod, which ends with its node. */
export function isMirrorPod(pod: Pod): boolean {
  return ownValue(pod.metadata.annotations, annotations.mirror) !== undefined
}

/** Whether a DaemonSet controls the pod, or an annotation says so. */
export function isDaemonSetPod(pod: Pod): boolean {
  if (controllerReference(pod)?.kind === 'DaemonSet') return true
  return ownValue(pod.metadata.annotations, annotations.daemonSetPod) === 'true'
}

/** The pod's grace period in seconds. */
export function graceSeconds(pod: Pod): number {
  return pod.spec.terminationGracePeriodSeconds ?? defaultGraceSeconds
}

/** Whether a terminating pod should have ended: its deletion time plus grace period plus 30 s have passed. */
export function isLongTerminating(pod: Pod, nowMs: number): boolean {
  const { deletionTimestamp } = pod.metadata
  if (deletionTimestamp === undefined) return false
  return nowMs > Date.parse(deletionTimestamp) + graceSeconds(pod) * 1000 + overdueMs
}

/** Whether a pod has succeeded or failed. */
export function isFinished(pod: Pod): boolean {
  const phase = pod.status?.phase
  if (phase === 'Failed') return true
  const { restartPolicy } = pod.spec
  return phase === 'Succeeded' && (restartPolicy === 'Never' || restartPolicy === 'OnFailure')
}

/** Value of the annotation `safe-to-evict`, unchanged. */
export function safeToEvict(pod: Pod): string | undefined {
  return ownValue(pod.metadata.annotations, annotations.safeToEvict)
}

/** Volumes that are lost with the node, without those that the pod declares as safe. */
export function localVolumes(pod: Pod): readonly string[] {
  const volumes = pod.spec.volumes ?? []
  if (volumes.length === 0) return []
  // Cluster Autoscaler does not trim the names: a space after a comma is part of the name.
  const listed = ownValue(pod.metadata.annotations, annotations.safeToEvictLocalVolumes)?.split(',') ?? []
  return volumes
    .filter(({ hostPath, emptyDir }) => {
      // Some clients write null for unset sources.
      if (hostPath !== undefined && hostPath !== null) return true
      return emptyDir !== undefined && emptyDir !== null && emptyDir.medium !== 'Memory'
    })
    .map(({ name }) => name)
    .filter((name) => !listed.includes(name))
}
