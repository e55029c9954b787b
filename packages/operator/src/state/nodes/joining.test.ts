/** Which instances there are, whatever order Nodes and NodeClaims are seen in. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels } from '@tenon/api'
import { poolUsage } from '../nodepools/pool-usage.ts'
import { aClaim, aNode, type SomeClaim } from './nodes.test-support.ts'
import { ObservedCluster } from '../observed-cluster.test-support.ts'

/** `NODE+CLAIM` of each instance, with `-` for what is missing. */
function stateNodes({ state }: ObservedCluster): readonly string[] {
  return state
    .stateNodes()
    .map(({ node, claim }) => `${node?.metadata.name ?? '-'}+${claim?.metadata.name ?? '-'}`)
}

function usage({ state }: ObservedCluster, pool = 'default'): Readonly<Record<string, number>> {
  return poolUsage(pool, state.stateNodes())
}

const node = aNode('node', { providerID: 'p://1', pool: 'default', capacity: { cpu: '3' } })
const claim = aClaim('claim', { providerID: 'p://1', capacity: { cpu: '4' } })

describe('instances', () => {
  test('STA-1 a Node and a claim with one provider ID are one instance, whichever is seen first', () => {
    for (const order of [
      [node, claim],
      [claim, node],
    ]) {
      const cluster = new ObservedCluster()
      for (const object of order) cluster.see(object)
      assert.deepEqual(stateNodes(cluster), ['node+claim'])
      for (const object of order) cluster.see(object)
      assert.deepEqual(stateNodes(cluster), ['node+claim'])
    }
  })

  test('STA-2 a foreign Node without provider ID goes by its name, and stays one when it gets an ID', () => {
    const cluster = new ObservedCluster()
    const ids = () => cluster.state.stateNodes().map(({ providerID }) => providerID)
    cluster.see(aNode('foreign'))
    assert.deepEqual(ids(), ['foreign'])
    cluster.state.mark('foreign')
    cluster.state.nominate('foreign', 60_000)
    cluster.see(aNode('foreign', { providerID: 'p://9' }))
    assert.deepEqual(ids(), ['p://9'])
    assert.equal(cluster.state.stateNodes()[0]?.isMarkedForDeletion, false)
    assert.equal(cluster.state.isNominated('p://9'), false)
  })

  test('STA-3 a Node of a pool that has no provider ID is not there', () => {
    const cluster = new ObservedCluster()
    cluster.see(aNode('node', { pool: 'default' }))
    assert.deepEqual(stateNodes(cluster), [])
    cluster.see(node)
    assert.deepEqual(stateNodes(cluster), ['node+-'])
  })

  test('STA-4 a starting Node of a pool is not there until it says its instance type', () => {
    const starting = (more: Readonly<Record<string, string>> = {}) =>
      aNode('node', { providerID: 'p://1', labels: { [labels.nodePool]: 'default', ...more } })
    const cluster = new ObservedCluster()
    cluster.see(starting())
    assert.deepEqual(stateNodes(cluster), [])
    cluster.see(claim)
    assert.deepEqual(stateNodes(cluster), ['-+claim'])
    cluster.see(starting({ [labels.instanceType]: 'medium' }))
    assert.deepEqual(stateNodes(cluster), ['node+claim'])
    cluster.see(starting({ [labels.initialized]: 'yes' }))
    assert.deepEqual(stateNodes(cluster), ['node+claim'])
  })

  test('STA-5 a Node and a claim of one name go one after the other', () => {
    const cluster = new ObservedCluster()
    const both = [aNode('same', { providerID: 'p://1' }), aClaim('same', { providerID: 'p://1' })] as const
    cluster.see(...both)
    assert.deepEqual(stateNodes(cluster), ['same+same'])
    cluster.miss(both[1])
    assert.deepEqual(stateNodes(cluster), ['same+-'])
    cluster.miss(both[0])
    assert.deepEqual(stateNodes(cluster), [])
  })

  test('STA-6 without its Node an instance has again what its claim promises', () => {
    const cluster = new ObservedCluster()
    cluster.see(node, claim)
    assert.deepEqual(usage(cluster), { cpu: 3000, nodes: 1 })
    cluster.miss(node)
    assert.deepEqual(usage(cluster), { cpu: 4000, nodes: 1 })
  })

  test('STA-7 without its claim an instance has what its Node has', () => {
    const cluster = new ObservedCluster()
    cluster.see(node, claim)
    cluster.miss(claim)
    assert.deepEqual(usage(cluster), { cpu: 3000, nodes: 1 })
  })

  test('STA-8 while a claim has moved on to another instance and its Node has not, both count', () => {
    const cluster = new ObservedCluster()
    cluster.see(node, claim)
    cluster.see(aClaim('claim', { providerID: 'p://2', capacity: { cpu: '4' } }))
    assert.deepEqual(stateNodes(cluster), ['-+claim', 'node+-'])
    assert.deepEqual(usage(cluster), { cpu: 7000, nodes: 2 })
    cluster.see(aNode('node', { providerID: 'p://2', pool: 'default', capacity: { cpu: '3' } }))
    assert.deepEqual(stateNodes(cluster), ['node+claim'])
    assert.deepEqual(usage(cluster), { cpu: 3000, nodes: 1 })
  })
})

