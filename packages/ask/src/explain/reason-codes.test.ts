/** Every reason code that a decision can give about a pod, each with a cluster that yields it (EXP-2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type CapacityQuota,
  type InstanceType,
  type KubeObject,
  labels,
  type NodePool,
  type Pod,
} from '@tenon/api'
import { type Deferral, type PodReason, renderPodReason, type TemplateReason } from '@tenon/engine'
import type { UnreadyPool } from '@tenon/operator'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { Study } from '../study/study.ts'
import { aClaimedNode, aPending, aPool, aSnapshot, aType } from '../testing/clusters.test-support.ts'
import { explainPending } from './pending.ts'

/** A cluster whose pod `web` waits, and what is said about it. */
interface Yields {
  readonly objects: readonly KubeObject[]
  readonly types?: readonly InstanceType[]
  readonly edited?: (snapshot: Snapshot) => Snapshot
  /** What explain says of the pod, or of the NodePool that has the code. */
  readonly words: RegExp
}

/** A reason that no cluster at rest yields. */
interface NeverAtRest<Reason> {
  readonly because: string
  readonly reason: Reason
  readonly words: RegExp
}

type Row<Reason> = Yields | NeverAtRest<Reason>

const requests = { cpu: '1', memory: '1Gi' }
const web = (spec: Partial<Pod['spec']> = {}): Pod => aPending('web', requests, spec)
const is = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values })
const zoneSpread = {
  maxSkew: 1,
  topologyKey: 'rack',
  whenUnsatisfiable: 'DoNotSchedule' as const,
  labelSelector: { matchLabels: { app: 'web' } },
}

function claimOf(name: string, more: object = {}, volume?: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name,
      namespace: 'default',
      uid: name,
      ...(volume !== undefined && { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } }),
    },
    spec: { storageClassName: 'disk', ...(volume !== undefined && { volumeName: volume }), ...more },
    ...(volume !== undefined && { status: { phase: 'Bound' } }),
  } as KubeObject
}

const storageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'disk' },
  provisioner: 'csi.my.cloud',
  volumeBindingMode: 'WaitForFirstConsumer',
}

function volumeIn(zone: string): KubeObject {
  const term = { matchExpressions: [{ ...is(labels.zone, zone) }] }
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'volume' },
    spec: {
      csi: { driver: 'csi.my.cloud', volumeHandle: 'a' },
      nodeAffinity: { required: { nodeSelectorTerms: [term] } },
    },
  } as KubeObject
}

const uses = (...claims: readonly string[]): Partial<Pod['spec']> => ({
  volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
})

function daemonSetWithPort(): KubeObject {
  const port = { containerPort: 9100, hostPort: 9100, protocol: 'TCP' }
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'exporter', namespace: 'monitoring', uid: 'exporter' },
    spec: {
      selector: { matchLabels: { app: 'exporter' } },
      template: {
        metadata: { labels: { app: 'exporter' } },
        spec: { containers: [{ name: 'exporter', ports: [port] }] },
      },
    },
  } as KubeObject
}

const attachesOne = (name: string): KubeObject =>
  ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name },
    spec: { drivers: [{ name: 'csi.my.cloud', nodeID: name, topologyKeys: [], allocatable: { count: 1 } }] },
  }) as KubeObject

