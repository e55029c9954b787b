/** Volume claims, volumes and related kinds, followed into an index (cluster-autoscaler.md 5). */
import { type KubeObject, kinds, type ResourceType } from '@tenon/api'
import { VolumeIndex } from '@tenon/filters'
import type { CacheRegistry } from '@tenon/kube'

/** Each may be unreadable; then what it would say is ignored when placing pods. */
export const volumeKinds = [
  kinds.persistentVolumeClaim,
  kinds.persistentVolume,
  kinds.storageClass,
  kinds.csiNode,
  kinds.csiDriver,
  kinds.csiStorageCapacity,
  kinds.volumeAttachment,
] as const

/** An index of the readable kinds. */
export function followVolumes(registry: CacheRegistry, readable: ReadonlySet<ResourceType>): VolumeIndex {
  const index = new VolumeIndex()
  const follow = <T extends KubeObject>(
    type: ResourceType<T>,
    set: (object: T) => void,
    remove: (object: T) => void,
  ) => {
    if (!readable.has(type)) return
    registry.cache(type).onChange(({ kind, object }) => {
      if (kind === 'deleted') remove(object)
      else set(object)
    })
  }
  follow(
    kinds.persistentVolumeClaim,
    (claim) => {
      index.setClaim(claim)
    },
    (claim) => {
      index.removeClaim(claim)
    },
  )
  follow(
    kinds.persistentVolume,
    (volume) => {
      index.setVolume(volume)
    },
    (volume) => {
      index.removeVolume(volume)
    },
  )
  follow(
    kinds.storageClass,
    (storageClass) => {
      index.setClass(storageClass)
    },
    (storageClass) => {
      index.removeClass(storageClass)
    },
  )
  follow(
    kinds.csiNode,
    (csiNode) => {
      index.setCsiNode(csiNode)
    },
    (csiNode) => {
      index.removeCsiNode(csiNode)
    },
  )
  follow(
    kinds.csiDriver,
    (csiDriver) => {
      index.setCsiDriver(csiDriver)
    },
    (csiDriver) => {
      index.removeCsiDriver(csiDriver)
    },
  )
  follow(
    kinds.csiStorageCapacity,
    (capacity) => {
      index.setCapacity(capacity)
    },
    (capacity) => {
      index.removeCapacity(capacity)
    },
  )
  follow(
    kinds.volumeAttachment,
    (attachment) => {
      index.setAttachment(attachment)
    },
    (attachment) => {
      index.removeAttachment(attachment)
    },
  )
  return index
}
