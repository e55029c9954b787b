/** Nodes whose CSI drivers or storage come after them, or never (scheduling.md 8.1, 8.3). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type CsiDriver, type CsiStorageCapacity, kinds, labels, type StorageClass } from '@tenon/api'
import { openKwok } from '../testing/kwok-stage.test-support.ts'
import { minutes, type Stage } from '../testing/stage.test-support.ts'
import type { WorldOptions } from '../world.ts'

const driver = 'csi.example.com'

/** A cluster with this CSIDriver, whose kubelets register no driver by default, and a pod with a volume of it. */
async function open(
  t: TestContext,
  spec: CsiDriver['spec'],
  kubelets: NonNullable<WorldOptions['cluster']>['kubelets'] = { csiDrivers: [] },
): Promise<Stage> {
  const stage = await openKwok(t, { cluster: { kubelets } })
  stage.world.create(kinds.csiDriver, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: driver },
    spec,
  } satisfies CsiDriver)
  stage.world.create(kinds.storageClass, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'fast' },
    provisioner: driver,
    volumeBindingMode: 'WaitForFirstConsumer',
  } satisfies StorageClass)
  createPod(stage, 'web', '1')
  return stage
}

/** A pod with a claim of its own. */
function createPod(stage: Stage, name: string, cpu: string): void {
  stage.world.cluster.server.local.create(kinds.persistentVolumeClaim, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'fast',
      resources: { requests: { storage: '1Gi' } },
    },
  })
  stage.world.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      containers: [{ name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu } } }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }],
    },
  })
}

const isRunning = (stage: Stage): boolean => stage.podNow('web')?.status?.phase === 'Running'

test('VER-28 VER-29 a pod waits on its new node for the driver and gets no second one', async (t) => {
  const stage = await open(t, { preventPodSchedulingIfMissing: true })
  await stage.pass(2.5 * minutes)
  const [node, ...others] = stage.world.nodes()
  assert.ok(node !== undefined)
  assert.deepEqual([others, isRunning(stage), stage.world.claims().length], [[], false, 1])
  stage.patch(kinds.csiNode, node.metadata.name, {
    spec: { drivers: [{ name: driver, nodeID: node.metadata.name }] },
  })
  await stage.pass(minutes)
  assert.deepEqual([isRunning(stage), stage.world.claims().length], [true, 1])
})

test('VER-27 a driver that never comes costs one node, and pods are told', async (t) => {
  const stage = await open(t, { preventPodSchedulingIfMissing: true })
  const told = (pod: string) =>
    stage
      .events('FailedScheduling')
      .filter(({ object, message }) => object === `Pod/${pod}` && message.startsWith('No node'))
      .map(({ message }) => message)
      .join('\n')
  await stage.pass(30 * minutes)
  assert.match(told('web'), /csi\.example\.com CSI driver is not installed on the node/)
  // Of a size that no node has had.
  createPod(stage, 'large', '60')
  await stage.pass(5 * minutes)
  assert.match(told('large'), /nodes do not run CSI driver csi\.example\.com/)
  assert.equal(await stage.metric('nodeclaims_created_total'), 1)
})

test('VER-30 a driver whose CSIDriver does not ask for it is not waited for', async (t) => {
  const stage = await open(t, { preventPodSchedulingIfMissing: false })
  await stage.pass(3 * minutes)
  assert.deepEqual([isRunning(stage), stage.world.claims().length], [true, 1])
})

test('VER-31 a limit that is raised on a live node is used from the next pass on', async (t) => {
  const stage = await open(t, {}, { csiDrivers: [{ name: driver, volumesPerNode: 1 }] })
  await stage.pass(3 * minutes)
  const [node] = stage.world.nodes()
  assert.ok(node !== undefined && isRunning(stage))
  stage.patch(kinds.csiNode, node.metadata.name, {
    spec: { drivers: [{ name: driver, nodeID: node.metadata.name, allocatable: { count: 2 } }] },
  })
  createPod(stage, 'second', '100m')
  await stage.pass(3 * minutes)
  assert.equal(stage.podNow('second')?.spec.nodeName, node.metadata.name)
  assert.equal(stage.world.claims().length, 1)
  createPod(stage, 'third', '100m')
  await stage.pass(3 * minutes)
  assert.equal(stage.world.claims().length, 2)
})

test('VER-35 a type whose nodes never published storage costs one node, and the pod runs once one does', async (t) => {
  const stage = await open(t, { storageCapacity: true }, { csiDrivers: [{ name: driver }] })
  await stage.pass(40 * minutes)
  assert.deepEqual([isRunning(stage), await stage.metric('nodeclaims_created_total')], [false, 1])
  const hostname = stage.world.nodes()[0]?.metadata.labels?.[labels.hostname]
  assert.ok(hostname !== undefined)
  stage.world.create(kinds.csiStorageCapacity, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIStorageCapacity',
    metadata: { name: 'published', namespace: 'default' },
    storageClassName: 'fast',
    nodeTopology: { matchLabels: { [labels.hostname]: hostname } },
    capacity: '100Gi',
  } satisfies CsiStorageCapacity)
  await stage.pass(2 * minutes)
  assert.deepEqual([isRunning(stage), await stage.metric('nodeclaims_created_total')], [true, 1])
})