describe('instances that go away', () => {
  test('STA-42 the instance of a mark uses nothing of its pool, until the mark is taken back', () => {
    const cluster = new ObservedCluster()
    cluster.see(node, claim)
    cluster.state.mark('p://1')
    assert.deepEqual(usage(cluster), {})
    cluster.state.unmark('p://1')
    assert.deepEqual(usage(cluster), { cpu: 3000, nodes: 1 })
  })

  test('STA-43 mark, deletion and end of an instance take it off once', () => {
    const cluster = new ObservedCluster()
    const other = aNode('other', { providerID: 'p://2', pool: 'default', capacity: { cpu: '1' } })
    const left = { cpu: 1000, nodes: 1 }
    cluster.see(node, claim, other)
    const leaving = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }
    const steps = [
      () => {
        cluster.state.mark('p://1')
      },
      () => {
        cluster.see(aClaim('claim', { providerID: 'p://1', capacity: { cpu: '4' }, ...leaving }))
      },
      () => {
        cluster.see(
          aNode('node', { providerID: 'p://1', pool: 'default', capacity: { cpu: '3' }, ...leaving }),
        )
      },
      () => {
        cluster.miss(node)
      },
      () => {
        cluster.miss(claim)
      },
    ]
    for (const step of steps) {
      step()
      assert.deepEqual(usage(cluster), left)
    }
  })

  test('STA-44 STA-45 the claim says whether an instance goes away, its Node alone does not', () => {
    const isGoing = (options: SomeClaim, nodeMetadata: object = {}) => {
      const cluster = new ObservedCluster()
      cluster.see(aNode('node', { providerID: 'p://1', pool: 'default', metadata: nodeMetadata }))
      cluster.see(aClaim('claim', { providerID: 'p://1', ...options }))
      return cluster.state.stateNodes().map(({ isMarkedForDeletion }) => isMarkedForDeletion)
    }
    const lastTransitionTime = '2026-01-01T00:00:00Z'
    const condition = { type: 'InstanceTerminating', reason: 'X', message: '', lastTransitionTime }
    assert.deepEqual(isGoing({ conditions: [{ ...condition, status: 'True' }] }), [true])
    assert.deepEqual(isGoing({ conditions: [{ ...condition, status: 'False' }] }), [false])
    assert.deepEqual(isGoing({}, { deletionTimestamp: lastTransitionTime }), [false])
  })
})

describe('what pools use', () => {
  const ofPool = (pool: string) => ({ providerID: 'p://1', pool, capacity: { cpu: '3' } })

  test('STA-53 each pool has its own, and an instance moves with the label of its Node', () => {
    const cluster = new ObservedCluster()
    const both = () => [usage(cluster, 'default'), usage(cluster, 'other')]
    cluster.see(node, claim)
    cluster.see(aNode('second', { providerID: 'p://2', pool: 'other', capacity: { cpu: '1' } }))
    const second = { cpu: 1000, nodes: 1 }
    assert.deepEqual(both(), [{ cpu: 3000, nodes: 1 }, second])
    cluster.see(aClaim('claim', { ...ofPool('other') }))
    assert.deepEqual(both(), [{ cpu: 3000, nodes: 1 }, second])
    cluster.see(aNode('node', ofPool('other')))
    assert.deepEqual(both(), [{}, { cpu: 4000, nodes: 2 }])
  })

  test('STA-54 nothing is left of a pool with its last node', () => {
    const cluster = new ObservedCluster()
    cluster.see(node, claim)
    cluster.miss(claim)
    cluster.miss(node)
    assert.deepEqual(usage(cluster), {})
    assert.deepEqual(usage(cluster, 'unheard-of'), {})
  })
})
