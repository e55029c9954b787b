import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Condition, NodeClaim } from '@tenon/api'
import { isLifecycleChange } from './node-changes.ts'

const isTrue = (type: string): Condition => ({
  type,
  status: 'True',
  reason: type,
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
})

const claim: NodeClaim = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name: 'a', uid: 'a', resourceVersion: '1', labels: { zone: 'a' } },
  spec: { nodeClassRef: { group: 'g', kind: 'k', name: 'n' }, requirements: [] },
  status: { providerID: 'p://a', conditions: ['Launched', 'Drifted', 'Consolidatable'].map(isTrue) },
}

const changed = (metadata: object, status: object): NodeClaim =>
  structuredClone({
    ...claim,
    metadata: { ...claim.metadata, resourceVersion: '2', ...metadata },
    status: { ...claim.status, ...status },
  })

const isLife = (metadata: object, status: object) =>
  isLifecycleChange({ kind: 'updated', old: claim, object: changed(metadata, status) })

test('pods that come and go, and what disruption makes of a claim, are nothing of its life', () => {
  assert.ok(!isLife({}, {}))
  assert.ok(!isLife({}, { lastPodEventTime: '2026-01-01T00:01:00Z', conditions: [isTrue('Launched')] }))
})

test('anything else that changes in a claim is, and so are its beginning and its end', () => {
  assert.ok(isLifecycleChange({ kind: 'added', object: claim }))
  assert.ok(isLifecycleChange({ kind: 'deleted', object: claim }))
  assert.ok(isLife({ deletionTimestamp: '2026-01-01T00:01:00Z' }, {}))
  assert.ok(isLife({ labels: { zone: 'b' } }, {}))
  assert.ok(isLife({ finalizers: ['f'] }, {}))
  assert.ok(isLife({}, { nodeName: 'n' }))
  assert.ok(isLife({}, { conditions: undefined }))
  assert.ok(isLife({}, { conditions: [isTrue('Launched'), isTrue('Initialized')] }))
  assert.ok(isLife({}, { conditions: [{ ...isTrue('Launched'), status: 'False' }] }))
  assert.ok(isLife({}, { conditions: 'none' }))
})
