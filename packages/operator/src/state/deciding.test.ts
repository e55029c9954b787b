/** What decisions take into account of the pods that run already. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type DaemonSet,
  kinds,
  type KubeObject,
  labels,
  type OwnerReference,
  type Pod,
  type PodAffinityTerm,
  type PodSpec,
  type ResourceType,
} from '@tenon/api'
import { aWaitingPod, gathered, places, readyPool } from './deciding.test-support.ts'
import { aNode, aPod, asSent } from './nodes/nodes.test-support.ts'
import { ObservedCluster } from './observed-cluster.test-support.ts'

const zone = { [labels.zone]: 'zone-1', [labels.os]: 'linux' }

/** A cluster with a usable NodePool, foreign node `node` of 4 cores in `zone-1`, and these. */
function aCluster(...objects: readonly KubeObject[]): ObservedCluster {
  const cluster = new ObservedCluster()
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default', uid: 'default' } }
  const node = aNode('node', { providerID: 'p://1', labels: { ...zone, [labels.hostname]: 'node' } })
  cluster.see(readyPool, namespace, node, ...objects)
  return cluster
}

describe('host ports', () => {
  const port = (hostPort: number, more: object = {}): Partial<PodSpec> => ({
    containers: [{ name: 'app', ports: [{ containerPort: 80, hostPort, ...more }] }],
  })
  const placeBeside = async (taken: object, wanted: object) =>
    (await places(aCluster(aPod('pod', 'node', port(8080, taken)), aWaitingPod('new', port(8080, wanted)))))[
      'new'
    ]

  test('STA-24 a pod that got its node keeps nobody from its port but others', async () => {
    const pod = aWaitingPod('pod', port(8080))
    const cluster = aCluster(pod)
    assert.deepEqual(await places(cluster), { pod: 'node' })
    // It is bound: seen twice, it still takes its port once, and asks for no other node.
    for (let i = 0; i < 2; i++) cluster.see({ ...aPod('pod', 'node', port(8080)) })
    assert.equal(cluster.state.pods.useOf('node').hostPorts.length, 1)
    assert.deepEqual(await places(cluster), {})
    cluster.see(aWaitingPod('other', port(8080)), aWaitingPod('third', port(9090)))
    assert.deepEqual(await places(cluster), { other: 'new', third: 'node' })
  })

  test('STA-25 every address clashes with any, one protocol with none but itself', async () => {
    assert.equal(await placeBeside({}, { hostIP: '10.0.0.1' }), 'new')
    assert.equal(await placeBeside({ hostIP: '10.0.0.1' }, { hostIP: '0.0.0.0' }), 'new')
    assert.equal(await placeBeside({ hostIP: '::' }, { hostIP: '10.0.0.1' }), 'new')
    assert.equal(await placeBeside({ hostIP: '10.0.0.1' }, { hostIP: '10.0.0.2' }), 'node')
    assert.equal(await placeBeside({ protocol: 'TCP' }, { hostIP: '10.0.0.1', protocol: 'UDP' }), 'node')
  })
})

