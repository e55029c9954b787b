import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LabelSelectorRequirement } from './objects.ts'
import { nodeClassLabel, normalizedLabel } from './karpenter/labels.ts'
import { matchesSelector, parseSelector, selectorText } from './selector.ts'

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

test('the text form of a selector is read, or the part that is none is named', () => {
  assert.deepEqual(parseSelector('a=b, c!=d,e in (f, g),h notin (i),j,! k,l==m,n>1,o='), {
    requirements: [
      { key: 'a', operator: 'In', values: ['b'] },
      { key: 'c', operator: 'NotIn', values: ['d'] },
      { key: 'e', operator: 'In', values: ['f', 'g'] },
      { key: 'h', operator: 'NotIn', values: ['i'] },
      { key: 'j', operator: 'Exists' },
      { key: 'k', operator: 'DoesNotExist' },
      { key: 'l', operator: 'In', values: ['m'] },
      { key: 'n', operator: 'Gt', values: ['1'] },
      { key: 'o', operator: 'In', values: [''] },
    ],
  })
  assert.deepEqual(parseSelector(''), { requirements: [] })
  for (const unread of ['a in b', 'a in (b', 'a b', '=b', '!a=b'])
    assert.deepEqual(parseSelector(unread), { unread })
})

test('a selector is printed in the order of its labels and values', () => {
  const matchExpressions: readonly LabelSelectorRequirement[] = [
    { key: 'c', operator: 'In', values: ['z', 'y'] },
    { key: 'a', operator: 'DoesNotExist' },
    { key: 'd', operator: 'NotIn', values: ['x'] },
    { key: 'e', operator: 'Exists' },
  ]
  assert.equal(selectorText({ matchLabels: { b: '1' }, matchExpressions }), '!a,b=1,c in (y,z),d notin (x),e')
  assert.equal(selectorText({}), '')
})
