/** Which pods are interchangeable. */
import { controllerOf, type Pod, podRequests } from '@tenon/api'

/** Equal for pods that are interchangeable on a node, even for topology rules of other pods. */
export function interchangeKey(pod: Pod): string {
  return JSON.stringify([controllerOf(pod)?.uid, pod.metadata.labels, demandsOf(pod)])
}

/**
 * Equal for pods with the same demands on a node. Volumes are compared without names, which differ even between equal
 * pods.
 */
export function demandsOf({ metadata, spec, status }: Pod): string {
  return JSON.stringify([
    metadata.namespace,
    podRequests(spec, status),
    spec.nodeSelector,
    spec.affinity,
    spec.tolerations,
    spec.topologySpreadConstraints,
    spec.priority,
    spec.containers.map(({ ports }) => ports),
    (spec.volumes ?? []).map((volume) => volume.persistentVolumeClaim),
  ])
}
