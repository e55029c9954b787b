import { kinds } from '@tenon/api'
import type { CloudSimulator, DevCluster, LocalApi } from '@tenon/devcluster'
import type { Secret } from '@tenon/runtime'
import { createExoscale, type Exoscale } from './exoscale.ts'
import type { InstanceRecord } from './instances/kept-instances.ts'
import type { ExoscaleSettings } from './settings.ts'

/** The zone of a simulated Exoscale, and its API keys. */
export interface SimulatedZone {
  readonly zone: string
  /** Id of the simulated SKS cluster. */
  readonly clusterId: string
  readonly key: string
  readonly secret: Secret
  /** What the IAM role of the key allows; default: everything. */
  readonly operations?: readonly string[]
  readonly settings?: Partial<ExoscaleSettings>
}

/** An embedded cluster in a simulated Exoscale. */
export type ExoscaleCluster = DevCluster<Exoscale>

export function exoscaleSimulator({
  zone,
  clusterId,
  key,
  secret,
  operations,
  settings,
}: SimulatedZone): CloudSimulator<Exoscale> {
  return {
    prepare: createDefaultStorageClass,
    start: ({ runtime, nodes, api, keptInstances }) =>
      createExoscale({
        clock: runtime.clock,
        logger: runtime.logger,
        random: runtime.random.fork('exoscale'),
        joiner: nodes.joiner,
        api: api.as('exoscale-cloud-controller-manager'),
        zone,
        clusterId,
        clusterVersion: api.version,
        credentials: [{ key, secret, ...(operations && { operations }) }],
        ...(settings && { settings }),
        ...(keptInstances && { kept: keptInstances<InstanceRecord>() }),
      }),
  }
}

/** The default StorageClass of a new SKS cluster: block storage in the zone of the pod. */
function createDefaultStorageClass(api: LocalApi): void {
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
