import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels } from '@tenon/api'
import {
  anExpression,
  anOffering,
  aPod,
  aPool,
  aPoolInput,
  aType,
  soldAs,
} from '../testing/builders.test-support.ts'
import { mayBeApproved, verdictsOn } from './balanced.ts'
import { consolidate, moves, scores } from './consolidation.test-support.ts'
import type { CandidateInput, PoolTotals } from './question.ts'

const candidate = (rest: Partial<CandidateInput> = {}): CandidateInput => ({
  node: 'node',
  nodePool: 'a',
  policy: 'Balanced',
  capacityType: 'on-demand',
  instanceType: 'type',
  pricePerHour: 1,
  disruptionCost: 1,
  capacity: {},
  pods: [],
  ...rest,
})

const pool = (cost: number, disruption: number): ReadonlyMap<string, PoolTotals> =>
  new Map([['a', { cost, disruption }]])

function verdictOn(savings: number, disruptionCost: number, totals: ReadonlyMap<string, PoolTotals>) {
  const [verdict] = verdictsOn([candidate({ disruptionCost })], savings, totals)
  assert.ok(verdict)
  return verdict
}

test('DIS-124 a move is approved when its share of the savings is at least half its share of the disruption', () => {
  const totals = pool(58.08, 90)
  const isApproved = (savings: number, cost: number) => verdictOn(savings, cost, totals).isApproved
  assert.equal(isApproved(7.26, 4), true)
  assert.equal(isApproved(4.84, 5), true)
  assert.equal(isApproved(2.42, 9), false)
  assert.equal(isApproved(0, 4), false)
})

test('DIS-125 a score of half is enough', () => {
  const { score, isApproved } = verdictOn(2.42, 9, pool(48.4, 90))
  assert.ok(Math.abs(score - 0.5) < 1e-9)
  assert.equal(isApproved, true)
})

test('DIS-126 the same move scores the same in a pool ten times as large', () => {
  const once = verdictOn(7.26, 4, pool(58.08, 90)).score
  const tenfold = verdictOn(72.6, 40, pool(580.8, 900)).score
  assert.ok(Math.abs(once - tenfold) < 1e-9)
})

test('DIS-127 nothing saved scores nothing, nothing disturbed scores everything, a pool without price rejects', () => {
  const totals = pool(10, 10)
  assert.deepEqual([verdictOn(-1, 1, totals).score, verdictOn(0, 1, totals).score], [0, 0])
  const free = verdictOn(1, 0, totals)
  assert.deepEqual([free.score, free.isApproved], [Number.POSITIVE_INFINITY, true])
  assert.equal(verdictOn(1, 1, pool(0, 10)).isApproved, false)
})

test('DIS-128 of two Balanced pools one rejects: the move is rejected, and both are told', () => {
  const totals = new Map([...pool(2, 10), ['b', { cost: 100, disruption: 10 }] as const])
  const verdicts = verdictsOn([candidate(), candidate({ node: 'other', nodePool: 'b' })], 1, totals)
  assert.deepEqual(
    verdicts.map(({ nodePool, isApproved }) => [nodePool, isApproved]),
    [
      ['a', true],
      ['b', false],
    ],
  )
})

test('DIS-129 savings are split by price, and only Balanced pools have a say', () => {
  const totals = new Map([...pool(10, 10), ['b', { cost: 1000, disruption: 1 }] as const])
  const plain = candidate({ nodePool: 'b', policy: 'WhenEmptyOrUnderutilized', pricePerHour: 3 })
  const [balanced, other] = verdictsOn([candidate(), plain], 2, totals)
  assert.equal(balanced?.savingsFraction, 0.5 / 10)
  assert.equal(balanced?.isApproved, true)
  assert.equal(other?.score, 1.5 / 1000)
  assert.equal(other?.isApproved, true)
})

test('DIS-130 a pool whose totals are not known rejects', () => {
  const verdict = verdictOn(5, 1, new Map())
  assert.deepEqual([verdict.score, verdict.isApproved], [0, false])
})

test('DIS-131 the removal of the only node of a pool scores one', () => {
  const [verdict] = verdictsOn([candidate({ pricePerHour: 3, disruptionCost: 4 })], 3, pool(3, 4))
  assert.deepEqual([verdict?.score, verdict?.isApproved], [1, true])
})

test('DIS-132 a pool that may only buy on-demand saves what on-demand costs less', () => {
  const offer = soldAs(aType('offer', 4, 16), anOffering('spot', 0.01), anOffering('on-demand', 0.3))
  const type = aType('large', 8, 32)
  const nodePool = aPool(
    'default',
    {},
    {
      requirements: [anExpression(labels.capacityType, 'In', 'on-demand')],
    },
  )
  const result = consolidate('single', {
    pools: [aPoolInput(nodePool, [offer, type])],
    instances: { here: { type, policy: 'Balanced', pods: [aPod()] } },
    totals: { default: { cost: 0.4, disruption: 4 } },
  })
  assert.deepEqual(moves(result), [[['here'], ['offer']]])
  const [verdict] = scores(result)[0]?.verdicts ?? []
  assert.ok(Math.abs((verdict?.savingsFraction ?? 0) - 0.1 / 0.4) < 1e-9)
})

test('DIS-133 a node whose removal would score too little is not looked at', () => {
  const type = aType('large', 8, 32)
  const here = { type, policy: 'Balanced', pods: [aPod()] } as const
  const result = consolidate('single', {
    instances: { here, there: { type, stays: true } },
    totals: { default: { cost: 100, disruption: 4 } },
  })
  assert.deepEqual([result.moves, result.findings], [[], []])
  assert.equal(mayBeApproved(candidate(), new Map()), true)
  assert.equal(mayBeApproved(candidate(), pool(0, 4)), true)
  assert.equal(mayBeApproved(candidate({ policy: 'WhenEmptyOrUnderutilized' }), pool(1000, 4)), true)
})

test('nodes that may not go count in the disruption that a move is weighed against', () => {
  const type = aType('large', 8, 32)
  const instances = {
    here: { type, policy: 'Balanced', pods: [aPod(), aPod(), aPod()] },
    there: { type, stays: true },
  } as const
  const search = (disruption: number) =>
    consolidate('single', { instances, totals: { default: { cost: 4, disruption } } })
  assert.deepEqual(moves(search(20)), [[['here']]])
  assert.deepEqual(moves(search(16)), [])
})
