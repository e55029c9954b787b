/** Reserved capacity: one claim, one unit, and waiting for the next loop (scheduling.md 11.1, 16). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels, type NodePool, type Offering, type Pod } from '@tenon/api'
import type { PoolInput, SchedulingInput, SchedulingPolicy } from '../../input/input.ts'
import {
  anExpression,
  anInput,
  anOffering,
  aPod,
  aPool,
  aPoolInput,
  aType,
  failureTexts,
  podNames,
  preferring,
  requirementsOn,
  soldAs,
  strictPolicy,
  times,
} from '../../testing/builders.test-support.ts'
import { nextLoop } from '../../testing/next-loop.test-support.ts'
import { schedule } from '../schedule.ts'

const reservationId = 'example.com/reservation-id'

const policy: SchedulingPolicy = {
  ...strictPolicy,
  wellKnownLabels: new Set([...strictPolicy.wellKnownLabels, reservationId]),
  reservations: { label: reservationId, mode: 'Strict' },
}

function reserved(id: string, reservationCapacity: number): Offering {
  const offering = anOffering('reserved', 0.000_001, 'zone-1', { reservationCapacity })
  const requirements = [
    ...offering.requirements,
    { key: reservationId, operator: 'In' as const, values: [id] },
  ]
  return { ...offering, requirements }
}

function unreserved(capacityType: string, pricePerHour: number): Offering {
  const offering = anOffering(capacityType, pricePerHour)
  const none = { key: reservationId, operator: 'DoesNotExist' as const }
  return { ...offering, requirements: [...offering.requirements, none] }
}

/** Eight cores, on demand and from these reservations. */
function reservable(name: string, capacities: Readonly<Record<string, number>>): InstanceType {
  return soldAs(
    aType(name, 8, 32),
    unreserved('on-demand', 0.4),
    ...Object.entries(capacities).map(([id, capacity]) => reserved(id, capacity)),
  )
}

const poolOf = (nodePool: NodePool, ...types: readonly InstanceType[]): PoolInput =>
  aPoolInput(nodePool, types)

/** A pod too large to share a node of eight cores. */
const large = (pool?: string): Pod =>
  aPod({ cpu: '5' }, pool === undefined ? {} : { nodeSelector: { [labels.nodePool]: pool } })

/** What each loop launches, until nothing is left or `most` loops have run. */
function loops(start: SchedulingInput, most: number): readonly (readonly (readonly string[])[])[] {
  const launched: (readonly (readonly string[])[])[] = []
  for (let input = start; input.pods.length > 0 && launched.length < most; ) {
    const result = schedule(input)
    assert.deepEqual(result.placements, [])
    launched.push(result.claims.map((claim) => claim.reservationIds))
    input = nextLoop(input, result)
  }
  return launched
}

describe('using reservations', () => {
  test('SCH-133 one claim a loop holds the units of every type, the last is not reserved', () => {
    const pool = poolOf(aPool(), reservable('a', { 'r-1': 1 }), reservable('b', { 'r-2': 1 }))
    const input = anInput({ pods: times(3, () => large()), pools: [pool], policy })
    const launched = loops(input, 5)
    assert.equal(launched.length, 3)
    const [first = [], second = [], third = []] = launched
    assert.deepEqual(first, [['r-1', 'r-2']])
    assert.deepEqual(
      second.map((ids) => ids.length),
      [1],
    )
    assert.deepEqual(third, [[]])
  })

  test('SCH-166 reservations of one and of two units last for three of four pods', () => {
    const pool = poolOf(aPool(), reservable('a', { 'r-1': 1, 'r-2': 2 }))
    const launched = loops(anInput({ pods: times(4, () => large()), pools: [pool], policy }), 5)
    assert.deepEqual(
      launched.map((claims) => claims.map((ids) => ids.length > 0)),
      [[true, true], [true], [false]],
    )
    assert.deepEqual(
      launched[0]?.map((ids) => ids.length).toSorted((a, b) => a - b),
      [1, 2],
    )
  })

  test('SCH-168 two pods that fit one reserved claim need one unit', () => {
    const pool = poolOf(aPool(), reservable('a', { 'r-1': 1 }))
    const pods = times(2, () => aPod({ cpu: '3' }))
    const { claims, failures } = schedule(anInput({ pods, pools: [pool], policy }))
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => [podNames(claim.pods), claim.reservationIds]),
      [[podNames(pods), ['r-1']]],
    )
  })

  test('SCH-167 pods of two pools with reservations of their own are placed in one loop', () => {
    const pools = [
      poolOf(aPool('blue'), reservable('a', { 'r-blue': 1 })),
      poolOf(aPool('red'), reservable('a', { 'r-red': 1 })),
    ]
    const { claims, failures } = schedule(anInput({ pods: [large('blue'), large('red')], pools, policy }))
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => [claim.nodePool, claim.reservationIds]),
      [
        ['blue', ['r-blue']],
        ['red', ['r-red']],
      ],
    )
  })

  test('SCH-137 a reserved claim says so in its requirements, with the ids, even beside cheaper spot', () => {
    const a = reservable('a', { 'r-2': 1 })
    const types = [soldAs(a, ...a.offerings, unreserved('spot', 0)), reservable('b', { 'r-1': 3 })]
    const least = { key: labels.capacityType, operator: 'Exists' as const, minValues: 1 }
    const pool = poolOf(aPool('default', {}, { requirements: [least] }), ...types)
    const { claims, failures } = schedule(anInput({ pods: [large()], pools: [pool], policy }))
    assert.deepEqual(failures, [])
    assert.equal(claims.length, 1)
    const [claim] = claims
    assert.deepEqual(requirementsOn(claim, labels.capacityType), [
      { key: labels.capacityType, operator: 'In', values: ['reserved'] },
    ])
    assert.deepEqual(requirementsOn(claim, reservationId), [
      { key: reservationId, operator: 'In', values: ['r-1', 'r-2'] },
    ])
    assert.deepEqual(claim?.reservationIds, ['r-1', 'r-2'])
    assert.equal(claim?.pricePerHour, 0.000_001)
  })
})

