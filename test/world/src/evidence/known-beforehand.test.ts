/** What is known of pods and nodes before a launch keeps nodes from being bought in vain (reports.md 1). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  karpenterKinds,
  kinds,
  type KubeObject,
  type PersistentVolume,
  type Pod,
  type StorageClass,
} from '@tenon/api'
import { is, openKwok, type PodParts } from '../testing/kwok-stage.test-support.ts'
import { minutes, type Stage } from '../testing/stage.test-support.ts'
import type { WorldOptions } from '../world.ts'

const driver = 'csi.example.com'

/** A cluster whose own scheduler and kubelets are at work, and whose nodes stay. */
async function open(t: TestContext, cluster: WorldOptions['cluster'] = {}): Promise<Stage> {
  return await openKwok(t, { cluster })
}

function createPod(
  stage: Stage,
  name: string,
  { requests, labels, annotations, ...spec }: PodParts & Partial<Pod['spec']>,
): void {
  const app = {
    name: 'app',
    image: 'registry.k8s.io/pause',
    resources: { requests: requests ?? { cpu: '1' } },
  }
  stage.world.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', ...(labels && { labels }), ...(annotations && { annotations }) },
    spec: { containers: [app], ...spec },
  })
}

function createClass(stage: Stage, name: string, provisioner: string): void {
  stage.world.create(kinds.storageClass, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner,
    volumeBindingMode: 'WaitForFirstConsumer',
  } satisfies StorageClass)
}

function createClaim(
  stage: Stage,
  name: string,
  storageClassName: string,
  accessMode = 'ReadWriteOnce',
): void {
  stage.world.cluster.server.local.create(kinds.persistentVolumeClaim, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default' },
    spec: { accessModes: [accessMode], storageClassName, resources: { requests: { storage: '1Gi' } } },
  })
}

const mounting = (...claims: readonly string[]): Partial<Pod['spec']> => ({
  volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
})

const told = (stage: Stage, pod: string): string =>
  stage
    .events('FailedScheduling')
    .filter(({ object, message }) => object === `Pod/${pod}` && /No node|skipped until/.test(message))
    .map(({ message }) => message)
    .join('\n')

const isRunning = (stage: Stage, pod: string): boolean => stage.podNow(pod)?.status?.phase === 'Running'
const running = (stage: Stage, ...pods: readonly string[]) => pods.filter((pod) => isRunning(stage, pod))

const csiDrivers = [{ name: driver, volumesPerNode: 3 }]

test('RPT-3 a pod with more volumes than a node attaches: one launch while nothing is known, none from then on', async (t) => {
  const stage = await open(t, { kubelets: { csiDrivers } })
  createClass(stage, 'fast', driver)
  const names = ['a', 'b', 'c', 'd']
  for (const name of names) createClaim(stage, name, 'fast')
  createPod(stage, 'many', mounting(...names))
  await stage.pass(30 * minutes)
  assert.equal(stage.world.claims().length, 1)
  assert.match(told(stage, 'many'), /4 volumes of CSI driver csi\.example\.com, and nodes attach at most 3/)
  createPod(stage, 'few', mounting('a', 'b', 'c'))
  await stage.pass(2 * minutes)
  assert.deepEqual(running(stage, 'many', 'few'), ['few'])
  assert.equal(stage.world.claims().length, 1)
})

test('RPT-3 the limit is known for as long as no node of the type is left, and is learned anew after a restart', async (t) => {
  const stage = await openKwok(t, {
    cluster: { kubelets: { csiDrivers } },
    pool: { disruption: { consolidateAfter: '1m' } },
  })
  createClass(stage, 'fast', driver)
  for (const name of ['a', 'b', 'c', 'd']) createClaim(stage, name, 'fast')
  createPod(stage, 'many', mounting('a', 'b', 'c', 'd'))
  await stage.pass(60 * minutes)
  assert.deepEqual(stage.world.nodes(), [])
  assert.equal(await stage.metric('nodeclaims_created_total'), 1)
  createPod(stage, 'few', mounting('a'))
  await stage.pass(2 * minutes)
  await stage.restart()
  await stage.pass(30 * minutes)
  assert.deepEqual(running(stage, 'few'), ['few'])
  assert.equal(stage.world.nodes().length, 1)
})

