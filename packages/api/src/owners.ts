import type { KubeObject, OwnerReference } from './objects.ts'
import { ownValue } from './own.ts'

/** The owner reference with `controller: true`, if any. */
export function controllerOf({ metadata }: Pick<KubeObject, 'metadata'>): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}

export interface Owner {
  readonly kind: string
  readonly name: string
}

const templateHash = 'pod-template-hash'

/**
 * The workload of a pod as users know it: its controller. A ReplicaSet whose name ends in the pod's template hash belongs
 * to a Deployment. A pod without a controller is its own owner.
 */
export function ownerOf(pod: Pick<KubeObject, 'metadata'>): Owner {
  const controller = controllerOf(pod)
  if (controller === undefined) return { kind: 'Pod', name: pod.metadata.name }
  const { kind, name } = controller
  const hash = ownValue(pod.metadata.labels, templateHash)
  if (kind === 'ReplicaSet' && hash !== undefined && name.endsWith(`-${hash}`))
    return { kind: 'Deployment', name: name.slice(0, -hash.length - 1) }
  return { kind, name }
}