describe('waiting for a reservation', () => {
  /** The one claim that could be had, and the pod that waits for the next loop. */
  function assertOneWaits(pods: readonly Pod[], pools: readonly PoolInput[], expectedPool?: string): void {
    const result = schedule(anInput({ pods, pools, policy }))
    assert.deepEqual(
      result.claims.map((claim) => [claim.pods.length, claim.reservationIds]),
      [[1, ['r-1']]],
    )
    if (expectedPool !== undefined) assert.equal(result.claims[0]?.nodePool, expectedPool)
    const texts = Object.values(failureTexts(result))
    assert.equal(texts.length, 1)
    assert.match(texts[0] ?? '', /reserv/)
  }

  test('SCH-134 a reservation of one unit that two pools share places one pod a loop', () => {
    const pools = ['blue', 'red'].map((name) => poolOf(aPool(name), reservable('a', { 'r-1': 1 })))
    assertOneWaits([large('blue'), large('red')], pools)
  })

  test('a reservation counts with the smallest capacity that any offering states', () => {
    const pools = [
      poolOf(aPool('blue'), reservable('a', { 'r-1': 3 })),
      poolOf(aPool('red'), reservable('a', { 'r-1': 1 })),
    ]
    assertOneWaits([large('blue'), large('blue')], pools, 'blue')
  })

  test('SCH-135 a reservation used up in the first pool keeps pods from falling back to the next', () => {
    const pools = [
      poolOf(aPool('first', { weight: 10 }), reservable('a', { 'r-1': 1 })),
      poolOf(aPool('rest'), aType('plain', 16, 64)),
    ]
    assertOneWaits([large(), large()], pools, 'first')
  })

  test('SCH-136 a preference for the pool of a used-up reservation is not given up', () => {
    const pools = [
      poolOf(aPool('first', { weight: 10 }), aType('plain', 8, 32)),
      poolOf(aPool('liked'), reservable('a', { 'r-1': 1 })),
    ]
    const demand = preferring([1, anExpression(labels.nodePool, 'In', 'liked')])
    assertOneWaits(
      times(2, () => aPod({ cpu: '5' }, demand)),
      pools,
      'liked',
    )
  })

  test('in Fallback mode nobody waits: what finds no unit is bought otherwise', () => {
    const pool = poolOf(aPool(), reservable('a', { 'r-1': 1 }))
    const { claims, failures } = schedule(
      anInput({
        pods: times(2, () => large()),
        pools: [pool],
        policy: { ...policy, reservations: { label: reservationId, mode: 'Fallback' } },
      }),
    )
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => claim.reservationIds),
      [['r-1'], []],
    )
  })
})

test('RPT-49 the price of a plan counts the reservations that its claims hold, and no others', () => {
  const type = (name: string, ...offerings: readonly Offering[]) =>
    soldAs(aType(name, 8, 32), unreserved('on-demand', 0.4), ...offerings)
  const pool = poolOf(
    aPool(),
    type('one', { ...reserved('cheap', 1), pricePerHour: 0.1 }),
    type('two', { ...reserved('dear', 1), pricePerHour: 0.3 }),
  )
  const pod = (name: string) => aPod({ cpu: '5' }, { nodeSelector: { [labels.instanceType]: name } })
  for (const improvement of [undefined, 'planned', 'free'] as const) {
    const { claims, pricePerHour, firstFitPricePerHour } = schedule(
      anInput({
        pods: [pod('one'), pod('one'), pod('two'), pod('two')],
        pools: [pool],
        policy: {
          ...policy,
          reservations: { label: reservationId, mode: 'Fallback' },
          ...(improvement && { improvement }),
        },
      }),
    )
    const prices = claims.map((claim) => `${claim.reservationIds.join()} ${claim.pricePerHour}`)
    assert.deepEqual(prices.toSorted(), [' 0.4', ' 0.4', 'cheap 0.1', 'dear 0.3'])
    assert.deepEqual(
      [pricePerHour.toFixed(9), firstFitPricePerHour.toFixed(9)],
      ['1.200000000', '1.200000000'],
    )
  }
})
