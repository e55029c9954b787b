/** A round of pods with volumes: bound ones, and ones that are bound where their first pod runs. */
import { kinds, labels } from '@tenon/api'
import { type Item, item } from './objects.ts'
import { zones } from './pools.ts'
import type { Round } from './round.ts'

/** Provisioner of the storage classes; see {@link VolumeProvisioner}. */
export const provisionerName = 'volumes.proof.example'

function storageClass(name: string, allowedZones?: readonly string[]): Item {
  return item(kinds.storageClass, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: provisionerName,
    volumeBindingMode: 'WaitForFirstConsumer',
    ...(allowedZones && {
      allowedTopologies: [{ matchLabelExpressions: [{ key: labels.zone, values: allowedZones }] }],
    }),
  })
}

function claim(namespace: string, name: string, spec: object): Item {
  return item(kinds.persistentVolumeClaim, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  })
}

/** A volume of one zone and the claim that is bound to it. */
function boundClaim(namespace: string, name: string, zone: string): readonly Item[] {
  const volume = `${namespace}-${name}`
  return [
    item(kinds.persistentVolume, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: volume },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: '',
        claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name },
        csi: { driver: provisionerName, volumeHandle: volume },
        nodeAffinity: zoneAffinity(zone),
      },
    }),
    claim(namespace, name, { storageClassName: '', volumeName: volume }),
  ]
}

export function zoneAffinity(zone: string) {
  return {
    required: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: labels.zone, operator: 'In', values: [zone] }] }],
    },
  }
}

const mounting = (...names: string[]) => ({
  volumes: names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
})

export const volumeRound: Round = {
  kind: 'volumes',
  items: (make, draw) => {
    const { namespace } = make
    const pod = (name: string, claims: readonly string[]) =>
      make.pod({ name, requests: draw.requests(), spec: mounting(...claims) })
    return [
      storageClass('proof-late'),
      storageClass('proof-late-some-zones', [zones[1], zones[2]]),
      ...zones.flatMap((zone, index) => boundClaim(namespace, `bound-${index}`, zone)),
      ...[0, 1, 2].map((index) => claim(namespace, `late-${index}`, { storageClassName: 'proof-late' })),
      ...[0, 1, 2].map((index) =>
        claim(namespace, `late-some-${index}`, { storageClassName: 'proof-late-some-zones' }),
      ),
      ...zones.map((_, index) => pod(`with-bound-${index}`, [`bound-${index}`])),
      pod('also-with-bound-1', ['bound-1']),
      pod('with-late-0', ['late-0']),
      pod('with-late-1', ['late-1']),
      pod('with-late-some-0', ['late-some-0']),
      pod('with-late-some-1', ['late-some-1']),
      pod('bound-and-late', ['bound-2', 'late-some-2']),
      pod('bound-and-late-anywhere', ['bound-3', 'late-2']),
      make.deployment(4, { name: 'without', requests: draw.requests() }),
    ]
  },
}
