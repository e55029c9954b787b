import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type CsiDriver, type CsiNode, kinds, labels, type Node, type NodeClaim } from '@tenon/api'
import { VirtualClock } from '@tenon/runtime'
import { ToldCache } from '../observed-cluster.test-support.ts'
import { joined } from './state-node.ts'
import { VolumeDrivers } from './volume-drivers.ts'

const driver = 'csi.example.com'
const minute = 60_000

function opened() {
  const clock = new VirtualClock(0)
  const nodes = new ToldCache<Node>(kinds.node)
  const csiNodes = new ToldCache<CsiNode>(kinds.csiNode)
  const csiDrivers = new ToldCache<CsiDriver>(kinds.csiDriver)
  const drivers = new VolumeDrivers({ nodes, csiNodes, csiDrivers }, clock)
  drivers.follow()
  return {
    clock,
    nodes,
    csiDrivers,
    require(preventPodSchedulingIfMissing?: boolean) {
      csiDrivers.put({
        apiVersion: 'storage.k8s.io/v1',
        kind: 'CSIDriver',
        metadata: { name: driver },
        spec: { ...(preventPodSchedulingIfMissing !== undefined && { preventPodSchedulingIfMissing }) },
      })
    },
    join(name: string, instanceType: string, isInitialized = true): Node {
      const node: Node = {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: {
          name,
          labels: {
            [labels.nodePool]: 'default',
            [labels.instanceType]: instanceType,
            [labels.registered]: 'true',
            ...(isInitialized && { [labels.initialized]: 'true' }),
          },
        },
      }
      nodes.put(node)
      return node
    },
    register(name: string, ...names: readonly string[]) {
      csiNodes.put({
        apiVersion: 'storage.k8s.io/v1',
        kind: 'CSINode',
        metadata: { name },
        spec: { drivers: names.map((each) => ({ name: each, nodeID: name })) },
      })
    },
    missingOn: (node: Node) => drivers.missingOn(joined(node, claim, '', false)),
    typesWithout: (...types: readonly string[]) =>
      Object.keys(
        drivers.missingIn(
          'default',
          types.map((name) => ({ name })),
        ) ?? {},
      ),
  }
}

const claim: NodeClaim = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name: 'claim' },
  spec: { nodeClassRef: { group: '', kind: '', name: '' }, requirements: [] },
}

describe('CSI drivers that nodes lack', () => {
  test('VER-30 a driver without CSIDriver, or whose CSIDriver does not ask for it, is not required', async () => {
    const cluster = opened()
    const node = cluster.join('a', 'small')
    for (const opt of [undefined, false]) {
      cluster.require(opt)
      await cluster.clock.advance(10 * minute)
      assert.deepEqual(cluster.missingOn(node), [])
    }
    cluster.require(true)
    await cluster.clock.advance(10 * minute)
    assert.deepEqual(cluster.missingOn(node), [driver])
    cluster.csiDrivers.remove({ name: driver })
    assert.deepEqual(cluster.missingOn(node), [])
  })

  test('VER-27 VER-28 an initialized node lacks it after three minutes, until its CSINode has it', async () => {
    const cluster = opened()
    cluster.require(true)
    const node = cluster.join('a', 'small')
    cluster.register('a', 'csi.other.example')
    await cluster.clock.advance(2 * minute)
    assert.deepEqual(cluster.missingOn(node), [], 'its plugin may still start')
    await cluster.clock.advance(minute)
    assert.deepEqual(cluster.missingOn(node), [driver])
    cluster.register('a', driver)
    assert.deepEqual(cluster.missingOn(node), [])
    cluster.register('a')
    await cluster.clock.advance(2 * minute)
    assert.deepEqual(cluster.missingOn(node), [], 'its plugin may be restarting')
  })

  test('VER-29 a starting node without CSINode lacks nothing that nodes like it have', async () => {
    const cluster = opened()
    cluster.require(true)
    const starting = cluster.join('starting', 'small', false)
    await cluster.clock.advance(10 * minute)
    assert.deepEqual(cluster.missingOn(starting), [])
    cluster.join('a', 'small')
    await cluster.clock.advance(3 * minute)
    assert.deepEqual(cluster.missingOn(starting), [driver])
  })

  test('VER-27 new nodes lack what nodes of the type lack, and of an unknown type what all nodes of the pool lack', async () => {
    const cluster = opened()
    cluster.require(true)
    assert.deepEqual(cluster.typesWithout('small', 'large', 'other'), [])
    cluster.join('a', 'small')
    await cluster.clock.advance(3 * minute)
    assert.deepEqual(cluster.typesWithout('small', 'large', 'other'), ['small', 'large', 'other'])
    cluster.join('b', 'large')
    cluster.register('b', driver)
    assert.deepEqual(cluster.typesWithout('small', 'large', 'other'), ['small'])
  })

  test('a node that lacked it is remembered for an hour', async () => {
    const cluster = opened()
    cluster.require(true)
    cluster.join('a', 'small')
    await cluster.clock.advance(3 * minute)
    cluster.nodes.remove({ name: 'a' })
    await cluster.clock.advance(59 * minute)
    assert.deepEqual(cluster.typesWithout('small'), ['small'])
    await cluster.clock.advance(minute)
    assert.deepEqual(cluster.typesWithout('small'), [])
  })
})