describe('volumes', () => {
  const storage = (type: ResourceType, metadata: object, rest: object): KubeObject =>
    asSent(type, { metadata: { uid: JSON.stringify(metadata), ...metadata }, ...rest })
  const storageClass = storage(kinds.storageClass, { name: 'fast' }, { provisioner: 'csi.example.com' })
  const csiNode = storage(
    kinds.csiNode,
    { name: 'node' },
    { spec: { drivers: [{ name: 'csi.example.com', nodeID: 'node', allocatable: { count: 10 } }] } },
  )
  const claimed = (name: string) =>
    storage(
      kinds.persistentVolumeClaim,
      { name, namespace: 'default' },
      { spec: { storageClassName: 'fast', accessModes: ['ReadWriteOnce'] }, status: { phase: 'Pending' } },
    )
  const mounting = (claimName: string): Partial<PodSpec> => ({
    containers: [{ name: 'app' }],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
  })
  const names = Array.from({ length: 11 }, (_, i) => `claim-${i}`)

  test('STA-26 a node with its ten volumes takes no other, but pods that share one of these', async () => {
    const holders = names.slice(0, 10).map((name) => aPod(`holder-${name}`, 'node', mounting(name)))
    const cluster = aCluster(storageClass, csiNode, ...names.map(claimed), ...holders.slice(0, 9))
    cluster.see(aWaitingPod('eleventh', mounting('claim-10')))
    assert.deepEqual(await places(cluster), { eleventh: 'node' })
    cluster.see(...holders)
    assert.deepEqual(await places(cluster), { eleventh: 'new' })
    cluster.see(aWaitingPod('sharing', mounting('claim-3')))
    assert.deepEqual(await places(cluster), { eleventh: 'new', sharing: 'node' })
  })

  const attached = (name: string): readonly KubeObject[] => [
    storage(
      kinds.persistentVolume,
      { name: `pv-${name}` },
      {
        spec: {
          csi: { driver: 'csi.example.com', volumeHandle: name },
          claimRef: { namespace: 'default', name },
        },
      },
    ),
    storage(
      kinds.volumeAttachment,
      { name: `csi-${name}` },
      {
        spec: {
          attacher: 'csi.example.com',
          nodeName: 'node',
          source: { persistentVolumeName: `pv-${name}` },
        },
      },
    ),
  ]
  const limitedTo = (count: number) =>
    storage(
      kinds.csiNode,
      { name: 'node' },
      { spec: { drivers: [{ name: 'csi.example.com', nodeID: 'node', allocatable: { count } }] } },
    )

  test('VER-32 after three attachments of no pod, a limit of four leaves room for one volume', async () => {
    const volumes = ['a', 'b', 'c'].flatMap(attached)
    const cluster = aCluster(storageClass, limitedTo(4), ...volumes, ...names.slice(0, 2).map(claimed))
    cluster.see(aWaitingPod('first', mounting('claim-0')))
    assert.deepEqual(await places(cluster), { first: 'node' })
    cluster.see(aPod('first', 'node', mounting('claim-0')), aWaitingPod('second', mounting('claim-1')))
    assert.deepEqual(await places(cluster), { second: 'new' })
    cluster.see(limitedTo(2), aWaitingPod('plain'))
    assert.deepEqual(await places(cluster), { second: 'new', plain: 'node' })
  })

  test('VER-31 a limit that changes on a live node holds from the next decision on', async () => {
    const cluster = aCluster(storageClass, limitedTo(2), ...names.slice(0, 3).map(claimed))
    cluster.see(...names.slice(0, 2).map((name) => aPod(`holder-${name}`, 'node', mounting(name))))
    cluster.see(aWaitingPod('third', mounting('claim-2')))
    assert.deepEqual(await places(cluster), { third: 'new' })
    cluster.see(limitedTo(5))
    assert.deepEqual(await places(cluster), { third: 'node' })
  })

  test('STA-28 a node stays known when the claim of a pod on it is missing', async () => {
    const cluster = aCluster(storageClass, csiNode, aPod('holder', 'node', mounting('gone')))
    cluster.see(aWaitingPod('new'), claimed('claim-0'), aWaitingPod('mounting', mounting('claim-0')))
    assert.deepEqual(await places(cluster), { new: 'node', mounting: 'node' })
  })
})

