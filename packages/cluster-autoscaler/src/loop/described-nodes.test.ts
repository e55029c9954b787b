/** Groups that grow from zero for pods that need devices or CSI volumes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CsiNode, DeviceClass, Pod, ResourceClaim, ResourceSlice } from '@tenon/api'
import { FakeCluster } from '../testing/fake-cluster.test-support.ts'
import { aGroup } from '../testing/fake-groups.test-support.ts'
import { aNode, aPod, startMs } from '../testing/objects.test-support.ts'

const driver = 'gpu.example.com'

const deviceClass: DeviceClass = {
  apiVersion: 'resource.k8s.io/v1',
  kind: 'DeviceClass',
  metadata: { name: 'gpu' },
  spec: { selectors: [{ cel: { expression: `device.driver == '${driver}'` } }] },
}

const slice: ResourceSlice = {
  apiVersion: 'resource.k8s.io/v1',
  kind: 'ResourceSlice',
  metadata: { name: 'first' },
  spec: {
    driver,
    nodeName: 'first',
    pool: { name: 'first', generation: 1, resourceSliceCount: 1 },
    devices: ['gpu-0', 'gpu-1'].map((name) => ({ name, attributes: { type: { string: 'gpu' } } })),
  },
}

function claimOf(pod: string): ResourceClaim {
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name: `claim-${pod}`, namespace: 'default', uid: `uid-claim-${pod}` },
    spec: { devices: { requests: [{ name: 'one', exactly: { deviceClassName: 'gpu' } }] } },
  }
}

function claimant(name: string): Pod {
  return aPod(name, {
    owner: 'claimants',
    spec: { resourceClaims: [{ name: 'gpu', resourceClaimName: `claim-${name}` }] },
  })
}

function empty(pods: readonly Pod[]): FakeCluster {
  return new FakeCluster({
    groups: [aGroup('g', { minSize: 0, targetSize: 0 })],
    nodes: {},
    pods,
  })
}

test('CAG-51 pods with claims scale from zero, two to a node with two devices', async () => {
  for (const [names, size] of [
    [['a'], 1],
    [['a', 'b'], 1],
    [['a', 'b', 'c'], 2],
  ] as const) {
    const cluster = empty(names.map(claimant))
    cluster.devices = { slices: [], claims: names.map(claimOf), classes: [deviceClass] }
    cluster.cloud.examples.set('g', { node: aNode('first'), resourceSlices: [slice] })
    await cluster.loop()
    assert.equal(cluster.size('g'), size, names.join())
    // The nodes on their way have room for them.
    await cluster.loopFor(60_000)
    assert.equal(cluster.size('g'), size, names.join())
  }
})

test('CAG-51 a group whose nodes have no devices does not grow for a claim', async () => {
  const cluster = empty([claimant('a')])
  cluster.devices = { slices: [], claims: [claimOf('a')], classes: [deviceClass] }
  cluster.cloud.examples.set('g', { node: aNode('first') })
  await cluster.loop()
  assert.equal(cluster.size('g'), 0)
})

test('a group with a node of one free device grows for the second claim by what that node has', async () => {
  const cluster = new FakeCluster({
    groups: [aGroup('g', { minSize: 0 })],
    nodes: { g: [aNode('first')] },
    pods: ['a', 'b', 'c'].map(claimant),
  })
  cluster.devices = { slices: [slice], claims: ['a', 'b', 'c'].map(claimOf), classes: [deviceClass] }
  await cluster.loop()
  assert.equal(cluster.size('g'), 2)
})

test('CAG-50 the limit of a CSI driver on a described node counts; without a limit there is none', async () => {
  for (const [limit, size] of [
    [1, 3],
    [25, 1],
    [undefined, 1],
  ] as const) {
    const names = ['a', 'b', 'c']
    const cluster = empty(
      names.map((name) =>
        aPod(name, {
          owner: 'volumes',
          spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }] },
        }),
      ),
    )
    cluster.volumes.setClass({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'fast' },
      provisioner: 'csi.example.com',
      volumeBindingMode: 'WaitForFirstConsumer',
    })
    for (const name of names)
      cluster.volumes.setClaim({
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name, namespace: 'default' },
        spec: { storageClassName: 'fast', accessModes: ['ReadWriteOnce'] },
      })
    const csiNode: CsiNode = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSINode',
      metadata: { name: 'first' },
      spec: {
        drivers: [
          { name: 'csi.example.com', nodeID: 'first', ...(limit && { allocatable: { count: limit } }) },
        ],
      },
    }
    cluster.cloud.examples.set('g', { node: aNode('first'), csiNode })
    await cluster.loop()
    assert.equal(cluster.size('g'), size, `limit ${limit}`)
  }
})

test('VER-27 a group whose node lacks a CSI driver that pods need does not grow, unless the node has just started', async () => {
  const withVolumes = (pod: Pod): Pod => ({
    ...pod,
    spec: { ...pod.spec, volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'a' } }] },
  })
  const sizeWith = async (drivers: CsiNode['spec']['drivers'], cpu: string, node = aNode('first')) => {
    const cluster = new FakeCluster({
      groups: [aGroup('g', { minSize: 0 })],
      nodes: { g: [node] },
      pods: [
        withVolumes(aPod('a', { cpu, owner: 'volumes' })),
        aPod('holder', { nodeName: 'first', cpu: '3' }),
      ],
    })
    const { volumes } = cluster
    volumes.setCsiDriver({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name: 'csi.example.com' },
      spec: { preventPodSchedulingIfMissing: true },
    })
    volumes.setClass({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'fast' },
      provisioner: 'csi.example.com',
      volumeBindingMode: 'WaitForFirstConsumer',
    })
    volumes.setClaim({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'a', namespace: 'default' },
      spec: { storageClassName: 'fast', accessModes: ['ReadWriteOnce'] },
    })
    volumes.setCsiNode({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSINode',
      metadata: { name: 'first' },
      spec: { drivers },
    })
    await cluster.loop()
    return cluster.size('g')
  }
  assert.equal(await sizeWith([], '1'), 1)
  assert.equal(await sizeWith([{ name: 'csi.example.com', nodeID: 'first' }], '2'), 2)
  const first = aNode('first')
  const readySince = new Date(startMs - 30_000).toISOString()
  const starting = {
    ...first,
    status: {
      ...first.status,
      conditions: [{ type: 'Ready', status: 'True' as const, lastTransitionTime: readySince }],
    },
  }
  assert.equal(await sizeWith([], '1', starting), 1)
  assert.equal(await sizeWith([], '2', starting), 2)
})
