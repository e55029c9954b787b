import { kinds, labels, type PersistentVolumeClaim, type ResourceType } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import type { Operator } from '@tenon/operator'
import { provisionerName, zoneAffinity } from './volume-round.ts'

const selectedNode = 'volume.kubernetes.io/selected-node'

/**
 * Acts as CSI provisioner: creates a volume, in the zone of the node that the scheduler chose, for each pending
 * claim. The real controller manager then binds the two.
 */
export class VolumeProvisioner {
  readonly #client: KubeClient
  readonly #caches: Operator['caches']
  readonly #made = new Set<string>()
  readonly #stop: () => void

  constructor(client: KubeClient, caches: Operator['caches']) {
    this.#client = client
    this.#caches = caches
    this.#stop = caches.persistentVolumeClaims.onChange(({ kind, object }) => {
      if (kind !== 'deleted') void this.#provide(object)
    })
  }

  stop(): void {
    this.#stop()
  }

  async #provide({ metadata, spec }: PersistentVolumeClaim): Promise<void> {
    const node = this.#caches.nodes.get({ name: metadata.annotations?.[selectedNode] ?? '' })
    const name = `pvc-${metadata.uid ?? ''}`
    if (node === undefined || (spec.volumeName ?? '') !== '' || this.#made.has(name)) return
    this.#made.add(name)
    const volume = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': provisionerName } },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: spec.storageClassName ?? '',
        claimRef: {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          namespace: metadata.namespace ?? '',
          name: metadata.name,
          uid: metadata.uid ?? '',
        },
        csi: { driver: provisionerName, volumeHandle: name },
        nodeAffinity: zoneAffinity(node.metadata.labels?.[labels.zone] ?? ''),
      },
    }
    await this.#client.create(kinds.persistentVolume as ResourceType, volume).catch((error: unknown) => {
      if (!isKubeError(error, 'alreadyExists')) throw error
    })
  }
}