test('RPT-3 a pod that its node cannot attach the volumes of gets a node of the type that can', async (t) => {
  const types = is('node.kubernetes.io/instance-type', 'c-128x-amd64-linux', 'c-256x-amd64-linux')
  const stage = await openKwok(t, { cluster: { kubelets: { csiDrivers } } })
  stage.patch(karpenterKinds.nodePool, 'default', {
    spec: { template: { spec: { requirements: [types] } } },
  })
  const { clock, cluster } = stage.world
  const { local } = cluster.server
  local.subscribe(kinds.csiNode, {
    added: ({ metadata: { name } }) => {
      const type = local.get(kinds.node, undefined, name)?.metadata.labels?.[
        'node.kubernetes.io/instance-type'
      ]
      const drivers = [{ name: driver, nodeID: name, allocatable: { count: 8 } }]
      if (type === 'c-256x-amd64-linux')
        clock.after(0, () => local.patch(kinds.csiNode, undefined, name, { spec: { drivers } }))
    },
  })
  createClass(stage, 'fast', driver)
  const names = ['a', 'b', 'c', 'd']
  for (const name of names) createClaim(stage, name, 'fast')
  createPod(stage, 'first', { requests: { cpu: '200' } })
  await stage.pass(2 * minutes)
  createPod(stage, 'many', { ...mounting(...names), requests: { cpu: '100' } })
  await stage.pass(10 * minutes)
  assert.deepEqual(running(stage, 'first', 'many'), ['first', 'many'])
  assert.equal(await stage.metric('nodeclaims_created_total'), 3)
})

test('RPT-5 pods whose sidecars ask for the same host port get a node each', async (t) => {
  const stage = await open(t)
  const ports = [{ containerPort: 15021, hostPort: 15021 }]
  const mesh = { name: 'mesh', image: 'registry.k8s.io/pause', restartPolicy: 'Always', ports }
  for (const name of ['one', 'two']) createPod(stage, name, { initContainers: [mesh] })
  await stage.pass(5 * minutes)
  assert.deepEqual(running(stage, 'one', 'two'), ['one', 'two'])
  assert.equal(stage.world.nodes().length, 2)
})

test('RPT-6 a port of a hostNetwork DaemonSet is taken on every node, and its pod and template look as on Kubernetes', async (t) => {
  const stage = await open(t)
  const app = { app: 'exporter' }
  const container = { name: 'exporter', image: 'registry.k8s.io/pause', ports: [{ containerPort: 9100 }] }
  stage.world.cluster.server.local.create(kinds.namespace, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'monitoring' },
  } satisfies KubeObject)
  stage.world.create(kinds.daemonSet, {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'exporter', namespace: 'monitoring' },
    spec: {
      selector: { matchLabels: app },
      template: { metadata: { labels: app }, spec: { hostNetwork: true, containers: [container] } },
    },
  })
  const ports = [{ containerPort: 80, hostPort: 9100 }]
  const taken = { containers: [{ name: 'app', image: 'registry.k8s.io/pause', ports }] }
  createPod(stage, 'clashing', taken)
  await stage.pass(10 * minutes)
  assert.deepEqual(stage.world.claims(), [])
  assert.match(told(stage, 'clashing'), /TCP 9100 by DaemonSet monitoring\/exporter/)
  createPod(stage, 'other', {})
  await stage.pass(10 * minutes)
  assert.deepEqual(running(stage, 'clashing', 'other'), ['other'])
  assert.equal(stage.world.claims().length, 1)
  const local = stage.world.cluster.server.local
  const template = local.get(kinds.daemonSet, 'monitoring', 'exporter')?.spec.template.spec
  const daemon = local.list(kinds.pod).find(({ metadata }) => metadata.namespace === 'monitoring')
  const portOf = (spec: Pod['spec'] | undefined) => spec?.containers[0]?.ports?.[0]
  assert.deepEqual(portOf(template), { containerPort: 9100, protocol: 'TCP' })
  assert.deepEqual(portOf(daemon?.spec), { containerPort: 9100, hostPort: 9100, protocol: 'TCP' })
})

