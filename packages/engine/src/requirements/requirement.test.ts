import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RequirementOperator } from '@tenon/api'
import {
  anyValue,
  has,
  intersection,
  intersects,
  operatorOf,
  renderValueSet,
  toRequirements,
  type ValueSet,
  valueSet,
} from './requirement.ts'
import { incompatibility, parseRequirements, podRequirements, renderRequirements } from './requirements.ts'

const of = (operator: RequirementOperator, ...values: readonly string[]): ValueSet =>
  valueSet({ key: 'k', operator, values })
const both = (a: ValueSet, b: ValueSet) => renderValueSet(intersection(a, b))
const none: ReadonlySet<string> = new Set()

test('SCH-33 SCH-34 SCH-35 bounds meet in one range', () => {
  assert.equal(both(of('Gt', '4'), of('Gte', '5')), 'k Exists >=5')
  assert.equal(both(of('Gt', '5'), of('Gte', '5')), 'k Exists >=6')
  assert.equal(both(of('Gt', '9'), of('Lt', '1')), 'k DoesNotExist')
  const exact = intersection(of('Gte', '8'), of('Lte', '8'))
  assert.deepEqual(toRequirements(exact), [
    { key: 'k', operator: 'Gte', values: ['8'] },
    { key: 'k', operator: 'Lte', values: ['8'] },
  ])
})

test('SCH-36 SCH-37 what is no integer is outside of every bound', () => {
  assert.ok(!has(of('Gt', '1'), 'A'))
  assert.ok(has(of('Gt', '1'), '2') && !has(of('Gt', '1'), '1'))
  assert.equal(both(of('NotIn', 'A'), of('Gt', '1')), 'k Exists >=2')
  assert.equal(both(of('In', '1', '2', '30', 'x'), of('Lt', '30')), 'k In [1 2]')
})

test('an upper end beyond 64 bits is nothing', () => {
  const set = valueSet({ key: 'k', operator: 'Gt', values: ['9223372036854775807'], minValues: 2 })
  assert.equal(renderValueSet(set), 'k DoesNotExist')
})

test('SCH-38 the larger minValues holds, also when nothing is left', () => {
  const wants = (minValues: number, ...values: readonly string[]) =>
    valueSet({ key: 'k', operator: 'In', values, minValues })
  assert.equal(intersection(wants(1, 'a'), wants(3, 'a')).minValues, 3)
  assert.equal(both(wants(2, 'a'), of('In', 'b')), 'k DoesNotExist minValues 2')
})

test('intersection and intersects agree for every pair of operators', () => {
  const sets = [
    of('In', 'a', '5'),
    of('In', 'b'),
    of('In', '7'),
    of('NotIn', 'a'),
    of('NotIn', '7'),
    of('Exists'),
    of('DoesNotExist'),
    of('Gt', '5'),
    of('Lte', '5'),
    of('Lt', '3'),
  ]
  for (const a of sets) {
    for (const b of sets) {
      const met = intersection(a, b)
      const story = `${renderValueSet(a)} and ${renderValueSet(b)}`
      assert.equal(intersects(a, b), operatorOf(met) !== 'DoesNotExist', story)
      assert.equal(renderValueSet(met), both(b, a), story)
      for (const value of ['a', 'b', '2', '5', '7', '9']) {
        assert.equal(has(met, value), has(a, value) && has(b, value), `${story}: ${value}`)
      }
    }
  }
})

test('one concrete value never is an excluded one, and there is none in an empty range', () => {
  assert.equal(anyValue(of('In', 'b', 'a')), 'a')
  assert.equal(anyValue(of('NotIn', '0', '1')), '2')
  assert.equal(anyValue(of('Gte', '7')), '7')
  assert.equal(anyValue(of('Lt', '0')), undefined)
  assert.equal(anyValue(of('DoesNotExist')), undefined)
})

test('sets are printed in order, and shortened', () => {
  assert.equal(renderValueSet(of('In', 'g', 'f', 'e', 'd', 'c', 'b', 'a')), 'k In [a b c d e and 2 others]')
  const requirements = parseRequirements([
    { key: 'z', operator: 'NotIn', values: ['1'] },
    { key: 'kubernetes.io/hostname', operator: 'In', values: ['h'] },
    { key: 'a', operator: 'Exists', minValues: 2 },
  ])
  assert.equal(renderRequirements(requirements), 'a Exists minValues 2, z NotIn [1]')
})

test('exclusions beside a bound are kept on output', () => {
  assert.deepEqual(toRequirements(intersection(of('NotIn', '7'), of('Gte', '5'))), [
    { key: 'k', operator: 'Gte', values: ['5'] },
    { key: 'k', operator: 'NotIn', values: ['7'] },
  ])
})

test('SCH-30 SCH-31 keys are normalised; what is unknown may only be wanted absent', () => {
  const have = parseRequirements([{ key: 'topology.kubernetes.io/zone', operator: 'In', values: ['a'] }])
  const want = (key: string, operator: RequirementOperator, ...values: readonly string[]) =>
    incompatibility(have, parseRequirements([{ key, operator, values }]), none)?.kind
  assert.equal(want('failure-domain.beta.kubernetes.io/zone', 'In', 'a'), undefined)
  assert.equal(want('failure-domain.beta.kubernetes.io/zone', 'In', 'b'), 'noOverlap')
  assert.equal(want('custom', 'In', 'x'), 'unknownLabel')
  assert.equal(want('custom', 'Exists'), 'unknownLabel')
  assert.equal(want('custom', 'NotIn', 'x'), undefined)
  assert.equal(want('custom', 'DoesNotExist'), undefined)
})

test('the unknown label that is named does not depend on the order in which they are written', () => {
  const want = (...keys: readonly string[]) =>
    parseRequirements(keys.map((key) => ({ key, operator: 'Exists' })))
  for (const keys of [
    ['b', 'a'],
    ['a', 'b'],
  ])
    assert.deepEqual(incompatibility(new Map(), want(...keys), none), { kind: 'unknownLabel', key: 'a' })
})

test('SCH-39 a pod’s first required term and its heaviest preference count', () => {
  const term = (value: string) => ({
    matchExpressions: [{ key: 'k', operator: 'In' as const, values: [value] }],
  })
  const { strict, preferred } = podRequirements({
    containers: [],
    nodeSelector: { s: '1' },
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [term('first'), term('second')],
        },
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 1, preference: { matchExpressions: [{ key: 'p', operator: 'In', values: ['light'] }] } },
          { weight: 9, preference: { matchExpressions: [{ key: 'p', operator: 'In', values: ['heavy'] }] } },
        ],
      },
    },
  })
  assert.equal(renderRequirements(strict), 'k In [first], s In [1]')
  assert.equal(renderRequirements(preferred), 'k In [first], p In [heavy], s In [1]')
})