const templateRows: Readonly<Record<TemplateReason['kind'], Row<TemplateReason>>> = {
  untoleratedTaints: {
    objects: [aPool('blue', {}, { taints: [{ key: 'team', value: 'a', effect: 'NoSchedule' }] }), web()],
    words: /does not tolerate team=a:NoSchedule; add to its spec\.tolerations/,
  },
  undeclaredFeatures: {
    objects: [aPool('blue'), web({ hostNetwork: true, hostUsers: false })],
    words: /not known to declare UserNamespacesHostNetworkSupport .*annotation tenon\.sh\/declared-features/,
  },
  incompatibleRequirements: {
    objects: [
      aPool('blue', {}, { requirements: [is(labels.zone, 'zone-a')] }),
      web({ nodeSelector: { [labels.zone]: 'zone-b' } }),
    ],
    words: /topology\.kubernetes\.io\/zone In \[zone-a\] but the pod needs .* In \[zone-b\]/,
  },
  incompatibleVolumes: {
    objects: [
      aPool('blue', {}, { requirements: [is(labels.zone, 'zone-a')] }),
      storageClass,
      volumeIn('zone-b'),
      claimOf('data', {}, 'volume'),
      web(uses('data')),
    ],
    words: /In \[zone-a\] but the pod's volumes need topology\.kubernetes\.io\/zone In \[zone-b\]/,
  },
  noInstanceType: {
    objects: [aPool('blue'), aPending('web', { cpu: '9', memory: '1Gi' })],
    words: /no instance type has enough resources \(.*requests: cpu=9, memory=1Gi/,
  },
  hostPortClash: {
    objects: [
      aPool('blue'),
      daemonSetWithPort(),
      web({
        containers: [
          { name: 'app', ports: [{ containerPort: 80, hostPort: 9100 }], resources: { requests } },
        ],
      }),
    ],
    words: /host port .* taken .*\(TCP 9100 by DaemonSet monitoring\/exporter\)/,
  },
  attachLimit: {
    objects: [
      aPool('blue'),
      ...aClaimedNode('taken', aPool('blue'), aType('small', 2)),
      ...aClaimedNode('taken-too', aPool('blue'), aType('large', 4)),
      ...['taken', 'taken-too'].map(attachesOne),
      storageClass,
      claimOf('data'),
      claimOf('logs'),
      web(uses('data', 'logs')),
    ],
    words: /csi\.my\.cloud/,
  },
  driverMissing: {
    because: 'it is learned from nodes that went without the driver for minutes',
    reason: { kind: 'driverMissing', driver: 'csi.my.cloud' },
    words: /nodes do not run CSI driver csi\.my\.cloud/,
  },
  topology: {
    objects: [aPool('blue'), web({ topologySpreadConstraints: [zoneSpread] })],
    words: /spread constraint over rack cannot be met/,
  },
  minValues: {
    objects: [
      aPool('blue', {}, { requirements: [{ key: labels.instanceType, operator: 'Exists', minValues: 2 }] }),
      aPending('web', { cpu: '3', memory: '1Gi' }),
    ],
    words: /minValues not met for node\.kubernetes\.io\/instance-type \(1 left\)/,
  },
  nodeLimit: {
    objects: [aPool('blue', { limits: { nodes: '0' } }), web()],
    words: /limit on the number of nodes is used up; raise spec\.limits\.nodes/,
  },
  limits: {
    objects: [aPool('blue', { limits: { cpu: '1' } }), web()],
    words: /every instance type would exceed the limits of NodePool blue/,
  },
  quota: {
    objects: [aPool('blue'), aQuota({ cpu: '1' }), web()],
    words: /CapacityQuota ceiling has 1 of cpu left, which is too little/,
  },
  unavailable: {
    objects: [aPool('blue'), web()],
    types: [aType('small', 2, { available: false })],
    words: /every offering that suits the pod is unavailable now \(small\/zone-a\/on-demand/,
  },
}

/** A type with one instance in a reservation, in one zone, and nothing else. */
const reserved: InstanceType = {
  ...aType('held', 2, { in: ['zone-a'] }),
  requirements: [
    is(labels.instanceType, 'held'),
    is(labels.arch, 'amd64'),
    is(labels.os, 'linux'),
    is(labels.zone, 'zone-a'),
    is(labels.capacityType, 'reserved'),
    is('my.cloud/reservation', 'r-1'),
  ],
  offerings: [
    {
      requirements: [
        is(labels.zone, 'zone-a'),
        is(labels.capacityType, 'reserved'),
        is('my.cloud/reservation', 'r-1'),
      ],
      pricePerHour: 0.01,
      available: true,
      reservationCapacity: 1,
    },
  ],
}

const podRows: Readonly<Record<PodReason['kind'], Row<PodReason>>> = {
  noPools: { objects: [web()], words: /no NodePool is ready to launch nodes; create one/ },
  noTypesInPools: {
    objects: [
      aPool('blue', {}, { requirements: [{ key: labels.instanceType, operator: 'Exists', minValues: 3 }] }),
      web(),
    ],
    words:
      /the NodePools' requirements leave no usable instance type[^]*NodePool blue: minValues of its requirements/,
  },
  noTemplate: {
    objects: [aPool('blue', { limits: { cpu: '1' } }), web()],
    words:
      /No NodePool can launch a node for it[^]*NodePool blue: every instance type would exceed the limits/,
  },
  truncationBrokeMinValues: {
    objects: [
      aPool('blue', {}, { requirements: [{ key: 'family', operator: 'Exists', minValues: 2 }] }),
      web(),
    ],
    types: [
      ...Array.from({ length: 601 }, (_, at) =>
        ofFamily('cheap', aType(`cheap-${at}`, 2, { in: ['zone-a'] })),
      ),
      ofFamily('dear', aType('dear', 64)),
    ],
    words:
      /NodePool blue: too few of the cheapest instance types are left to keep minValues of family \(1 left\)/,
  },
  reservationDeferred: {
    objects: [
      aPool('blue'),
      aPending('first', { cpu: '2', memory: '1Gi' }),
      aPending('web', { cpu: '1500m' }),
    ],
    types: [reserved],
    edited: (snapshot) => ({
      ...snapshot,
      cloud: {
        ...snapshot.cloud,
        wellKnownLabels: ['my.cloud/reservation'],
        reservationLabel: 'my.cloud/reservation',
      },
    }),
    words: /all suitable reserved capacity is used by other pods/,
  },
  uninitializedNode: {
    because: 'only simulations of removals rely on nodes that are there',
    reason: { kind: 'uninitializedNode', node: 'n1' },
    words: /rely on node n1, which is not initialized/,
  },
  resourceClaims: {
    objects: [aPool('blue'), web({ resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }] })],
    edited: (snapshot) => ({ ...snapshot, settings: { ...snapshot.settings, ignoreDraRequests: true } }),
    words: /uses ResourceClaims \(spec\.resourceClaims\), for which no node can be launched/,
  },
  devices: {
    objects: [
      aPool('blue'),
      {
        apiVersion: 'resource.k8s.io/v1',
        kind: 'ResourceClaim',
        metadata: { name: 'gpu', namespace: 'default', uid: 'gpu' },
        spec: { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu.my.cloud' } }] } },
      } as KubeObject,
      web({ resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }] }),
    ],
    edited: (snapshot) => ({ ...snapshot, settings: { ...snapshot.settings, ignoreDraRequests: false } }),
    words: /ResourceClaim default\/gpu: .*DeviceClass gpu\.my\.cloud/,
  },
  extendedResources: {
    objects: [
      aPool('blue'),
      {
        apiVersion: 'resource.k8s.io/v1',
        kind: 'DeviceClass',
        metadata: { name: 'gpu.my.cloud' },
        spec: { extendedResourceName: 'my.cloud/gpu' },
      } as KubeObject,
      aPending('web', { ...requests, 'my.cloud/gpu': '1' }),
    ],
    edited: (snapshot) => ({ ...snapshot, settings: { ...snapshot.settings, ignoreDraRequests: false } }),
    words: /my\.cloud\/gpu, which devices serve: .*DeviceClass gpu\.my\.cloud/,
  },
  exclusiveClaim: {
    objects: [
      aPool('blue'),
      storageClass,
      claimOf('data', { accessModes: ['ReadWriteOncePod'] }),
      aPending('a-first', requests, uses('data')),
      web(uses('data')),
    ],
    words: /PersistentVolumeClaim default\/data has access mode ReadWriteOncePod/,
  },
  malformed: {
    because: 'a pod that cannot be read is left out before, with the field and what to write',
    reason: { kind: 'malformed', problem: 'spec.overhead.cpu "much" is not a quantity' },
    words: /the pod is malformed: spec\.overhead\.cpu "much" is not a quantity/,
  },
  podGroupShort: {
    because: 'snapshots hold no PodGroups',
    reason: {
      kind: 'podGroupShort',
      group: 'podgroups.scheduling.k8s.io/default/train',
      members: 1,
      bound: 1,
      minCount: 4,
    },
    words: /train runs with at least 4 pods and has 2 .*waits for the others/,
  },
  podGroup: {
    because: 'snapshots hold no PodGroups',
    reason: {
      kind: 'podGroup',
      group: 'podgroups.scheduling.k8s.io/default/train',
      placed: 2,
      bound: 1,
      minCount: 4,
      key: 'rack',
      domain: 'r1',
      because: { kind: 'noPools' },
    },
    words: /at least 4 pods, and there is room for 3 in rack r1; for the next one: no NodePool is ready/,
  },
  podGroupTopology: {
    because: 'snapshots hold no PodGroups',
    reason: { kind: 'podGroupTopology', group: 'podgroups.scheduling.k8s.io/default/train', key: 'rack' },
    words: /must share a value of the node label rack, which no node has and no NodePool gives/,
  },
  unexplained: {
    because: 'it stands for a bug',
    reason: { kind: 'unexplained' },
    words: /./,
  },
  undecidable: {
    because: 'it stands for a bug',
    reason: { kind: 'undecidable', problem: 'index out of range' },
    words: /index out of range/,
  },
}

