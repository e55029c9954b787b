import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type InstanceType, labels } from '@tenon/api'
import {
  anOffering,
  aPod,
  aPool,
  aPoolInput,
  aType,
  soldAs,
  times,
  valuesOn,
} from '../testing/builders.test-support.ts'
import { consolidate, type Instance, moves, scores } from './consolidation.test-support.ts'

/** A type of `cpu` cores that is sold as spot, and as on-demand for twice as much. */
function spotType(name: string, cpu: number, spot: number): InstanceType {
  return soldAs(aType(name, cpu, cpu * 4), anOffering('spot', spot), anOffering('on-demand', 2 * spot))
}

const requireMoney = (actual: number | undefined, expected: number) =>
  assert.ok(Math.abs((actual ?? 0) - expected) < 1e-9, `${actual} is not ${expected}`)

test('DIS-96 two spot nodes give way to one although there are fewer than 15 types to choose from', () => {
  const types = [spotType('half', 4, 0.1), spotType('whole', 8, 0.15)]
  const instance = { type: types[0]!, capacityType: 'spot', pods: [aPod({ cpu: '3' })] }
  const story = {
    types,
    spotToSpot: true,
    instances: { a: instance, b: { ...instance, pods: [aPod({ cpu: '3' })] } },
  }
  const result = consolidate('multi', story)
  assert.deepEqual(moves(result), [[['a', 'b'], ['whole']]])
  assert.deepEqual(valuesOn(result.moves[0]?.claims[0], labels.capacityType), ['spot'])
  assert.deepEqual(moves(consolidate('multi', { ...story, spotToSpot: false })), [])
})

test('DIS-97 spot and on-demand nodes together give way to one cheaper node', () => {
  const types = [spotType('part', 4, 0.1), spotType('whole', 12, 0.2)]
  const instance = (capacityType: string): Instance => ({
    type: types[0]!,
    capacityType,
    pods: [aPod({ cpu: '3' })],
  })
  const result = consolidate('multi', {
    types,
    instances: { a: instance('spot'), b: instance('on-demand'), c: instance('spot') },
  })
  assert.deepEqual(moves(result), [[['a', 'b', 'c'], ['whole']]])
  requireMoney(result.moves[0]?.savings, 0.2)
})

test('DIS-98 of two of the cheapest nodes the one with fewer pods goes, and nothing is launched', () => {
  const type = aType('cheapest', 4, 16)
  const story = {
    types: [type, aType('dearer', 8, 32)],
    instances: {
      a: { type, pods: [aPod(), aPod()] },
      b: { type, pods: [aPod()] },
    },
  }
  assert.deepEqual(moves(consolidate('multi', story)), [])
  assert.deepEqual(moves(consolidate('single', story)), [[['b']]])
})

const nano = aType('nano', 2, 16)
const small = aType('small', 4, 16)
const extra = aType('xl', 16, 64)
const double = aType('2xl', 32, 128)

/** Two large nodes and a small one, with pods that fit any type. */
const trio = {
  a: { type: double, pods: [aPod({ cpu: '500m' })] },
  b: { type: double, pods: [aPod({ cpu: '500m' })] },
  c: { type: small, pods: [aPod({ cpu: '500m' })], disruptionCost: 9 },
} satisfies Readonly<Record<string, Instance>>

test('DIS-99 a replacement is cheaper than the cheapest removed node of a type it could be', () => {
  const goes = consolidate('multi', { types: [nano, small, extra], instances: trio })
  assert.deepEqual(moves(goes), [[['a', 'b', 'c'], ['nano']]])
  const stays = consolidate('multi', { types: [small, extra], instances: trio })
  assert.deepEqual(moves(stays), [[['a', 'b']]])
  assert.equal(stays.findings.filter(({ kind }) => kind === 'possible').length, 0)
})

test('DIS-175 savings are those of the types that are left', () => {
  // The cheapest in one zone, and as dear as the removed node in the other.
  const uneven = soldAs(
    aType('uneven', 4, 16),
    anOffering('on-demand', 0.05),
    anOffering('on-demand', 0.2, 'zone-2'),
  )
  const c = { ...trio.c, type: uneven, zone: 'zone-2' }
  const result = consolidate('multi', { types: [uneven, nano], instances: { ...trio, c } })
  assert.deepEqual(moves(result), [[['a', 'b', 'c'], ['nano']]])
  requireMoney(result.moves[0]?.savings, 1.6 + 1.6 + 0.2 - 0.1)
})

