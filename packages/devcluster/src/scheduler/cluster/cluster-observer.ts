import {
  type CsiDriver,
  type CsiNode,
  type CsiStorageCapacity,
  type DeviceClass,
  type DeviceTaintRule,
  deviceTaintRuleKinds,
  kinds,
  type KubeObject,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type ResourceClaim,
  type ResourceSlice,
  type ResourceType,
  type StorageClass,
  type VolumeAttachment,
} from '@tenon/api'
import type { LocalHandler } from '../../contract.ts'
import type { ReadApi } from './held-events.ts'
import type { ClusterIndex, DeviceIndex, VolumeIndex } from '@tenon/filters'
import type { ClusterEvent } from '../queue/scheduling-queue.ts'

/** Callbacks of the observer. */
export interface ObserverHandler {
  /** The current pod; undefined if it is gone (`uid` then identifies it). */
  readonly pod: (uid: string, pod: Pod | undefined) => void
  readonly changed: (event: ClusterEvent, nodeName?: string) => void
}

/** The indexes that the observer updates. */
export interface ObservedIndexes {
  readonly index: ClusterIndex
  readonly volumes: VolumeIndex
  readonly devices: DeviceIndex
}

/**
 * Updates the indexes of nodes, namespaces, volumes and devices, and passes on pods. Reads everything at the start, so
 * that scheduling begins with a complete state; events keep it current.
 */
export function observeCluster(
  api: ReadApi,
  { index, volumes, devices }: ObservedIndexes,
  handler: ObserverHandler,
): () => void {
  const stops: (() => void)[] = []
  const follow = <T extends KubeObject>(
    type: ResourceType<T>,
    upsert: (object: T) => void,
    remove: (object: T) => void,
  ): void => {
    for (const object of api.list(type)) upsert(object)
    const reactions: LocalHandler<T> = { added: upsert, updated: upsert, deleted: remove }
    stops.push(api.subscribe(type, reactions))
  }
  followNodes(follow, index, handler)
  follow(
    kinds.namespace,
    (one) => {
      index.setNamespace(one.metadata.name, one.metadata.labels ?? {})
      handler.changed('namespaceChanged')
    },
    (one) => index.setNamespace(one.metadata.name, undefined),
  )
  followVolumes(follow, index, volumes, handler)
  followDevices(follow, api, { index, devices }, handler)
  follow(
    kinds.pod,
    (pod) => {
      const uid = pod.metadata.uid ?? ''
      // Events lag behind the scheduler's own writes; the latest version does not.
      const latest = api.get(kinds.pod, pod.metadata.namespace, pod.metadata.name)
      handler.pod(uid, latest?.metadata.uid === uid ? latest : undefined)
    },
    (pod) => handler.pod(pod.metadata.uid ?? '', undefined),
  )
  return () => {
    for (const stop of stops) stop()
  }
}

type Follow = <T extends KubeObject>(
  type: ResourceType<T>,
  upsert: (object: T) => void,
  remove: (object: T) => void,
) => void

function followNodes(follow: Follow, index: ClusterIndex, handler: ObserverHandler): void {
  follow(
    kinds.node,
    (node) => {
      const known = index.node(node.metadata.name)?.node
      if (known !== undefined && !changesScheduling(known, node)) return
      index.setNode(node.metadata.name, node)
      handler.changed('nodeChanged', node.metadata.name)
    },
    (node) => {
      index.setNode(node.metadata.name, undefined)
      handler.changed('nodeChanged')
    },
  )
}

/** Heartbeats change nodes all the time; only these fields matter for pods. */
function changesScheduling(before: Node, after: Node): boolean {
  return (
    before !== after &&
    (before.spec?.unschedulable !== after.spec?.unschedulable ||
      differs(before.spec?.taints, after.spec?.taints) ||
      differs(before.metadata.labels, after.metadata.labels) ||
      differs(before.status?.allocatable, after.status?.allocatable))
  )
}

function differs(before: unknown, after: unknown): boolean {
  return before !== after && JSON.stringify(before) !== JSON.stringify(after)
}

function followDevices(
  follow: Follow,
  api: ReadApi,
  { index, devices }: Pick<ObservedIndexes, 'index' | 'devices'>,
  handler: ObserverHandler,
): void {
  const changed = (type: ResourceType): void => {
    index.touch()
    handler.changed(type === kinds.deviceClass ? 'deviceClassChanged' : 'deviceChanged')
  }
  const both = <T extends KubeObject>(
    type: ResourceType<T>,
    set: (object: T) => void,
    remove: (object: T) => void,
  ): void => {
    const look = (object: T): void => {
      // Events lag behind the scheduler's own writes; the latest version does not.
      const latest = api.get(type, object.metadata.namespace, object.metadata.name)
      if (latest === undefined) remove(object)
      else set(latest)
      changed(type)
    }
    follow(type, look, look)
  }
  both<ResourceSlice>(
    kinds.resourceSlice,
    (one) => devices.setSlice(one),
    (one) => devices.removeSlice(one),
  )
  both<DeviceClass>(
    kinds.deviceClass,
    (one) => devices.setClass(one),
    (one) => devices.removeClass(one),
  )
  both<DeviceTaintRule>(
    deviceTaintRuleKinds.v1beta2,
    (one) => devices.setTaintRule(one),
    (one) => devices.removeTaintRule(one),
  )
  both<ResourceClaim>(
    kinds.resourceClaim,
    (one) => devices.setClaim(one),
    (one) => devices.removeClaim(one),
  )
}

function followVolumes(
  follow: Follow,
  index: ClusterIndex,
  volumes: VolumeIndex,
  handler: ObserverHandler,
): void {
  const changed = (): void => {
    index.touch()
    handler.changed('volumeChanged')
  }
  const both = <T extends KubeObject>(
    type: ResourceType<T>,
    set: (object: T) => void,
    remove: (object: T) => void,
  ): void => {
    follow(
      type,
      (object) => {
        set(object)
        changed()
      },
      (object) => {
        remove(object)
        changed()
      },
    )
  }
  both<PersistentVolumeClaim>(
    kinds.persistentVolumeClaim,
    (one) => volumes.setClaim(one),
    (one) => volumes.removeClaim(one),
  )
  both<PersistentVolume>(
    kinds.persistentVolume,
    (one) => volumes.setVolume(one),
    (one) => volumes.removeVolume(one),
  )
  both<StorageClass>(
    kinds.storageClass,
    (one) => volumes.setClass(one),
    (one) => volumes.removeClass(one),
  )
  both<CsiNode>(
    kinds.csiNode,
    (one) => volumes.setCsiNode(one),
    (one) => volumes.removeCsiNode(one),
  )
  both<CsiDriver>(
    kinds.csiDriver,
    (one) => volumes.setCsiDriver(one),
    (one) => volumes.removeCsiDriver(one),
  )
  both<CsiStorageCapacity>(
    kinds.csiStorageCapacity,
    (one) => volumes.setCapacity(one),
    (one) => volumes.removeCapacity(one),
  )
  both<VolumeAttachment>(
    kinds.volumeAttachment,
    (one) => volumes.setAttachment(one),
    (one) => volumes.removeAttachment(one),
  )
}