describe('pods that keep others away', () => {
  const web = { labels: { app: 'web' } }
  const term = (topologyKey: string): PodAffinityTerm => ({
    labelSelector: { matchLabels: { app: 'web' } },
    topologyKey,
  })
  const required = (topologyKey: string): Partial<PodSpec> => ({
    affinity: {
      podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term(topologyKey)] },
    },
  })
  const preferred: Partial<PodSpec> = {
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 100, podAffinityTerm: term(labels.hostname) },
        ],
      },
    },
  }

  test('STA-29 those that require it do so from their node, those that wish for it do not', async () => {
    const waiting = aWaitingPod('web', {}, web)
    assert.deepEqual(await places(aCluster(waiting, aPod('lonely', 'node', required(labels.hostname)))), {
      web: 'new',
    })
    assert.deepEqual(await places(aCluster(waiting, aPod('lonely', 'node', required(labels.zone)))), {
      web: 'nowhere',
    })
    assert.deepEqual(await places(aCluster(waiting, aPod('shy', 'node', preferred))), { web: 'node' })
    // Of a pod that has no node yet nothing is known that could keep others away.
    assert.deepEqual(await places(aCluster(waiting, aPod('later', undefined, required(labels.hostname)))), {
      web: 'node',
    })
  })

  test('STA-30 those whose node is gone keep nobody away', async () => {
    const other = aNode('other', { providerID: 'p://2', labels: zone })
    const cluster = aCluster(
      other,
      aWaitingPod('web', {}, web),
      aPod('lonely', 'other', required(labels.zone)),
    )
    assert.deepEqual(await places(cluster), { web: 'nowhere' })
    cluster.miss(other)
    assert.deepEqual(await places(cluster), { web: 'node' })
  })
})

describe('pods of DaemonSets', () => {
  const sized = (cpu: string): PodSpec => ({
    containers: [{ name: 'app', resources: { requests: { cpu } } }],
  })
  const daemonSet: DaemonSet = {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'agent', namespace: 'default', uid: 'agent' },
    spec: { selector: {}, template: { spec: sized('500m') } },
  }
  const owner: OwnerReference = {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    name: 'agent',
    uid: 'agent',
    controller: true,
  }
  const daemonPod = (name: string, cpu: string, minute: number, ref: OwnerReference = owner): Pod =>
    aPod(name, 'node', sized(cpu), {
      ownerReferences: [ref],
      creationTimestamp: `2026-01-01T00:0${minute}:00Z`,
    })
  /** What one of them is expected to ask on a new node. */
  const expected = async (cluster: ObservedCluster) =>
    (await gathered(cluster)).daemons.map(({ spec }) => spec.containers[0]?.resources?.requests?.['cpu'])

  test('STA-31 the newest pod of a DaemonSet tells what the next will ask; without one its template does', async () => {
    const cluster = aCluster(daemonSet, aWaitingPod('waiting'))
    assert.deepEqual(await expected(cluster), ['500m'])
    cluster.see(daemonPod('b', '200m', 2), daemonPod('c', '300m', 3), daemonPod('a', '100m', 1))
    assert.deepEqual(await expected(cluster), ['300m'])
    const { controller: _, ...loose } = owner
    cluster.see(daemonPod('d', '400m', 4, loose))
    assert.deepEqual(await expected(cluster), ['300m'])
    cluster.miss(daemonPod('c', '300m', 3))
    assert.deepEqual(await expected(cluster), ['200m'])
  })

  test('STA-32 a thousand pods of others tell nothing about a DaemonSet', async () => {
    const cluster = aCluster(daemonSet, aWaitingPod('waiting'))
    for (let i = 0; i < 1000; i++) {
      const ref = { ...owner, name: `agent-${i}`, uid: `agent-${i}` }
      cluster.see(i % 2 === 0 ? aPod(`foreign-${i}`, 'node', sized('1')) : daemonPod(`f-${i}`, '1', 5, ref))
    }
    assert.deepEqual(await expected(cluster), ['500m'])
  })
})

test('VER-52 a pod that moves loses the zone and region that its binding gave it as labels', async () => {
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  const old = aNode('old', {
    providerID: 'p://2',
    pool: 'default',
    metadata: { name: 'old', deletionTimestamp },
  })
  const copied = { [labels.zone]: 'zone-1', [labels.region]: 'region-1' }
  const moving = aPod('moving', 'old')
  const plain = aPod('plain', 'old')
  const cluster = aCluster(
    old,
    { ...moving, metadata: { ...moving.metadata, labels: { app: 'web', ...copied } } },
    { ...plain, metadata: { ...plain.metadata, labels: { app: 'web' } } },
  )
  const { pods } = await gathered(cluster)
  assert.deepEqual(
    pods.map(({ metadata }) => [metadata.name, metadata.labels]),
    [
      ['moving', { app: 'web' }],
      ['plain', { app: 'web' }],
    ],
  )
})