const deferralRows: Readonly<Record<Deferral['kind'], Yields>> = {
  offeringsOnTrial: {
    objects: [aPool('blue'), aPending('other', { cpu: '2' }), aPending('web', { cpu: '2' })],
    types: [aType('small', 2, { in: ['zone-a'] })],
    edited: (snapshot) => ({
      ...snapshot,
      memory: {
        ...snapshot.memory,
        offeringsOnTrial: [{ instanceType: 'small', zone: 'zone-a', capacityType: 'on-demand' }],
      },
    }),
    words: /NodePool blue waits for another launch to find out whether the offering can be bought again/,
  },
  limitReserved: {
    objects: [aPool('blue', { limits: { cpu: '4' } }), web()],
    types: [aType('small', 2)],
    edited: (snapshot) => ({
      ...snapshot,
      memory: { ...snapshot.memory, reserved: { blue: { cpu: 4000 } } },
    }),
    words: /Nodes on their way take what is left of the limit of cpu of NodePool blue/,
  },
  quotaReserved: {
    objects: [aPool('blue'), aQuota({ cpu: '4' }), web()],
    types: [aType('small', 2)],
    edited: (snapshot) => ({
      ...snapshot,
      memory: { ...snapshot.memory, reservedOfQuotas: { ceiling: { cpu: 4000 } } },
    }),
    words: /Nodes on their way take what is left of cpu of CapacityQuota ceiling/,
  },
}

