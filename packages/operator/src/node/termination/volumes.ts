import type { Pod } from '@tenon/api'
import { type Caches, indexes } from '../../state/caches.ts'

/**
 * Names of the persistent volumes still attached to a node, less those that pods which stay on it
 * use (lifecycle.md 4.5); sorted.
 */
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
