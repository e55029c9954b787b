import { kinds } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'

/** The class that claims without one get on a new SKS cluster: block storage in the zone of the pod. */
export function createDefaultStorageClass(api: LocalApi): void {
  const name = 'exoscale-sbs'
  if (api.get(kinds.storageClass, undefined, name) !== undefined) return
  const storageClass = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: 'csi.exoscale.com',
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'WaitForFirstConsumer',
    allowVolumeExpansion: true,
  }
  api.create(kinds.storageClass, storageClass)
}
