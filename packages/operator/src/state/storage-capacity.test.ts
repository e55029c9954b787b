import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type CsiDriver,
  type CsiNode,
  type CsiStorageCapacity,
  kinds,
  labels,
  type Node,
  type PersistentVolume,
  type StorageClass,
} from '@tenon/api'
import { VirtualClock } from '@tenon/runtime'
import { indexes } from './caches.ts'
import { ToldCache } from './observed-cluster.test-support.ts'
import { StorageCapacity } from './storage-capacity.ts'

const driver = 'csi.example.com'
const nodeKey = 'example.com/node'
const gi = 2 ** 30
const minute = 60_000

const fast: StorageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'fast' },
  provisioner: driver,
}

function opened(storageCapacity = true) {
  const clock = new VirtualClock(0)
  const nodes = new ToldCache<Node>(kinds.node)
  const persistentVolumes = new ToldCache<PersistentVolume>(kinds.persistentVolume)
  const csiDrivers = new ToldCache<CsiDriver>(kinds.csiDriver)
  const csiNodes = new ToldCache<CsiNode>(kinds.csiNode)
  const csiStorageCapacities = new ToldCache<CsiStorageCapacity>(kinds.csiStorageCapacity)
  csiStorageCapacities.addIndex(indexes.byStorageClass, ({ storageClassName }) => [storageClassName])
  csiDrivers.put({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: driver },
    spec: { storageCapacity },
  })
  const caches = { nodes, persistentVolumes, csiDrivers, csiNodes, csiStorageCapacities }
  const capacity = new StorageCapacity(caches, clock)
  return {
    clock,
    nodes,
    publish(name: string, key: string, value: string, size: string) {
      csiStorageCapacities.put({
        apiVersion: 'storage.k8s.io/v1',
        kind: 'CSIStorageCapacity',
        metadata: { name, namespace: 'driver' },
        storageClassName: 'fast',
        nodeTopology: { matchLabels: { [key]: value } },
        capacity: size,
      })
    },
    join(name: string, instanceType: string) {
      const creationTimestamp = new Date(clock.now()).toISOString()
      const own = { [nodeKey]: name, [labels.instanceType]: instanceType }
      nodes.put({ apiVersion: 'v1', kind: 'Node', metadata: { name, creationTimestamp, labels: own } })
    },
    register(name: string) {
      csiNodes.put({
        apiVersion: 'storage.k8s.io/v1',
        kind: 'CSINode',
        metadata: { name },
        spec: { drivers: [{ name: driver, nodeID: name }] },
      })
    },
    provision(name: string, host: string, storage: string) {
      const expression = { key: nodeKey, operator: 'In' as const, values: [host] }
      persistentVolumes.put({
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name },
        spec: {
          csi: { driver },
          capacity: { storage },
          nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [expression] }] } },
        },
      })
    },
    read: () => capacity.of(fast, (key) => key === labels.zone),
  }
}

test('VER-33 storage of zones is shared by their nodes, and new nodes bring none', () => {
  const cluster = opened()
  cluster.publish('a', labels.zone, 'zone-1', '10Gi')
  cluster.publish('b', labels.zone, 'zone-2', '50Gi')
  const inZone = (zone: string) => [{ key: labels.zone, operator: 'In', values: [zone] }]
  assert.deepEqual(cluster.read(), {
    shared: [
      { term: inZone('zone-1'), bytes: 10 * gi },
      { term: inZone('zone-2'), bytes: 50 * gi },
    ],
    local: undefined,
  })
})

test('the capacity of a driver that does not publish it is not known', () => {
  assert.equal(opened(false).read(), undefined)
})

test('VER-34 an empty node of a type has what is free and what is provisioned on one of it, for a day', async () => {
  const cluster = opened()
  cluster.join('a', 'small')
  cluster.publish('a', nodeKey, 'a', '0')
  cluster.provision('first', 'a', '60Gi')
  cluster.provision('second', 'a', '40Gi')
  assert.deepEqual(cluster.read()?.local, {
    byHost: new Map([['a', 0]]),
    byType: new Map([['small', 100 * gi]]),
  })
  cluster.nodes.remove({ name: 'a' })
  await cluster.clock.advance(23 * 60 * minute)
  assert.deepEqual(cluster.read()?.local?.byType, new Map([['small', 100 * gi]]))
  await cluster.clock.advance(60 * minute)
  assert.deepEqual(cluster.read()?.local?.byType, new Map())
})

test('VER-35 a node has ten minutes to publish its storage; then it has none', async () => {
  const cluster = opened()
  cluster.join('a', 'small')
  await cluster.clock.advance(9 * minute)
  assert.deepEqual(cluster.read()?.local, { byHost: new Map(), byType: new Map() })
  await cluster.clock.advance(minute)
  assert.deepEqual(cluster.read()?.local, { byHost: new Map([['a', 0]]), byType: new Map() })
})

test('VER-35 a driver that published nothing from a node is not tried on another for an hour', async () => {
  const cluster = opened()
  cluster.join('a', 'small')
  cluster.register('a')
  await cluster.clock.advance(10 * minute)
  assert.deepEqual(cluster.read(), { shared: [], local: undefined })
  cluster.nodes.remove({ name: 'a' })
  await cluster.clock.advance(59 * minute)
  assert.deepEqual(cluster.read(), { shared: [], local: undefined })
  await cluster.clock.advance(minute)
  assert.deepEqual(cluster.read()?.local, { byHost: new Map(), byType: new Map() })
})

test('VER-35 a type whose node published nothing has nothing, if others publish', async () => {
  const cluster = opened()
  cluster.join('a', 'small')
  cluster.join('b', 'large')
  cluster.register('a')
  cluster.register('b')
  cluster.publish('b', nodeKey, 'b', '10Gi')
  await cluster.clock.advance(10 * minute)
  assert.deepEqual(
    cluster.read()?.local?.byType,
    new Map([
      ['large', 10 * gi],
      ['small', 0],
    ]),
  )
})