test('DIS-100 types that are left without minValues spoil their set of nodes, not a smaller search', () => {
  const least = aPool(
    'default',
    {},
    {
      requirements: [{ key: labels.instanceType, operator: 'Exists', minValues: 2 }],
    },
  )
  const full = (instance: Instance): Instance => ({
    ...instance,
    node: { available: {} },
  })
  const instances = { a: full(trio.a), b: full(trio.b), c: full(trio.c) }
  const story = { pools: [aPoolInput(least, [nano, small, extra])], instances }
  assert.deepEqual(moves(consolidate('multi', story)), [
    [
      ['a', 'b'],
      ['nano', 'small', 'xl'],
    ],
  ])
  const pair = consolidate('multi', { ...story, instances: { b: instances.b, c: instances.c } })
  assert.deepEqual(moves(pair), [])
  const single = consolidate('single', { ...story, instances: { b: instances.b, c: instances.c } })
  assert.deepEqual(moves(single), [[['b'], ['nano', 'small', 'xl']]])
})

test('DIS-114 ten nodes with small pods: a budget of 3 lets 3 go at once', () => {
  const type = aType('big', 8, 32)
  const instances = Object.fromEntries(
    times(10, (index) => [`node-${index}`, { type, pods: [aPod()] }] as const),
  )
  const result = consolidate('multi', { instances, budgets: { default: 3 } })
  assert.deepEqual(moves(result), [[['node-0', 'node-1', 'node-2']]])
  assert.equal(result.isLimitedByBudget, true)
})

test('DIS-115 when no set of nodes fits elsewhere, single still moves one at a time, within the budget', () => {
  const type = aType('big', 4, 16)
  const story = {
    instances: {
      a: { type, pods: [aPod({ cpu: '2' })] },
      b: { type, pods: [aPod({ cpu: '2' })] },
      c: { type, pods: [aPod({ cpu: '3900m' })] },
    },
  }
  assert.deepEqual(moves(consolidate('multi', story)), [])
  assert.deepEqual(moves(consolidate('single', story)), [[['a']]])
  const closed = consolidate('single', { ...story, budgets: { default: 0 } })
  assert.deepEqual(moves(closed), [])
  assert.equal(closed.isLimitedByBudget, true)
})

test('DIS-116 of 250 nodes no set is larger than 101', () => {
  const type = aType('big', 4, 16)
  const instances: Record<string, Instance> = Object.fromEntries(
    times(250, (index) => [`node-${index}`, { type, pods: [aPod({ cpu: '1m' })] }] as const),
  )
  const result = consolidate('multi', { instances })
  assert.equal(result.moves[0]?.candidates.length, 101)
})

test('after the deadline multi looks at nothing and says so', () => {
  const type = aType('big', 8, 32)
  const instances = { a: { type, pods: [aPod()] }, b: { type, pods: [aPod()] }, c: { type, pods: [aPod()] } }
  const result = consolidate('multi', { instances, shouldStop: () => true })
  assert.deepEqual(moves(result), [])
  assert.deepEqual(result.findings, [])
  assert.equal(result.isTimedOut, true)
})

test('a deadline after the first set leaves what was found by then', () => {
  const type = aType('big', 8, 32)
  const instances = Object.fromEntries(
    times(8, (index) => [`node-${index}`, { type, pods: [aPod()] }] as const),
  )
  let questions = 0
  const result = consolidate('multi', { instances, shouldStop: () => ++questions > 1 })
  assert.equal(result.isTimedOut, true)
  assert.equal(result.moves[0]?.candidates.length, 5)
})

test('of a set that one of two Balanced pools rejects both pools are told, each with its own verdict', () => {
  const type = aType('big', 8, 32)
  const pools = ['a', 'b'].map((name) => aPoolInput(aPool(name), [type]))
  const instance = (pool: string, disruptionCost: number): Instance => ({
    type,
    pool,
    policy: 'Balanced',
    pods: [aPod()],
    disruptionCost,
  })
  const instances = { one: instance('a', 2), two: instance('b', 40), host: { type, pool: 'a', stays: true } }
  const totals = { a: { cost: 4, disruption: 20 }, b: { cost: 4, disruption: 44 } }
  const result = consolidate('multi', { pools, instances, totals })
  assert.deepEqual(moves(result), [])
  const [scored, ...more] = scores(result)
  assert.deepEqual(more, [])
  assert.equal(scored?.isApproved, false)
  assert.deepEqual(
    scored?.verdicts.map(({ nodePool, isApproved }) => [nodePool, isApproved]),
    [
      ['a', true],
      ['b', false],
    ],
  )
})

test('DIS-170 a deadline after sets that the score rejects leaves nothing to count', () => {
  const type = aType('big', 8, 32)
  const instances: Record<string, Instance> = Object.fromEntries(
    times(8, (index) => [`node-${index}`, { type, policy: 'Balanced', pods: [aPod()] }] as const),
  )
  const totals = { default: { cost: 100, disruption: 16 } }
  let questions = 0
  const result = consolidate('multi', { instances, totals, shouldStop: () => ++questions > 1 })
  assert.equal(result.isTimedOut, true)
  assert.deepEqual(scores(result), [])
  assert.equal(scores(consolidate('multi', { instances, totals })).length, 1)
})
