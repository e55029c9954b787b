/** Claims, volumes and classes for tests, and lookups over them. */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '@tenon/api'
import { aPod } from '../testing/builders.test-support.ts'
import type { VolumeLookups } from './lookups.ts'
import { claimedVolumes } from './volumes.ts'

/** A claim of namespace `default`, of StorageClass `fast` and not bound. */
export function aClaim(
  name: string,
  spec: PersistentVolumeClaim['spec'] = { storageClassName: 'fast' },
  metadata: Partial<PersistentVolumeClaim['metadata']> = {},
): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default', ...metadata },
    spec,
  }
}

/** A claim that is bound to PersistentVolume `volumeName`. */
export function aBoundClaim(name: string, volumeName: string, storageClassName = ''): PersistentVolumeClaim {
  return aClaim(
    name,
    { volumeName, storageClassName },
    { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
  )
}

/** A volume of driver `csi.example.com`. */
export function aVolume(
  name: string,
  spec: PersistentVolume['spec'] = { csi: { driver: 'csi.example.com' } },
  metadata: Partial<PersistentVolume['metadata']> = {},
): PersistentVolume {
  return { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name, ...metadata }, spec }
}

/** A class of driver `csi.example.com` that waits for the first pod. */
export function aClass(name: string, rest: Partial<StorageClass> = {}): StorageClass {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: 'csi.example.com',
    volumeBindingMode: 'WaitForFirstConsumer',
    ...rest,
  }
}

/** A pod with one volume for each claim. */
export function aPodUsing(...claims: readonly string[]): Pod {
  return aPod(
    {},
    {
      volumes: claims.map((claimName, i) => ({ name: `v${i}`, persistentVolumeClaim: { claimName } })),
    },
  )
}

export type StorageObject = PersistentVolume | PersistentVolumeClaim | StorageClass | Pod | Node

/** Lookups that know these objects and no others. */
export function lookupsOf(...objects: readonly StorageObject[]): VolumeLookups {
  const find = (kind: string, name: string, namespace?: string) =>
    objects.find(
      (object) =>
        object.kind === kind && object.metadata.name === name && object.metadata.namespace === namespace,
    )
  return {
    claim: (namespace, name) =>
      find('PersistentVolumeClaim', name, namespace) as PersistentVolumeClaim | undefined,
    volume: (name) => find('PersistentVolume', name) as PersistentVolume | undefined,
    storageClass: (name) => find('StorageClass', name) as StorageClass | undefined,
    volumesOfClass: (name) =>
      objects.filter(
        (each): each is PersistentVolume =>
          each.kind === 'PersistentVolume' && (each as PersistentVolume).spec.storageClassName === name,
      ),
    podsUsing: (namespace, name) =>
      objects.filter(
        (each): each is Pod =>
          each.kind === 'Pod' &&
          each.metadata.namespace === namespace &&
          claimedVolumes(each as Pod).some(({ claimName }) => claimName === name),
      ),
    node: (name) => find('Node', name) as Node | undefined,
  }
}
