import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodePool, Requirement, Taint } from '@tenon/api'
import { validatePool } from './pool-problems.ts'

function problems(changes: {
  readonly name?: string
  readonly nodeClass?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: readonly Taint[]
  readonly startupTaints?: readonly Taint[]
  readonly requirements?: readonly Requirement[]
}): readonly string[] {
  const { name = 'p', nodeClass = 'n', labels = {}, requirements = [], ...taints } = changes
  const pool: NodePool = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      template: {
        metadata: { labels },
        spec: { nodeClassRef: { group: 'g', kind: 'K', name: nodeClass }, requirements, ...taints },
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
  for (const key of ['team', 'mykarpenter.sh/x', 'karpenter.sh', 'kubernetes.io/foo', 'node.k8s.io/x'])
    assert.equal(labelled(key), 0, key)
  assert.equal(labelled('karpenter.sh/capacity-type', 'spot'), 0)
  assert.equal(labelled('team', 'v'.repeat(64)), 1)
  assert.equal(labelled('team', ''), 0)
})

test('STA-119 RPB-14 taints: keys are qualified names, values those of labels, and no pair appears twice', () => {
  const taint = (key: string, value?: string): Taint => ({
    key,
    effect: 'NoSchedule',
    ...(value !== undefined && { value }),
  })
  assert.equal(problems({ taints: [taint('a', 'x.y'), taint('b', '')] }).length, 0)
  assert.equal(problems({ taints: [taint('a', 'x/y')] }).length, 1)
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
  assert.equal(requiring('team', 'Gt', ['9223372036854775806']), 0)
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

const reads = (
  key: string,
  operator: Requirement['operator'],
  ...values: readonly string[]
): Requirement => ({
  key,
  operator,
  ...(values.length > 0 && { values }),
})
const both = (...requirements: readonly Requirement[]) => problems({ requirements }).length

test('RPT-22 requirements on one label that no value satisfies are refused', () => {
  const key = 'team'
  const impossible: readonly (readonly Requirement[])[] = [
    [reads(key, 'In', 'a'), reads(key, 'In', 'b')],
    [reads(key, 'In', 'a'), reads(key, 'NotIn', 'a')],
    [reads(key, 'In', 'a'), reads(key, 'DoesNotExist')],
    [reads(key, 'Exists'), reads(key, 'DoesNotExist')],
    [reads(key, 'Gt', '5'), reads(key, 'DoesNotExist')],
    [reads(key, 'Gt', '5'), reads(key, 'Lt', '5')],
    [reads(key, 'Gt', '5'), reads(key, 'Lt', '6')],
    [reads(key, 'Gte', '6'), reads(key, 'Lte', '5')],
    [reads(key, 'Gt', '5'), reads(key, 'Lte', '5')],
    [reads(key, 'In', 'small'), reads(key, 'Gt', '3')],
    [reads(key, 'In', '1', '2', '3'), reads(key, 'Gt', '3')],
    [reads(key, 'Gte', '1'), reads(key, 'Lte', '2'), reads(key, 'NotIn', '1', '2')],
    [reads(key, 'In', 'a', 'b'), reads(key, 'NotIn', 'a'), reads(key, 'NotIn', 'b')],
    [reads(key, 'Lt', '0')],
    [reads(key, 'Gt', '9223372036854775807')],
    [reads('kubernetes.io/arch', 'In', 'amd64'), reads('beta.kubernetes.io/arch', 'In', 'arm64')],
    [reads('kubernetes.io/arch', 'DoesNotExist')],
    [reads('topology.kubernetes.io/zone', 'DoesNotExist')],
    [reads('kubernetes.io/os', 'Gt', '3')],
    [reads('karpenter.sh/capacity-type', 'NotIn', 'spot', 'on-demand', 'reserved')],
    [
      reads('karpenter.sh/capacity-type', 'In', 'spot', 'xspot'),
      reads('karpenter.sh/capacity-type', 'NotIn', 'spot'),
    ],
    [reads('g/k', 'In', 'other')],
    [reads('g/k', 'DoesNotExist')],
  ]
  for (const requirements of impossible) assert.equal(both(...requirements), 1, JSON.stringify(requirements))
  const possible: readonly (readonly Requirement[])[] = [
    [reads(key, 'In', 'a', 'b'), reads(key, 'NotIn', 'b')],
    [reads(key, 'NotIn', 'a'), reads(key, 'DoesNotExist')],
    [reads(key, 'NotIn', 'a'), reads(key, 'NotIn', 'b'), reads(key, 'Exists')],
    [reads(key, 'Gt', '5'), reads(key, 'Lt', '7')],
    [reads(key, 'Gte', '5'), reads(key, 'Lte', '5')],
    [reads(key, 'In', '007'), reads(key, 'Gt', '6')],
    [reads(key, 'Gte', '1'), reads(key, 'Lte', '2'), reads(key, 'NotIn', '1')],
    [reads(key, 'In', '')],
    [reads('kubernetes.io/arch', 'In', 'amd64'), reads('beta.kubernetes.io/arch', 'NotIn', 'arm64')],
    [reads('topology.kubernetes.io/region', 'DoesNotExist')],
    [reads('karpenter.sh/capacity-type', 'NotIn', 'spot')],
    [reads('g/k', 'In', 'n', 'm')],
  ]
  for (const requirements of possible) assert.equal(both(...requirements), 0, JSON.stringify(requirements))
})

test('RPT-22 a label of the template that its requirements do not admit is refused, with field and fix', () => {
  const ofTeam = (value: string, ...requirements: readonly Requirement[]) =>
    problems({ labels: { team: value }, requirements })
  assert.deepEqual(ofTeam('a', reads('team', 'In', 'b')), [
    'spec.template.spec.requirements[0]: label team: no node satisfies both In [b] and the value "a" of the template\'s label (spec.template.metadata.labels["team"]); change or remove one of them',
  ])
  for (const requirement of [
    reads('team', 'NotIn', 'a'),
    reads('team', 'DoesNotExist'),
    reads('team', 'Gt', '1'),
    reads('team', 'Lte', '1'),
  ])
    assert.equal(ofTeam('a', requirement).length, 1, requirement.operator)
  assert.equal(ofTeam('a', reads('team', 'Exists'), reads('team', 'In', 'a', 'b')).length, 0)
  assert.equal(ofTeam('7', reads('team', 'Gt', '6'), reads('team', 'Lt', '8')).length, 0)
  const twice = { 'beta.kubernetes.io/arch': 'arm64', 'kubernetes.io/arch': 'amd64' }
  assert.equal(problems({ labels: twice }).length, 1)
  assert.equal(problems({ labels: { 'karpenter.sh/capacity-type': 'xspot' } }).length, 1)
  assert.equal(problems({ labels: { 'g/k': 'other' } }).length, 1)
})

test('RPT-22 minValues above the number of values that labels and requirements admit is refused', () => {
  const least = (minValues: number, requirement: Requirement): Requirement => ({ ...requirement, minValues })
  const key = 'team'
  const tooMany: readonly (readonly Requirement[])[] = [
    [least(2, reads(key, 'In', 'a', 'b', 'c')), reads(key, 'NotIn', 'b', 'c')],
    [least(2, reads(key, 'In', 'a', 'a'))],
    [least(3, reads(key, 'Gte', '1')), reads(key, 'Lte', '2')],
    [least(2, reads(key, 'Gte', '1')), reads(key, 'Lte', '2'), reads(key, 'NotIn', '1')],
    [least(1, reads(key, 'DoesNotExist'))],
    [least(4, reads('karpenter.sh/capacity-type', 'Exists'))],
    [least(2, reads('karpenter.sh/capacity-type', 'NotIn', 'spot', 'reserved'))],
  ]
  for (const requirements of tooMany) assert.equal(both(...requirements), 1, JSON.stringify(requirements))
  const enough: readonly (readonly Requirement[])[] = [
    [least(2, reads(key, 'In', 'a', 'b', 'c')), reads(key, 'NotIn', 'c')],
    [least(2, reads(key, 'Gte', '1')), reads(key, 'Lte', '2')],
    [least(50, reads(key, 'Gt', '1'))],
    [least(3, reads('karpenter.sh/capacity-type', 'Exists'))],
  ]
  for (const requirements of enough) assert.equal(both(...requirements), 0, JSON.stringify(requirements))
  assert.equal(problems({ labels: { team: 'a' }, requirements: [least(2, reads(key, 'Exists'))] }).length, 1)
})

test('RPT-23 names that cannot be values of labels are refused, those of 63 characters are not', () => {
  assert.deepEqual(
    problems({ name: 'p'.repeat(64) }).map((text) => text.slice(0, 29)),
    ['metadata.name: the name "pppp'],
  )
  assert.equal(problems({ name: 'p'.repeat(63) }).length, 0)
  assert.equal(problems({ nodeClass: 'n'.repeat(64) }).length, 1)
  assert.equal(problems({ nodeClass: 'n'.repeat(63) }).length, 0)
})
