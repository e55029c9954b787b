import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Requirement } from './instance-types.ts'
import { admitsValue } from './requirement-values.ts'

test('each operator admits the values it names', () => {
  const admitted = (operator: Requirement['operator'], ...values: string[]) =>
    ['1', '2', '3', 'a'].filter((value) => admitsValue({ key: 'k', operator, values }, value))
  assert.deepEqual(admitted('In', '1', 'a'), ['1', 'a'])
  assert.deepEqual(admitted('NotIn', '1', 'a'), ['2', '3'])
  assert.deepEqual(admitted('Exists'), ['1', '2', '3', 'a'])
  assert.deepEqual(admitted('DoesNotExist'), [])
  assert.deepEqual(admitted('Gt', '2'), ['3'])
  assert.deepEqual(admitted('Gte', '2'), ['2', '3'])
  assert.deepEqual(admitted('Lt', '2'), ['1'])
  assert.deepEqual(admitted('Lte', '2'), ['1', '2'])
})
