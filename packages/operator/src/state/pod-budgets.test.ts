import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LabelSelector, LabelSelectorRequirement, PodDisruptionBudget } from '@tenon/api'
import { unreadableBudget } from './pod-budgets.ts'

function aBudget(name: string, selector: LabelSelector): PodDisruptionBudget {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'default' },
    spec: { selector },
  }
}

test('a PDB whose selector nobody can read is named, with what is wrong with it', () => {
  const problemOf = (...expressions: readonly LabelSelectorRequirement[]) =>
    unreadableBudget([aBudget('fine', {}), aBudget('odd', { matchExpressions: expressions })])
  const start = 'PodDisruptionBudget default/odd: spec.selector.matchExpressions, key app: '
  assert.equal(problemOf(), undefined)
  assert.equal(
    problemOf(
      { key: 'app', operator: 'Exists' },
      { key: 'app', operator: 'DoesNotExist', values: [] },
      { key: 'app', operator: 'In', values: ['a'] },
      { key: 'app', operator: 'NotIn', values: ['a', 'b'] },
    ),
    undefined,
  )
  assert.equal(
    problemOf({ key: 'ok', operator: 'Exists' }, { key: 'app', operator: 'NotIn' }),
    `${start}operator NotIn needs at least one of values`,
  )
  assert.equal(
    problemOf({ key: 'app', operator: 'Exists', values: ['a'] }),
    `${start}operator Exists takes no values`,
  )
  assert.equal(
    problemOf({ key: 'app', operator: 'Like' as 'In', values: ['a'] }),
    `${start}operator "Like" is none of In, NotIn, Exists, DoesNotExist`,
  )
})
