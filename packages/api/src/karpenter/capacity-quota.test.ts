import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isQuotaEnforced, quotaValidType, readQuota, withReadableStatus } from './capacity-quota.ts'
import type { CapacityQuota } from './types.ts'

function aQuota(spec: unknown): CapacityQuota {
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityQuota',
    metadata: { name: 'all', generation: 2 },
    spec: spec as CapacityQuota['spec'],
  }
}

const ofResources = (resources: unknown) => aQuota({ limits: { resources } })

test('WNT-6 whole quantities are read in canonical units', () => {
  assert.deepEqual(readQuota(ofResources({ cpu: 10, memory: '32Gi', nodes: '2k', 'example.com/gpu': '4' })), {
    kind: 'read',
    selector: {},
    limits: { cpu: 10_000, memory: 32 * 2 ** 30, nodes: 2000, 'example.com/gpu': 4 },
  })
})

test('WNT-6 other limits and selectors are named with their field', () => {
  const long = 'x'.repeat(64)
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`example.com/r${i}`, 1]))
  for (const resources of [
    ...['500m', '1000m', '3.67Gi', '-1', '', 'NaN', '1e309x', {}, null, -1, 0.5].map((cpu) => ({ cpu })),
    { [long]: 1 },
    many,
    [],
    'cpu',
    undefined,
  ]) {
    const reading = readQuota(ofResources(resources))
    assert.equal(reading.kind, 'unreadable', JSON.stringify(resources))
    assert.match(reading.field, /^spec\.limits\.resources/)
  }
  for (const selector of [
    null,
    7,
    { matchLabels: { 'a b': 'c' } },
    { matchLabels: { a: 7 } },
    { matchExpressions: {} },
    { matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1'] }] },
    { matchExpressions: [{ key: 'a', operator: 'In', values: [] }] },
    { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] },
  ]) {
    const reading = readQuota(aQuota({ selector, limits: { resources: { nodes: 1 } } }))
    assert.equal(reading.kind, 'unreadable', JSON.stringify(selector))
    assert.match(reading.field, /^spec\.selector/)
  }
  assert.equal(readQuota(aQuota(undefined)).kind, 'unreadable')
})

test('a quota that Cluster Autoscaler calls invalid is enforced again once it is changed', () => {
  const refused = (observedGeneration: number): CapacityQuota => ({
    ...ofResources({ nodes: 1 }),
    status: {
      conditions: [
        {
          type: quotaValidType,
          status: 'False',
          reason: 'Invalid',
          message: '',
          lastTransitionTime: '2026-01-01T00:00:00Z',
          observedGeneration,
        },
      ],
    },
  })
  assert.ok(isQuotaEnforced(ofResources({ nodes: 1 })))
  assert.ok(!isQuotaEnforced(refused(2)))
  assert.ok(isQuotaEnforced(refused(1)))
})

test('what no API server would have accepted is left out of the status', () => {
  const quota = ofResources({ nodes: 1 })
  const condition = {
    type: quotaValidType,
    status: 'True',
    reason: 'Valid',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }
  for (const [status, read] of [
    ['x', undefined],
    [{ conditions: 'x', used: 5, observedGeneration: 'new' }, {}],
    [{ conditions: [null, { type: 5 }, condition] }, { conditions: [condition] }],
    [
      { used: { resources: { nodes: '1' } }, observedGeneration: 2 },
      { used: { resources: { nodes: '1' } }, observedGeneration: 2 },
    ],
  ] as const) {
    const odd = withReadableStatus({ ...quota, status: status as never })
    assert.deepEqual(odd.status, read)
    assert.ok(isQuotaEnforced(odd))
  }
})
