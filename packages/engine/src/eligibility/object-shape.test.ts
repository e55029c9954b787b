import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LabelSelectorRequirement } from '@tenon/api'
import { invalidObjectFields } from './object-shape.ts'

test('RPT-39 a PDB whose selector nobody can evaluate is told, with what is wrong with it', () => {
  const problemsOf = (...matchExpressions: readonly LabelSelectorRequirement[]) =>
    invalidObjectFields('PodDisruptionBudget', {
      metadata: { name: 'odd', namespace: 'default' },
      spec: { selector: { matchExpressions } },
    }).map(({ field, expected }) => `${field} must be ${expected}`)
  const at = 'spec.selector.matchExpressions[0]'
  assert.deepEqual(
    problemsOf(
      { key: 'app', operator: 'Exists' },
      { key: 'app', operator: 'DoesNotExist', values: [] },
      { key: 'app', operator: 'In', values: ['a'] },
      { key: 'app', operator: 'NotIn', values: ['a', 'b'] },
    ),
    [],
  )
  assert.deepEqual(problemsOf({ key: 'app', operator: 'NotIn' }), [
    `${at} must be given at least one of values with operator NotIn`,
  ])
  assert.deepEqual(problemsOf({ key: 'app', operator: 'Exists', values: ['a'] }), [
    `${at} must be left without values with operator Exists`,
  ])
  assert.deepEqual(problemsOf({ key: 'app', operator: 'Like' as 'In', values: ['a'] }), [
    `${at}.operator must be one of In, NotIn, Exists, DoesNotExist`,
  ])
})
