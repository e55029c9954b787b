import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LabelSelectorRequirement } from './objects.ts'
import { normalizedLabel } from './karpenter/labels.ts'
import { nodeClassLabel } from './karpenter/labels.ts'
import { matchesSelector } from './selector.ts'

const labels = { app: 'web', tier: '' }

test('no selector matches nothing, an empty one everything', () => {
  assert.equal(matchesSelector(undefined, labels), false)
  assert.equal(matchesSelector({}, labels), true)
  assert.equal(matchesSelector({}, undefined), true)
})

test('every label and every expression must match', () => {
  const cases: readonly (readonly [LabelSelectorRequirement, boolean])[] = [
    [{ key: 'app', operator: 'In', values: ['web', 'db'] }, true],
    [{ key: 'app', operator: 'In', values: ['db'] }, false],
    [{ key: 'none', operator: 'In', values: ['db'] }, false],
    [{ key: 'app', operator: 'NotIn', values: ['web'] }, false],
    [{ key: 'none', operator: 'NotIn', values: ['web'] }, true],
    [{ key: 'tier', operator: 'Exists' }, true],
    [{ key: 'tier', operator: 'DoesNotExist' }, false],
    [{ key: 'none', operator: 'DoesNotExist' }, true],
  ]
  for (const [expression, matches] of cases) {
    assert.equal(
      matchesSelector({ matchExpressions: [expression] }, labels),
      matches,
      JSON.stringify(expression),
    )
  }
  assert.ok(matchesSelector({ matchLabels: { app: 'web', tier: '' } }, labels))
  assert.ok(!matchesSelector({ matchLabels: { app: 'web', tier: 'x' } }, labels))
})

test('old spellings of label keys are read as the present ones', () => {
  assert.equal(normalizedLabel('beta.kubernetes.io/arch'), 'kubernetes.io/arch')
  assert.equal(normalizedLabel('failure-domain.beta.kubernetes.io/zone'), 'topology.kubernetes.io/zone')
  assert.equal(normalizedLabel('example.com/x'), 'example.com/x')
  assert.equal(
    nodeClassLabel({ group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass' }),
    'karpenter.kwok.sh/kwoknodeclass',
  )
})
