import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CsiNode, kinds, labels, type Node } from '@tenon/api'
import { VirtualClock } from '@tenon/runtime'
import { AttachLimits } from './attach-limits.ts'
import { ToldCache } from '../observed-cluster.test-support.ts'

const driver = 'csi.example.com'
const hour = 3_600_000

function opened() {
  const clock = new VirtualClock(0)
  const nodes = new ToldCache<Node>(kinds.node)
  const csiNodes = new ToldCache<CsiNode>(kinds.csiNode)
  const limits = new AttachLimits({ nodes, csiNodes }, clock)
  limits.follow()
  const aNode = (name: string, instanceType: string): Node => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { [labels.instanceType]: instanceType } },
  })
  const aCsiNode = (name: string, count?: number): CsiNode => ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name },
    spec: {
      drivers: [{ name: driver, nodeID: name, ...(count !== undefined && { allocatable: { count } }) }],
    },
  })
  return { clock, nodes, csiNodes, limits, aNode, aCsiNode }
}

test('RPT-3 the smallest limit of a type counts, types that told nothing attach as much as any', () => {
  const { nodes, csiNodes, limits, aNode, aCsiNode } = opened()
  assert.deepEqual(limits.current(), { byType: {}, others: {} })
  for (const [name, type, count] of [
    ['a', 'small', 3],
    ['b', 'small', 2],
    ['c', 'large', 8],
  ] as const) {
    csiNodes.put(aCsiNode(name, count))
    nodes.put(aNode(name, type))
  }
  nodes.put(aNode('d', 'other'))
  csiNodes.put(aCsiNode('d'))
  assert.deepEqual(limits.current(), {
    byType: { small: { [driver]: 2 }, large: { [driver]: 8 } },
    others: { [driver]: 8 },
  })
  assert.deepEqual([limits.expectedOf('small')[driver], limits.expectedOf('other')[driver]], [2, 8])
})

test('RPT-3 what a type attaches is remembered for a day after its last node', async () => {
  const { clock, nodes, csiNodes, limits, aNode, aCsiNode } = opened()
  nodes.put(aNode('a', 'small'))
  csiNodes.put(aCsiNode('a', 3))
  nodes.remove({ name: 'a' })
  csiNodes.remove({ name: 'a' })
  await clock.advance(23 * hour)
  assert.equal(limits.expectedOf('small')[driver], 3)
  nodes.put(aNode('b', 'small'))
  csiNodes.put(aCsiNode('b', 5))
  assert.equal(limits.expectedOf('small')[driver], 5, 'a node that is there knows better')
  nodes.remove({ name: 'b' })
  await clock.advance(25 * hour)
  assert.deepEqual(limits.current(), { byType: {}, others: {} })
})