function conditioned(type: string, status: 'True' | 'False', reason: string, message: string): NodePool {
  const lastTransitionTime = '2026-11-26T11:00:00Z'
  return { ...aPool('blue'), status: { conditions: [{ type, status, reason, message, lastTransitionTime }] } }
}

function aQuota(resources: Readonly<Record<string, string>>): CapacityQuota {
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityQuota',
    metadata: { name: 'ceiling' },
    spec: { limits: { resources } },
  }
}

function annotated(pool: NodePool, annotations: Readonly<Record<string, string>>): NodePool {
  return { ...pool, metadata: { ...pool.metadata, annotations } }
}

const [, stuckClaim] = aClaimedNode('lost', aPool('blue'), aType('small', 2))

const poolRows: Readonly<Record<UnreadyPool['code'], Yields>> = {
  stuck: {
    objects: [
      aPool('blue'),
      { ...stuckClaim, apiVersion: 'karpenter.sh/v1', kind: 'NodeClaim', status: {} } as KubeObject,
      web(),
    ],
    words: /NodePool blue: a NodeClaim of it cannot be launched/,
  },
  invalid: {
    objects: [aPool('blue', {}, { requirements: [is(labels.hostname, 'a')] }), web()],
    words: /NodePool blue: .*kubernetes\.io\/hostname/,
  },
  paused: {
    objects: [
      annotated(aPool('blue'), { 'tenon.sh/paused': '{"reason":"incident 42","includes":["launches"]}' }),
      web(),
    ],
    words: /NodePool blue: .*incident 42/,
  },
  notReady: {
    objects: [conditioned('Ready', 'False', 'NodeClassNotReady', 'the image is gone'), web()],
    words: /NodePool blue: .*the image is gone/,
  },
  observed: {
    objects: [annotated(aPool('blue'), { 'tenon.sh/mode': 'observe' }), web()],
    words: /NodePool blue: .*tenon\.sh\/mode: observe/,
  },
  deleting: {
    objects: [
      {
        ...aPool('blue'),
        metadata: { ...aPool('blue').metadata, deletionTimestamp: '2026-11-26T11:59:00Z', finalizers: ['a'] },
      },
      web(),
    ],
    words: /NodePool blue: it is being deleted/,
  },
  static: {
    objects: [aPool('blue', { replicas: 1 }), web()],
    words: /NodePool blue: it is static: spec\.replicas sets the number of its nodes/,
  },
}

function ofFamily(family: string, type: InstanceType): InstanceType {
  return { ...type, requirements: [...type.requirements, is('family', family)] }
}

const types = [aType('small', 2), aType('large', 4)]

/** The code that stands for the case, and what is said: first about the pod, then line by line about NodePools. */
async function toldOf(row: Yields): Promise<{ readonly codes: readonly string[]; readonly told: string }> {
  const plain = aSnapshot(row.objects, row.types ?? types)
  const study = await Study.open(row.edited?.(plain) ?? plain)
  const pod = study.operator.caches.pods.get({ namespace: 'default', name: 'web' })
  assert.ok(pod)
  const answer = await explainPending(study, await study.decide(), pod, { missesMs: 0 })
  await study.close()
  assert.ok(answer)
  const lines = answer.nodePools.map(({ nodePool, message }) => `NodePool ${nodePool}: ${message}`)
  return {
    codes: [answer.code, ...answer.nodePools.map(({ code }) => code)],
    told: [answer.summary, ...lines].join('\n'),
  }
}

const all: readonly (readonly [string, Row<PodReason> | Row<TemplateReason>])[] = [
  ...Object.entries(templateRows),
  ...Object.entries(podRows),
  ...Object.entries(deferralRows),
  ...Object.entries(poolRows),
]

for (const [code, row] of all) {
  if ('because' in row) continue
  test(`EXP-2 code ${code} of a pod that waits comes with the rule, the object and the amounts`, async () => {
    const { codes, told } = await toldOf(row)
    assert.ok(codes.includes(code), `${codes.join(', ')}: ${told}`)
    assert.match(told, row.words)
  })
}

test('EXP-2 reasons that no cluster at rest yields have words as well', () => {
  for (const row of Object.values(podRows))
    if ('because' in row) assert.match(renderPodReason(row.reason), row.words, row.because)
})
