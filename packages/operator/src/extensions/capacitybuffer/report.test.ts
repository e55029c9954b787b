import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CapacityBuffer, type Condition, withCondition } from '@tenon/api'
import { provisioningCondition } from './report.ts'

const ready: Condition = {
  type: 'ReadyForProvisioning',
  status: 'True',
  reason: 'Resolved',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
  observedGeneration: 1,
}
function aBuffer(replicas: number | undefined, ...conditions: readonly Condition[]): CapacityBuffer {
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityBuffer',
    metadata: { name: 'web', namespace: 'default', generation: 2 },
    spec: {},
    status: { conditions, ...(replicas !== undefined && { replicas }) },
  }
}
const none = { existing: 0, launched: 0, failed: 0 }

test('BUF-34 a buffer that is not ready, or empty, says so whatever a pass found', () => {
  const unready = aBuffer(3, { ...ready, status: 'False' })
  assert.equal(provisioningCondition(unready, undefined)?.reason, 'NotReadyForProvisioning')
  assert.equal(provisioningCondition(aBuffer(3), undefined)?.reason, 'NotReadyForProvisioning')
  for (const replicas of [0, undefined])
    assert.equal(provisioningCondition(aBuffer(replicas, ready), undefined)?.reason, 'BufferEmpty')
})

test('BUF-35 a pass that was not about the buffer, or that did not reach all of it, says nothing', () => {
  assert.equal(provisioningCondition(aBuffer(3, ready), undefined), undefined)
  assert.equal(provisioningCondition(aBuffer(3, ready), { ...none, existing: 2 }), undefined)
})

test('BUF-22 BUF-23 BUF-25 new nodes and failures are counted; room for all is told as such', () => {
  const short = provisioningCondition(aBuffer(6, ready), { existing: 1, launched: 3, failed: 2 })
  assert.deepEqual(short, {
    type: 'Provisioning',
    status: 'False',
    reason: 'RequiresNewCapacity',
    message: 'New nodes are needed for 3 of 6 pods, and 2 cannot be placed',
  })
  const fits = provisioningCondition(aBuffer(6, ready), { ...none, existing: 6 })
  assert.deepEqual([fits?.status, fits?.reason], ['True', 'FitsExistingCapacity'])
  assert.match(fits?.message ?? '', /\b6\b/)
})

test('the time of a condition is that of its status; there is no Ready', () => {
  const next = { type: 'ReadyForProvisioning', status: 'True', reason: 'Resolved', message: 'more' } as const
  const nowMs = Date.parse('2026-01-02T00:00:00Z')
  const [kept] = withCondition(aBuffer(1, ready), next, nowMs)
  assert.deepEqual(
    [kept?.lastTransitionTime, kept?.observedGeneration, kept?.message],
    [ready.lastTransitionTime, 2, 'more'],
  )
  const changed = withCondition(aBuffer(1, ready), { ...next, status: 'False' }, nowMs)
  assert.deepEqual(
    changed.map(({ type, lastTransitionTime }) => [type, lastTransitionTime]),
    [['ReadyForProvisioning', '2026-01-02T00:00:00Z']],
  )
  const same = aBuffer(1, { ...ready, observedGeneration: 2 })
  assert.equal(withCondition(same, { ...next, message: '' }, nowMs), same.status?.conditions)
})
