/** Which pods can take each other's place. */
import { controllerOf, type Pod, podRequests } from '@tenon/api'

/** Equal for pods that can take each other's place, whatever others ask of them. */
export function likenessOf(pod: Pod): string {
  return JSON.stringify([controllerOf(pod)?.uid, pod.metadata.labels, demandsOf(pod)])
}

/** Equal for pods that ask the same of a node. Volumes have names of their own even in pods that are alike. */
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