test('RPT-7 of two pods with one ReadWriteOncePod claim one gets a node, the other is told and follows it', async (t) => {
  const stage = await open(t)
  createClass(stage, 'fast', driver)
  createClaim(stage, 'data', 'fast', 'ReadWriteOncePod')
  for (const name of ['one', 'two']) createPod(stage, name, mounting('data'))
  await stage.pass(20 * minutes)
  const [first = ''] = running(stage, 'one', 'two')
  const second = first === 'one' ? 'two' : 'one'
  assert.deepEqual(running(stage, 'one', 'two'), [first])
  assert.equal(stage.world.claims().length, 1)
  assert.match(told(stage, second), /default\/data has access mode ReadWriteOncePod/)
  stage.world.cluster.server.local.delete(kinds.pod, 'default', first)
  await stage.pass(5 * minutes)
  assert.deepEqual(running(stage, second), [second])
})

test('RPT-8 a claim that nobody provisions for waits for a volume, then its pod gets one node', async (t) => {
  const stage = await open(t)
  createClass(stage, 'manual', 'kubernetes.io/no-provisioner')
  createClaim(stage, 'data', 'manual')
  createPod(stage, 'db', mounting('data'))
  await stage.pass(20 * minutes)
  assert.deepEqual(stage.world.claims(), [])
  assert.match(told(stage, 'db'), /StorageClass manual provisions no volumes/)
  const volume: PersistentVolume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'disk' },
    spec: {
      storageClassName: 'manual',
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '2Gi' },
      csi: { driver, volumeHandle: 'disk' },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            {
              matchExpressions: [
                { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['test-zone-b'] },
              ],
            },
          ],
        },
      },
    },
  }
  stage.world.create(kinds.persistentVolume, volume)
  await stage.pass(5 * minutes)
  assert.deepEqual(running(stage, 'db'), ['db'])
  assert.equal(stage.world.claims().length, 1)
  assert.equal(stage.world.nodes()[0]?.metadata.labels?.['topology.kubernetes.io/zone'], 'test-zone-b')
})

test('RPT-9 nothing is bought or kept for pods that are deleted, have ended or are held by gates', async (t) => {
  const stage = await openKwok(t, { pool: { disruption: { consolidateAfter: '1m' } } })
  const local = stage.world.cluster.server.local
  const unplaceable = { nodeSelector: { 'example.com/not': 'there' } }
  for (const name of ['deleted', 'failed', 'gated'])
    createPod(stage, name, name === 'gated' ? { schedulingGates: [{ name: 'quota' }] } : unplaceable)
  await stage.pass(5000)
  stage.patch(kinds.pod, 'deleted', { metadata: { finalizers: ['example.com/wait'] } }, undefined, 'default')
  local.delete(kinds.pod, 'default', 'deleted')
  stage.patch(kinds.pod, 'failed', { status: { phase: 'Failed' } }, 'status', 'default')
  await stage.pass(1000)
  stage.patch(
    kinds.pod,
    'gated',
    { status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] } },
    'status',
    'default',
  )
  const template = { metadata: { labels: { 'example.com/not': 'there' } } }
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { template } })
  await stage.pass(10 * minutes)
  assert.notEqual(stage.podNow('deleted')?.metadata.deletionTimestamp, undefined)
  assert.deepEqual(stage.world.claims(), [])
})
