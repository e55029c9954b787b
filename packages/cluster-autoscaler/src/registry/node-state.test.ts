import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '@tenon/api'
import { nodeState } from './node-state.ts'

const minute = 60_000
const createdMs = Date.parse('2026-01-01T00:00:00Z')

function aReadyNode(...taints: readonly string[]): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { taints: taints.map((key) => ({ key, effect: 'NoSchedule' })) },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  }
}

const stateOf = (node: Node, ageMs: number) => nodeState(node, createdMs + ageMs, 15 * minute)

test('CAS-26 a node that no cloud controller has seen yet has not started, and another is not bought for its pods', () => {
  const node = aReadyNode('node.cloudprovider.kubernetes.io/uninitialized')
  assert.equal(stateOf(node, minute), 'notStarted')
  assert.equal(stateOf(node, 16 * minute), 'unready')
})

test('a ready node is ready whatever other taints it has', () => {
  assert.equal(stateOf(aReadyNode(), minute), 'ready')
  assert.equal(stateOf(aReadyNode('dedicated'), minute), 'ready')
})
