import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { KubeObject, Pod } from '@tenon/api'
import { aClaim, aNode, aPod, aPool } from './nodes.test-support.ts'
import { ObservedCluster } from '../observed-cluster.test-support.ts'

const minute = 60_000
const node = aNode('node', { providerID: 'p://1', pool: 'default' })
const claim = aClaim('claim', { providerID: 'p://1' })
const time = '2026-01-01T00:00:00Z'

/** A cluster with one instance, and whether things that happen in it ask for another look. */
function watched(...objects: readonly KubeObject[]) {
  const cluster = new ObservedCluster()
  cluster.see(node, claim, ...objects)
  let seen = cluster.state.consolidation.read()
  const isNews = (happens: () => void) => {
    happens()
    const before = seen
    seen = cluster.state.consolidation.read()
    return seen !== before
  }
  const see = (object: KubeObject) =>
    isNews(() => {
      cluster.see(object)
    })
  const miss = (object: KubeObject) =>
    isNews(() => {
      cluster.miss(object)
    })
  return { cluster, isNews, see, miss }
}

describe('whether consolidation is worth another look', () => {
  test('STA-46 nothing happens: not before five minutes are over', async () => {
    const { cluster, isNews } = watched()
    const nothing = () => undefined
    await cluster.clock.advance(4 * minute)
    assert.equal(isNews(nothing), false)
    await cluster.clock.advance(minute)
    assert.equal(isNews(nothing), true)
    await cluster.clock.advance(4 * minute)
    assert.equal(isNews(nothing), false)
  })

  test('STA-47 another generation of a NodePool asks for it, its status does not', () => {
    const { see, miss } = watched(aPool())
    assert.equal(see(aPool('default', { generation: 2 })), true)
    assert.equal(see({ ...aPool('default', { generation: 2 }), status: { nodes: 3 } } as KubeObject), false)
    const foreign = aPool('foreign')
    const nodeClassRef = { group: 'other.io', kind: 'Other', name: 'x' }
    const spec = { template: { spec: { nodeClassRef, requirements: [] } } }
    assert.equal(see({ ...foreign, spec } as KubeObject), false)
    assert.equal(miss(aPool()), true)
  })

  test('STA-23 a pod that gets more in place does not, and has what is the larger', () => {
    const { cluster, see } = watched()
    const sized = (cpu: string): Pod['spec']['containers'] => [
      { name: 'app', resources: { requests: { cpu } } },
    ]
    const resized = (wanted: string, granted: string): Pod => ({
      ...aPod('pod', 'node', { containers: sized(wanted) }),
      status: {
        phase: 'Running',
        containerStatuses: [
          { name: 'app', resources: { requests: { cpu: granted } }, allocatedResources: { cpu: granted } },
        ],
      },
    })
    const cpu = () => cluster.state.pods.useOf('node').requests['cpu']
    assert.equal(see(resized('1', '1')), true)
    assert.equal(cpu(), 1000)
    assert.equal(see(resized('2', '1')), false)
    assert.equal(cpu(), 2000)
    assert.equal(see(resized('2', '2')), false)
    assert.equal(see(resized('500m', '2')), false)
    assert.equal(cpu(), 2000)
    assert.equal(see(resized('500m', '500m')), false)
    assert.equal(cpu(), 500)
  })

  test('pods that come, move and go ask for it, pods that end do not', () => {
    const { see, miss } = watched()
    assert.equal(see(aPod('pod')), false)
    assert.equal(see(aPod('pod', 'node')), true)
    assert.equal(see({ ...aPod('pod', 'node'), status: { phase: 'Succeeded' } } as KubeObject), false)
    assert.equal(see(aPod('pod', 'other')), true)
    assert.equal(miss(aPod('pod')), true)
  })

  test('instances that come, start to work and go ask for it; what they say beside that does not', () => {
    const { cluster, isNews, see, miss } = watched()
    const starting = { providerID: 'p://2', labels: { 'node.kubernetes.io/instance-type': 'm' } }
    assert.equal(see(aClaim('second')), false)
    assert.equal(see(aClaim('second', { providerID: 'p://2' })), true)
    assert.equal(see(aNode('second', starting)), false)
    assert.equal(see(aNode('second', { providerID: 'p://2', pool: 'default' })), true)
    assert.equal(
      see(aNode('second', { providerID: 'p://2', pool: 'default', capacity: { cpu: '1' } })),
      false,
    )
    const mark = () => {
      cluster.state.mark('p://1')
    }
    assert.equal(isNews(mark), false)
    const leaving = aClaim('second', { providerID: 'p://2', metadata: { deletionTimestamp: time } })
    assert.equal(see(leaving), true)
    assert.equal(miss(leaving), true)
    assert.equal(miss(aNode('second')), true)
    assert.equal(see(aNode('half', { labels: { 'karpenter.sh/nodepool': 'default' } })), false)
    assert.equal(miss(aNode('half')), false)
  })
})
