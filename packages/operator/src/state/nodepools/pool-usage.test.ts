import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Node, parseResources, type ResourceList, type Resources } from '@tenon/api'
import * as fc from 'fast-check'
import { joined } from '../nodes/state-node.ts'
import { poolUsage } from './pool-usage.ts'

const lists: readonly ResourceList[] = [
  { cpu: '4', memory: '16Gi', pods: '110' },
  { cpu: '4', memory: '16Gi', pods: '110', nodes: '7' },
  { cpu: '1500m', 'example.com/gpu': '2' },
  {},
]
const parsed = new Map<ResourceList | undefined, Resources>()
/** Equal amounts are one object, as in the state of the cluster. */
const parse = (list: ResourceList | undefined): Resources => {
  const amounts = parsed.get(list) ?? parseResources(list)
  parsed.set(list, amounts)
  return amounts
}

const instances = fc.array(
  fc.record({
    pool: fc.constantFrom('a', 'b'),
    list: fc.constantFrom(...lists),
    isMarkedForDeletion: fc.boolean(),
  }),
)

test('what a NodePool uses is the sum over its nodes that stay, however many have the same', () => {
  fc.assert(
    fc.property(instances, (all) => {
      const nodes = all.map(({ pool, list, isMarkedForDeletion }, at) => {
        const name = `node-${at}`
        const node: Node = {
          apiVersion: 'v1',
          kind: 'Node',
          metadata: { name, labels: { 'karpenter.sh/nodepool': pool } },
          status: { capacity: list },
        }
        return joined(node, undefined, name, isMarkedForDeletion)
      })
      for (const pool of ['a', 'b']) {
        const expected: Record<string, number> = {}
        for (const one of all) {
          if (one.pool !== pool || one.isMarkedForDeletion) continue
          for (const [name, amount] of Object.entries({ ...parseResources(one.list), nodes: 1 }))
            expected[name] = (expected[name] ?? 0) + amount
        }
        assert.deepEqual(poolUsage(pool, nodes, parse), expected)
      }
    }),
  )
})
