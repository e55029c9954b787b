import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodePool } from '@tenon/api'
import { isNowReady, isResized } from './static-pools.ts'

function aPool(replicas: number | undefined, ready?: 'True' | 'False' | 'Unknown'): NodePool {
  const condition = { type: 'Ready', reason: 'Told', message: '', lastTransitionTime: '' }
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'fixed' },
    spec: {
      ...(replicas !== undefined && { replicas }),
      template: { spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements: [] } },
    },
    status: { conditions: ready === undefined ? [] : [{ ...condition, status: ready }] },
  }
}

test('STA-80 a pool wakes its provisioning when it becomes ready, not when it ceases to be', () => {
  const changes = [
    ['False', 'True'],
    ['Unknown', 'True'],
    [undefined, 'True'],
    ['True', 'False'],
    ['True', 'Unknown'],
    ['True', 'True'],
    ['False', 'Unknown'],
  ] as const
  const woken = changes.map(([before, after]) =>
    isNowReady({ kind: 'updated', old: aPool(1, before), object: aPool(1, after) }),
  )
  assert.deepEqual(woken, [true, true, true, false, false, false, false])
  assert.equal(
    isNowReady({ kind: 'updated', old: aPool(undefined, 'False'), object: aPool(undefined, 'True') }),
    false,
  )
})

test('a pool is looked at when it appears and when its size changes, unless it has none', () => {
  const resized = (before: number | undefined, after: number | undefined) =>
    isResized({ kind: 'updated', old: aPool(before), object: aPool(after) })
  assert.deepEqual(
    [resized(1, 2), resized(2, 0), resized(2, 2), resized(undefined, undefined)],
    [true, true, false, false],
  )
  assert.equal(isResized({ kind: 'added', object: aPool(0) }), true)
  assert.equal(isResized({ kind: 'added', object: aPool(undefined) }), false)
  assert.equal(isResized({ kind: 'deleted', object: aPool(2) }), false)
})
