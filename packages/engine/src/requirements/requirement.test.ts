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
import {
  compatible,
  incompatibility,
  overlaps,
  parseRequirements,
  podRequirements,
  renderRequirements,
} from './requirements.ts'

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

test('SCH-36 SCH-37 what is not an integer is outside of every bound', () => {
  assert.ok(!has(of('Gt', '1'), 'A'))
  assert.ok(has(of('Gt', '1'), '2') && !has(of('Gt', '1'), '1'))
  assert.equal(both(of('NotIn', 'A'), of('Gt', '1')), 'k Exists >=2')
  assert.equal(both(of('In', '1', '2', '30', 'x'), of('Lt', '30')), 'k In [1 2]')
})

test('an upper end beyond 64 bits is nothing', () => {
  const set = valueSet({ key: 'k', operator: 'Gt', values: ['9223372036854775807'], minValues: 2 })
  assert.equal(renderValueSet(set), 'k DoesNotExist')
})

test('a bound that is not one integer is met by nothing, and by no missing label either', () => {
  for (const values of [['x'], ['1.5'], [''], [], ['1', '2'], ['9223372036854775808']]) {
    for (const operator of ['Gt', 'Gte', 'Lt', 'Lte'] as const) {
      const set = of(operator, ...values)
      const story = `${operator} ${values.join(' ')}`
      assert.ok(!has(set, '0') && !has(set, '1') && !has(set, 'x'), story)
      assert.equal(anyValue(set), undefined, story)
      assert.ok(!compatible(new Map(), new Map([['k', set]]), none), story)
      assert.ok(!compatible(new Map([['k', of('DoesNotExist')]]), new Map([['k', set]]), none), story)
    }
  }
})

test('bounds below zero admit no label that could be picked', () => {
  assert.equal(renderValueSet(of('Lt', '0')), 'k Exists <=-1')
  assert.ok(has(of('Lt', '0'), '-1') && !has(of('Lt', '0'), '0'))
  assert.equal(both(of('Lt', '-2'), of('Gte', '-3')), 'k Exists >=-3 <=-3')
  assert.equal(both(of('Lt', '0'), of('Gt', '-1')), 'k DoesNotExist')
  assert.equal(anyValue(intersection(of('Gt', '-5'), of('Lt', '5'))), '0')
  assert.equal(anyValue(intersection(of('Gte', '1'), of('Lte', '0'))), undefined)
})

test('a value is picked from an open range at once', () => {
  const excluded = of('NotIn', ...Array.from({ length: 500 }, (_, i) => String(i)))
  assert.equal(anyValue(excluded), '500')
  assert.equal(anyValue(of('Gte', '9223372036854775807')), '9223372036854775807')
  assert.equal(anyValue(intersection(excluded, of('Lt', '500'))), undefined)
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
  assert.equal(both(of('NotIn', '9', '5'), of('Lte', '9')), 'k NotIn [5 9] <=9')
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

test('an unknown label comes with the known one that may have been meant', () => {
  const wellKnown = new Set(['topology.kubernetes.io/zone', 'example.com/zone', 'kubernetes.io/arch'])
  const own = parseRequirements([{ key: 'team.example.com/tier', operator: 'In', values: ['1'] }])
  const hint = (key: string, known: ReadonlySet<string> = wellKnown) => {
    const found = incompatibility(own, parseRequirements([{ key, operator: 'Exists' }]), known)
    return found?.kind === 'unknownLabel' ? found.hint : 'not unknown'
  }
  assert.equal(hint('zone'), 'example.com/zone')
  assert.equal(hint('topology.k8s.io/zone'), 'example.com/zone')
  assert.equal(hint('topology.kubernetes'), 'topology.kubernetes.io/zone')
  assert.equal(hint('other.com/tier'), 'team.example.com/tier')
  assert.equal(hint('zone', none), undefined)
  assert.equal(hint('colour'), undefined)
})

test('every key in conflict is reported, in order; absence on both sides is none', () => {
  const list = (...parts: readonly (readonly [string, RequirementOperator, ...string[]])[]) =>
    parseRequirements(parts.map(([key, operator, ...values]) => ({ key, operator, values })))
  const have = list(['c', 'In', '1'], ['b', 'DoesNotExist'], ['a', 'In', '1'], ['d', 'In', '1'])
  const want = list(['c', 'In', '2'], ['b', 'NotIn', 'x'], ['a', 'DoesNotExist'], ['d', 'In', '1', '2'])
  const found = incompatibility(have, want, none)
  assert.deepEqual(
    found?.kind === 'noOverlap' &&
      found.conflicts.map((conflict) => [renderValueSet(conflict.have), renderValueSet(conflict.want)]),
    [
      ['a In [1]', 'a DoesNotExist'],
      ['c In [1]', 'c In [2]'],
    ],
  )
  assert.ok(!compatible(have, want, none) && !overlaps(have, want))
  assert.ok(overlaps(list(['x', 'In', '1']), list(['y', 'In', '1'])))
})

test('a pod’s first required term and its heaviest preference count', () => {
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
