import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wellKnownLabels } from '@tenon/api'
import { aPool } from '../../testing/builders.test-support.ts'
import { templateClaim } from './static-claim.ts'

const wellKnown = new Set(wellKnownLabels)
const nodeClassLabel = 'karpenter.kwok.sh/kwoknodeclass'

test('the claim of a template says what every label must be, and nothing of types or capacity types', () => {
  const pool = aPool(
    'fixed',
    {},
    { requirements: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }] },
  )
  const { template } = pool.spec
  const labelled = { ...pool, spec: { template: { ...template, metadata: { labels: { team: 'a' } } } } }
  assert.deepEqual(templateClaim({ nodePool: labelled }, wellKnown), {
    taints: [],
    labels: { 'karpenter.sh/nodepool': 'fixed', [nodeClassLabel]: 'default', team: 'a' },
    requirements: [
      { key: nodeClassLabel, operator: 'In', values: ['default'] },
      { key: 'karpenter.sh/nodepool', operator: 'In', values: ['fixed'] },
      { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
      { key: 'team', operator: 'In', values: ['a'] },
    ],
  })
})

test('STA-125 bounds are written inclusively, and a key bounded on both sides as two entries', () => {
  const bounded = (...bounds: readonly (readonly ['Gt' | 'Lt', string])[]) => {
    const requirements = bounds.map(([operator, value]) => ({
      key: 'example.com/n',
      operator,
      values: [value],
    }))
    const claim = templateClaim({ nodePool: aPool('fixed', {}, { requirements }) }, wellKnown)
    return claim.requirements.filter(({ key }) => key === 'example.com/n')
  }
  assert.deepEqual(bounded(['Gt', '2']), [{ key: 'example.com/n', operator: 'Gte', values: ['3'] }])
  assert.deepEqual(bounded(['Lt', '9'], ['Gt', '2']), [
    { key: 'example.com/n', operator: 'Gte', values: ['3'] },
    { key: 'example.com/n', operator: 'Lte', values: ['8'] },
  ])
})

test('keys of the user get a concrete label, keys that providers fill in do not, minValues stay', () => {
  const requirements = [
    { key: 'example.com/rack', operator: 'In', values: ['r2', 'r1'] },
    { key: 'example.com/size', operator: 'Gt', values: ['4'] },
    { key: 'example.com/none', operator: 'DoesNotExist' },
    { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['z1', 'z2'], minValues: 2 },
  ] as const
  const claim = templateClaim({ nodePool: aPool('fixed', {}, { requirements }) }, wellKnown)
  assert.deepEqual(claim.labels, {
    'example.com/rack': 'r1',
    'example.com/size': '5',
    'karpenter.sh/nodepool': 'fixed',
    [nodeClassLabel]: 'default',
  })
  const zone = claim.requirements.find(({ key }) => key === 'topology.kubernetes.io/zone')
  assert.equal(zone?.minValues, 2)
})

test('a pool that cannot be read is refused with the fields at fault', () => {
  const requirements = [{ key: '', operator: 'In' as const, values: ['a'] }]
  assert.throws(
    () => templateClaim({ nodePool: aPool('fixed', {}, { requirements }) }, wellKnown),
    /requirements/,
  )
})
