/** Laws that hold of any value sets (scheduling.md 4). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RequirementOperator } from '@tenon/api'
import * as fc from 'fast-check'
import {
  allowsAbsence,
  anyValue,
  has,
  intersection,
  intersects,
  operatorOf,
  toRequirements,
  type ValueSet,
  valueSet,
} from './requirement.ts'
import {
  compatible,
  conflictsOf,
  incompatibility,
  overlaps,
  type Requirements,
  requirementsOf,
} from './requirements.ts'

const values = [
  'a',
  'B',
  '',
  '-3',
  '-1',
  '0',
  '1',
  '2',
  '3',
  '5',
  '007',
  '+2',
  '99999999999999999999',
] as const
const bounds = ['-2', '-1', '0', '1', '2', '3', '4', '9223372036854775807', '-9223372036854775808'] as const

function sets(keys: readonly string[] = ['k']): fc.Arbitrary<ValueSet> {
  const listed = fc.record(
    {
      key: fc.constantFrom(...keys),
      operator: fc.constantFrom<RequirementOperator>('In', 'NotIn', 'Exists', 'DoesNotExist'),
      values: fc.uniqueArray(fc.constantFrom(...values), { maxLength: 4 }),
      minValues: fc.integer({ min: 1, max: 3 }),
    },
    { requiredKeys: ['key', 'operator', 'values'] },
  )
  const bounded = fc.record({
    key: fc.constantFrom(...keys),
    operator: fc.constantFrom<RequirementOperator>('Gt', 'Gte', 'Lt', 'Lte'),
    values: fc.tuple(fc.constantFrom(...bounds, 'malformed')),
  })
  const single = fc.oneof(listed, bounded).map(valueSet)
  return fc.array(single, { minLength: 1, maxLength: 3 }).map((some) => some.reduce(onSameKey))
}

function onSameKey(a: ValueSet, b: ValueSet): ValueSet {
  return a.key === b.key ? intersection(a, b) : a
}

const severalKeys: fc.Arbitrary<Requirements> = fc
  .array(sets(['a', 'b', 'c']), { maxLength: 4 })
  .map((some) => requirementsOf(some))

const runs = { seed: 42, numRuns: 3000 }

test('a value is in an intersection when it is in both sets', () => {
  fc.assert(
    fc.property(sets(), sets(), (a, b) => {
      const met = intersection(a, b)
      for (const value of [...values, ...bounds]) {
        assert.equal(has(met, value), has(a, value) && has(b, value), value)
      }
    }),
    runs,
  )
})

test('intersection does not depend on order or grouping', () => {
  fc.assert(
    fc.property(sets(), sets(), sets(), (a, b, c) => {
      assert.deepEqual(intersection(a, b), intersection(b, a))
      assert.deepEqual(intersection(intersection(a, b), c), intersection(a, intersection(b, c)))
    }),
    runs,
  )
})

test('two sets intersect when their intersection is not DoesNotExist', () => {
  fc.assert(
    fc.property(sets(), sets(), (a, b) => {
      assert.equal(intersects(a, b), operatorOf(intersection(a, b)) !== 'DoesNotExist')
    }),
    runs,
  )
})

test('the operator of a set says whether it is content without the label', () => {
  fc.assert(
    fc.property(sets(), (set) => {
      const isContent = ['NotIn', 'DoesNotExist'].includes(operatorOf(set)) && set.required !== true
      assert.equal(allowsAbsence(set), isContent)
    }),
    runs,
  )
})

test('the value picked from a set is in it, and none is picked when no number is', () => {
  fc.assert(
    fc.property(sets(), (set) => {
      const value = anyValue(set)
      if (value !== undefined) assert.ok(has(set, value))
      else for (let number = 0; number < 20; number++) assert.ok(!has(set, `${number}`))
    }),
    runs,
  )
})

test('a set comes back from its API form', () => {
  fc.assert(
    fc.property(sets(), (set) => {
      // The empty range of a malformed bound becomes DoesNotExist when its two ends meet again.
      fc.pre(set.gte === undefined || set.lte === undefined || set.gte <= set.lte)
      // Nothing in the API says that a label must be there and can have no value.
      fc.pre(set.complement || set.values.size > 0 || set.required !== true)
      assert.deepEqual(toRequirements(set).map(valueSet).reduce(intersection), set)
    }),
    runs,
  )
})

test('the quick answers on several keys are those of the reasons', () => {
  fc.assert(
    fc.property(severalKeys, severalKeys, fc.subarray(['a', 'b', 'c']), (have, want, keys) => {
      const mayBeUndefined = new Set(keys)
      const why = incompatibility(have, want, mayBeUndefined)
      assert.equal(compatible(have, want, mayBeUndefined), why === undefined)
      assert.equal(overlaps(have, want), conflictsOf(have, want).length === 0)
      assert.equal(overlaps(have, want), overlaps(want, have))
      if (why?.kind === 'noOverlap') assert.deepEqual(why.conflicts, conflictsOf(have, want))
    }),
    runs,
  )
})
