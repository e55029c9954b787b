/** Random volumes of a case: claims in every state, storage classes, limits of CSI drivers, ephemeral volumes. */
import { kinds, type UnstructuredObject } from '@tenon/api'
import type { Draw } from '../scheduling-proof/objects.ts'
import type { CaseObject } from './cases.ts'

/** A volume source for pods. */
export interface VolumeChoice {
  /** The only namespace whose pods can use it; undefined: all. */
  readonly namespace: string | undefined
  readonly source: Readonly<Record<string, unknown>>
}

const driver = 'csi.test'
const zoneLabel = 'topology.kubernetes.io/zone'
const modes = ['ReadWriteOnce', 'ReadWriteMany', 'ReadWriteOncePod'] as const

/** Generates the volumes of the case `name`. */
export function drawVolumes(
  name: string,
  namespaces: readonly string[],
  nodes: readonly string[],
  draw: Draw,
): { readonly objects: readonly CaseObject[]; readonly choices: readonly VolumeChoice[] } {
  const objects: CaseObject[] = []
  const choices: VolumeChoice[] = inTreeSources(draw).map((source) => ({ namespace: undefined, source }))
  if (draw.chance(40)) return { objects, choices }
  const classes = storageClasses(name, draw)
  objects.push(...classes.map((object) => ({ type: kinds.storageClass, object })))
  for (const node of nodes) {
    if (draw.chance(40)) objects.push({ type: kinds.csiNode, object: csiNode(node, draw) })
  }
  for (let index = 0; index < draw.between(0, 2); index++) {
    const object = freeVolume(`${name}-free-${index}`, name, draw)
    const status = { phase: draw.chance(85) ? 'Available' : 'Released' }
    objects.push({ type: kinds.persistentVolume, object, status })
  }
  for (let index = 0; index < draw.between(1, 4); index++) {
    const namespace = draw.pick(namespaces)
    const claimName = `claim-${index}`
    objects.push(...claim({ name, namespace, claimName, nodes }, draw))
    choices.push({ namespace, source: { persistentVolumeClaim: { claimName } } })
  }
  if (draw.chance(15)) {
    choices.push({ namespace: undefined, source: { persistentVolumeClaim: { claimName: 'missing' } } })
  }
  return { objects, choices }
}

/** Volumes that Kubernetes still does not mount twice on a node, and an unrelated one. */
function inTreeSources(draw: Draw): readonly VolumeChoice['source'][] {
  return draw.some(
    [
      { emptyDir: {} },
      { gcePersistentDisk: { pdName: 'disk', ...(draw.chance(40) && { readOnly: true }) } },
      { awsElasticBlockStore: { volumeID: 'vol-1', ...(draw.chance(40) && { readOnly: true }) } },
      {
        rbd: { monitors: ['m1', 'm2'], pool: 'rbd', image: 'i1', ...(draw.chance(40) && { readOnly: true }) },
      },
      {
        iscsi: {
          targetPortal: '10.0.0.9',
          iqn: 'iqn.2026-01.test:disk',
          lun: 0,
          ...(draw.chance(40) && { readOnly: true }),
        },
      },
    ],
    2,
  )
}

function storageClasses(name: string, draw: Draw): readonly UnstructuredObject[] {
  const base = { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass' }
  const matchLabelExpressions = [{ key: zoneLabel, values: draw.some(['z1', 'z2', 'z3'], 2) }]
  return [
    { ...base, metadata: { name: `${name}-now` }, provisioner: driver, volumeBindingMode: 'Immediate' },
    {
      ...base,
      metadata: { name: `${name}-later` },
      provisioner: driver,
      volumeBindingMode: 'WaitForFirstConsumer',
      ...(draw.chance(50) && { allowedTopologies: [{ matchLabelExpressions }] }),
    },
    {
      ...base,
      metadata: { name: `${name}-local` },
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    },
  ]
}

function csiNode(node: string, draw: Draw): UnstructuredObject {
  const count = draw.pick([0, 1, 1, 2])
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name: node },
    spec: {
      drivers: [
        {
          name: driver,
          nodeID: node,
          topologyKeys: null,
          ...(draw.chance(85) && { allocatable: { count } }),
        },
      ],
    },
  }
}

function zoneAffinity(draw: Draw) {
  const values = draw.some(['z1', 'z2', 'z3'], 2)
  const matchExpressions = [{ key: zoneLabel, operator: 'In', values }]
  return { nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } } }
}

function freeVolume(volumeName: string, name: string, draw: Draw): UnstructuredObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: volumeName, labels: { shelf: draw.pick(['top', 'bottom']) } },
    spec: {
      capacity: { storage: draw.pick(['1Gi', '5Gi']) },
      accessModes: ['ReadWriteOnce', ...(draw.chance(40) ? ['ReadWriteMany'] : [])],
      storageClassName: `${name}-local`,
      csi: { driver, volumeHandle: volumeName },
      ...(draw.chance(80) && zoneAffinity(draw)),
      ...(draw.chance(10) && { volumeMode: 'Block' }),
    },
  }
}

interface ClaimParts {
  readonly name: string
  readonly namespace: string
  readonly claimName: string
  readonly nodes: readonly string[]
}

function claim(parts: ClaimParts, draw: Draw): readonly CaseObject[] {
  const { name, namespace, claimName, nodes } = parts
  const storageClassName = `${name}-${draw.pick(['now', 'later', 'later', 'local'])}`
  const accessModes = [draw.pick(modes)]
  const isBound = draw.chance(60)
  const volumeName = `${namespace}-${claimName}`
  const storage = draw.pick(['1Gi', '3Gi'])
  const annotations = {
    // The final state that the volume controller sets on a binding.
    ...(isBound && draw.chance(90) && { 'pv.kubernetes.io/bind-completed': 'yes' }),
    ...(!isBound && draw.chance(15) && { 'volume.kubernetes.io/selected-node': draw.pick(nodes) }),
  }
  const object: UnstructuredObject = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: claimName, namespace, annotations },
    spec: {
      accessModes,
      storageClassName,
      resources: { requests: { storage } },
      ...(isBound && { volumeName }),
      ...(!isBound && draw.chance(15) && { selector: { matchLabels: { shelf: 'top' } } }),
    },
  }
  const volume: UnstructuredObject = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: volumeName,
      ...(draw.chance(25) && { labels: { [zoneLabel]: draw.pick(['z1', 'z2', 'z1__z2']) } }),
    },
    spec: {
      capacity: { storage },
      accessModes,
      storageClassName,
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', name: claimName, namespace },
      csi: { driver, volumeHandle: draw.chance(90) ? volumeName : `${name}-shared` },
      ...(draw.chance(50) && zoneAffinity(draw)),
    },
  }
  return [
    {
      type: kinds.persistentVolumeClaim,
      object,
      status: { phase: draw.chance(5) ? 'Lost' : isBound ? 'Bound' : 'Pending' },
    },
    ...(isBound && draw.chance(95)
      ? [{ type: kinds.persistentVolume, object: volume, status: { phase: 'Bound' } }]
      : []),
  ]
}
