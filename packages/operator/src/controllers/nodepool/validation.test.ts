import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodePool, Requirement, Taint } from '@tenon/api'
import { validatePool } from './validation.ts'

function problems(changes: {
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: readonly Taint[]
  readonly startupTaints?: readonly Taint[]
  readonly requirements?: readonly Requirement[]
}): readonly string[] {
  const { labels = {}, requirements = [], ...taints } = changes
  const pool: NodePool = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'p' },
    spec: {
      template: {
        metadata: { labels },
        spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements, ...taints },
      },
    },
  }
  return validatePool(pool, {
    wellKnownLabels: ['provider.example.com/size'],
    restrictedDomains: ['provider.example.com'],
    restrictedLabels: ['example.com/slot'],
  })
}
const requiring = (
  key: string,
  operator: Requirement['operator'],
  values: readonly string[] = [],
  minValues?: number,
) =>
  problems({ requirements: [{ key, operator, values, ...(minValues !== undefined && { minValues }) }] })
    .length
const labelled = (key: string, value = 'x') => problems({ labels: { [key]: value } }).length

test('labels: reserved, misspelt and per-node keys are refused', () => {
  for (const key of [
    'karpenter.sh/nodepool',
    'karpenter.sh/x',
    'sub.karpenter.sh/x',
    'kubernetes.io/hostname',
    'a b',
    '/x',
    `a/${'b'.repeat(64)}`,
  ])
    assert.equal(labelled(key), 1, key)
  for (const key of [
    'team',
    'mykarpenter.sh/x',
    'karpenter.sh',
    'kubernetes.io/foo',
    'node.k8s.io/x',
    'karpenter.sh/capacity-type',
  ])
    assert.equal(labelled(key), 0, key)
  assert.equal(labelled('team', 'v'.repeat(64)), 1)
  assert.equal(labelled('team', ''), 0)
})

test('STA-119 taints: keys and values are qualified names, and no pair appears twice', () => {
  const taint = (key: string, value?: string): Taint => ({
    key,
    effect: 'NoSchedule',
    ...(value !== undefined && { value }),
  })
  assert.equal(problems({ taints: [taint('a', 'x/y'), taint('b', '')] }).length, 0)
  assert.equal(problems({ taints: [taint('')] }).length, 1)
  assert.equal(problems({ taints: [taint('a', 'x y')] }).length, 1)
  assert.equal(problems({ startupTaints: [taint(`a/${'b'.repeat(64)}`)] }).length, 1)
  assert.equal(problems({ taints: [taint('a', '1')], startupTaints: [taint('a', '2')] }).length, 1)
  assert.equal(problems({ taints: [taint('a'), { key: 'a', effect: 'NoExecute' }] }).length, 0)
})

test('requirements: operators get the values that they need', () => {
  assert.equal(requiring('team', 'In'), 1)
  assert.equal(requiring('team', 'In', ['a'], 2), 1)
  assert.equal(requiring('team', 'Exists'), 0)
  assert.equal(requiring('team', 'Gt', ['-1']), 2)
  assert.equal(requiring('team', 'Gt', ['9223372036854775807']), 0)
  assert.equal(requiring('team', 'Gt', ['9223372036854775808']), 1)
  assert.equal(requiring('team', 'Near' as never), 1)
  assert.equal(requiring('team', 'Gte', ['1', '2']), 1)
  assert.equal(requiring('team', 'Lt', ['5']), 0)
  assert.equal(requiring('team', 'In', ['a b']), 1)
  assert.equal(requiring('karpenter.sh/nodepool', 'In', ['p']), 1)
  assert.equal(requiring('provider.example.com/size', 'In', ['s']), 0)
  assert.equal(requiring('beta.kubernetes.io/arch', 'In', ['amd64']), 0)
})

test('STA-118 capacity types: one known value is enough, unless minValues wants more', () => {
  const key = 'karpenter.sh/capacity-type'
  assert.equal(requiring(key, 'In', ['on-demand', 'xspot']), 0)
  assert.equal(requiring(key, 'In', ['xspot']), 1)
  assert.equal(requiring(key, 'In', ['on-demand', 'xspot'], 2), 1)
  assert.equal(requiring(key, 'NotIn', ['xspot']), 0)
})

test('every problem is told, with its field', () => {
  const all = problems({
    labels: { 'karpenter.sh/x': 'y' },
    requirements: [{ key: 'a', operator: 'In', values: [] }],
  })
  assert.deepEqual(all, [
    'spec.template.metadata.labels["karpenter.sh/x"]: labels of domain karpenter.sh are reserved',
    'spec.template.spec.requirements[0]: label a: operator In needs at least one value',
  ])
})

test('what the provider reserves cannot be required or set, what it knows can', () => {
  assert.equal(requiring('provider.example.com/size', 'In', ['s']), 0)
  for (const key of ['provider.example.com/class', 'a.provider.example.com/x', 'example.com/slot']) {
    assert.equal(requiring(key, 'Exists'), 1, key)
    assert.equal(labelled(key), 1, key)
  }
  assert.equal(requiring('notprovider.example.com/x', 'Exists'), 0)
})

test('a taint of an unknown effect is refused, of an empty one it is not', () => {
  assert.equal(problems({ taints: [{ key: 'a', effect: 'NoRun' as never }] }).length, 1)
  assert.equal(problems({ taints: [{ key: 'a', effect: '' as never }] }).length, 0)
})
