import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type InstanceType, labels, wellKnownLabels } from '@tenon/api'
import {
  anExpression,
  anOffering,
  aPod,
  aPool,
  aPoolInput,
  aType,
  requirementsOn,
  soldAs,
  times,
  valuesOn,
} from '../testing/builders.test-support.ts'
import { consolidate, moves, refusals } from './consolidation.test-support.ts'

/** A type of `cpu` cores that is sold as spot, and as on-demand for twice as much. */
function spotType(name: string, cpu: number, spot: number): InstanceType {
  return soldAs(aType(name, cpu, cpu * 4), anOffering('spot', spot), anOffering('on-demand', 2 * spot))
}

const small = aType('small', 2, 8)
const medium = aType('medium', 4, 16)
const large = aType('large', 8, 32)

test('DIS-85 an oversized on-demand node is replaced by the types that are cheaper', () => {
  const result = consolidate('single', {
    instances: { big: { type: large, pods: [aPod({ cpu: '1' })] } },
    types: [small, medium, large],
  })
  assert.deepEqual(moves(result), [[['big'], ['small', 'medium']]])
  assert.ok(Math.abs((result.moves[0]?.savings ?? 0) - 0.3) < 1e-9)
})

test('DIS-86 a type with any spot zone dearer than the node is no replacement', () => {
  const zoned = soldAs(
    aType('zoned', 4, 16, ['zone-1', 'zone-2']),
    anOffering('spot', 0.2),
    anOffering('spot', 0.5, 'zone-2'),
    anOffering('on-demand', 1),
  )
  const story = { instances: { big: { type: large, pods: [aPod()] } }, types: [zoned, large] }
  const result = consolidate('single', story)
  assert.deepEqual(moves(result), [])
  assert.deepEqual(refusals(result), { big: 'noCheaper' })
  const cheap = soldAs(zoned, anOffering('spot', 0.2), anOffering('spot', 0.39, 'zone-2'))
  assert.deepEqual(moves(consolidate('single', { ...story, types: [cheap, large] })), [[['big'], ['zoned']]])
})

test('DIS-87 a pool that may only buy on-demand does not count on cheaper spot', () => {
  const onlyOnDemand = aPool(
    'default',
    {},
    {
      requirements: [anExpression(labels.capacityType, 'In', 'on-demand')],
    },
  )
  const offer = soldAs(aType('offer', 4, 16), anOffering('spot', 0.1), anOffering('on-demand', 0.6))
  const instances = { big: { type: large, pods: [aPod()] } }
  const result = consolidate('single', { instances, pools: [aPoolInput(onlyOnDemand, [offer, large])] })
  assert.deepEqual(moves(result), [])
  assert.deepEqual(refusals(result), { big: 'noCheaper' })
  assert.equal(consolidate('single', { instances, types: [offer, large] }).moves.length, 1)
})

test('DIS-88 a type for the same price is no replacement', () => {
  const equal = soldAs(small, anOffering('on-demand', 0.4))
  const result = consolidate('single', {
    instances: { big: { type: large, pods: [aPod()] } },
    types: [equal, large],
  })
  assert.deepEqual(moves(result), [])
  assert.deepEqual(refusals(result), { big: 'noCheaper' })
})

test('DIS-89 a replacement that could be spot or on-demand is restricted to spot', () => {
  const offer = spotType('offer', 4, 0.1)
  const [move] = consolidate('single', {
    instances: { big: { type: large, pods: [aPod()] } },
    types: [offer, large],
  }).moves
  assert.deepEqual(valuesOn(move?.claims[0], labels.capacityType), ['spot'])
  assert.ok(Math.abs((move?.savings ?? 0) - 0.3) < 1e-9)
})

test('a replacement of which only on-demand is cheap enough is restricted to on-demand', () => {
  const fixed = soldAs(aType('fixed', 4, 16), anOffering('on-demand', 0.2))
  const dear = spotType('dear', 4, 0.5)
  const [move] = consolidate('single', {
    instances: { big: { type: large, pods: [aPod()] } },
    types: [fixed, dear, large],
  }).moves
  assert.deepEqual(move?.claims[0]?.instanceTypes, ['fixed'])
  assert.deepEqual(valuesOn(move?.claims[0], labels.capacityType), ['on-demand'])
})

test('a replacement that is restricted to spot saves what spot costs less', () => {
  const fixed = soldAs(aType('fixed', 4, 16), anOffering('on-demand', 0.05))
  const [move] = consolidate('single', {
    instances: { big: { type: large, pods: [aPod()] } },
    types: [fixed, spotType('offer', 4, 0.1), large],
  }).moves
  assert.deepEqual(valuesOn(move?.claims[0], labels.capacityType), ['spot'])
  assert.ok(Math.abs((move?.savings ?? 0) - 0.3) < 1e-9)
})

/** Spot types of 8 cores, from 1 cent on. */
const ladder = (count: number) => times(count, (index) => spotType(`spot-${index + 1}`, 8, (index + 1) / 100))
const nameOfSpot = (count: number) => times(count, (index) => `spot-${index + 1}`)

test('DIS-90 without the gate a spot node is not replaced, only removed', () => {
  const types = ladder(20)
  const story = { types, instances: { here: { type: types[19]!, capacityType: 'spot', pods: [aPod()] } } }
  const stays = consolidate('single', story)
  assert.deepEqual(moves(stays), [])
  assert.deepEqual(refusals(stays), { here: 'spotToSpotDisabled' })
  const there = { type: types[0]!, capacityType: 'spot', stays: true }
  const goes = consolidate('single', { ...story, instances: { ...story.instances, there } })
  assert.deepEqual(moves(goes), [[['here']]])
})

test('DIS-91 a spot node with one cheaper type stays; 15 are needed and 1 was found', () => {
  const types = ladder(2)
  const result = consolidate('single', {
    types,
    spotToSpot: true,
    instances: { here: { type: types[1]!, capacityType: 'spot', pods: [aPod()] } },
  })
  assert.deepEqual(moves(result), [])
  assert.deepEqual(result.findings, [
    { kind: 'refused', node: 'here', refusal: { kind: 'spotToSpotTypes', found: 1 } },
  ])
})

test('DIS-92 a spot node among the 15 cheapest types stays', () => {
  const types = ladder(18)
  for (const [index, moveCount] of [
    [14, 0],
    [15, 1],
  ] as const) {
    const result = consolidate('single', {
      types,
      spotToSpot: true,
      instances: { here: { type: types[index]!, capacityType: 'spot', pods: [aPod()] } },
    })
    assert.equal(result.moves.length, moveCount)
  }
})

test('DIS-93 the dearest of 18 spot types is replaced by one of the 15 cheapest', () => {
  const types = ladder(18)
  const result = consolidate('single', {
    types: types.toReversed(),
    spotToSpot: true,
    instances: { here: { type: types[17]!, capacityType: 'spot', pods: [aPod()] } },
  })
  assert.deepEqual(moves(result), [[['here'], nameOfSpot(15)]])
  assert.deepEqual(valuesOn(result.moves[0]?.claims[0], labels.instanceType), nameOfSpot(15).toSorted())
})

test('DIS-94 minValues lengthen the list of a spot node beyond 15 types, but never shorten it', () => {
  const types = ladder(18)
  for (const [minValues, listed] of [
    [16, 16],
    [10, 15],
  ] as const) {
    const pool = aPool(
      'default',
      {},
      {
        requirements: [{ key: labels.instanceType, operator: 'Exists', minValues }],
      },
    )
    const result = consolidate('single', {
      pools: [aPoolInput(pool, types)],
      spotToSpot: true,
      instances: { here: { type: types[17]!, capacityType: 'spot', pods: [aPod()] } },
    })
    assert.deepEqual(moves(result), [[['here'], nameOfSpot(listed)]])
  }
})

const least = (minValues: number) =>
  aPool('default', {}, { requirements: [{ key: labels.instanceType, operator: 'Exists', minValues }] })

test('DIS-95 cheaper types that are too few for minValues are no replacement, also under BestEffort', () => {
  for (const minValues of ['Strict', 'BestEffort'] as const) {
    const result = consolidate('single', {
      pools: [aPoolInput(least(3), [small, medium, large])],
      policy: { minValues },
      instances: { big: { type: large, pods: [aPod()] } },
    })
    assert.deepEqual(moves(result), [])
    assert.deepEqual(result.findings, [
      {
        kind: 'refused',
        node: 'big',
        refusal: { kind: 'minValues', missing: new Map([[labels.instanceType, 2]]) },
      },
    ])
  }
})

test('DIS-168 when no type is cheaper, minValues are not what is told', () => {
  const result = consolidate('single', {
    pools: [aPoolInput(least(2), [small, medium, large])],
    instances: { here: { type: small, pods: [aPod()] } },
  })
  assert.deepEqual(refusals(result), { here: 'noCheaper' })
})

test('DIS-101 a node gives way to reserved capacity of its own type, and reserved to cheaper reserved', () => {
  const is = (key: string, value: string) => ({ key, operator: 'In' as const, values: [value] })
  const reservation = 'example.com/reservation'
  const reserved = (id: string, pricePerHour: number) => ({
    requirements: [is(labels.zone, 'zone-1'), is(labels.capacityType, 'reserved'), is(reservation, id)],
    pricePerHour,
    available: true,
    reservationCapacity: 1,
  })
  const offer = soldAs(large, anOffering('spot', 0.2), anOffering('on-demand', 0.4), reserved('r-1', 0.04))
  const policy = {
    reservations: { label: reservation, mode: 'Fallback' as const },
    wellKnownLabels: new Set([...wellKnownLabels, reservation]),
  }
  for (const capacityType of ['on-demand', 'spot']) {
    const result = consolidate('single', {
      instances: { here: { type: offer, capacityType, pods: [aPod()] } },
      types: [offer],
      policy,
    })
    assert.deepEqual(moves(result), [[['here'], ['large']]])
    assert.deepEqual(valuesOn(result.moves[0]?.claims[0], labels.capacityType), ['reserved'])
    assert.deepEqual(result.moves[0]?.claims[0]?.reservationIds, ['r-1'])
  }
  const cheaper = soldAs(small, reserved('r-2', 0.01), anOffering('on-demand', 0.1))
  const result = consolidate('single', {
    instances: { here: { type: offer, capacityType: 'reserved', pods: [aPod()] } },
    types: [offer, cheaper],
    policy,
  })
  assert.deepEqual(moves(result), [[['here'], ['small']]])
  assert.ok(result.moves[0]?.claims[0]?.reservationIds.includes('r-2'))
})

test('a replacement that is restricted to spot gives up minValues of its capacity type', () => {
  const wanted = {
    key: labels.capacityType,
    operator: 'In' as const,
    values: ['spot', 'on-demand'],
    minValues: 2,
  }
  const pool = aPool('default', {}, { requirements: [wanted] })
  const [move] = consolidate('single', {
    instances: { big: { type: large, pods: [aPod()] } },
    pools: [aPoolInput(pool, [spotType('offer', 4, 0.1), large])],
  }).moves
  const [only] = requirementsOn(move?.claims[0], labels.capacityType)
  assert.deepEqual(only, { key: labels.capacityType, operator: 'In', values: ['spot'] })
})

test('types in place of a spot node come in the order of their spot prices', () => {
  const odd = soldAs(aType('odd', 8, 32), anOffering('spot', 0.125), anOffering('on-demand', 0.001))
  const types = [...ladder(18), odd]
  const result = consolidate('single', {
    types,
    spotToSpot: true,
    instances: { here: { type: types[17]!, capacityType: 'spot', pods: [aPod()] } },
  })
  const [claim] = result.moves[0]?.claims ?? []
  assert.deepEqual(claim?.instanceTypes, [...nameOfSpot(12), 'odd', ...nameOfSpot(14).slice(12)])
  assert.equal(claim?.pricePerHour, 0.01)
})

test('a replacement is not restricted to spot capacity that is too small for its pods', () => {
  const smaller = anOffering('spot', 0.1, 'zone-1', { capacityOverride: { cpu: 500 } })
  const uneven = soldAs(aType('uneven', 4, 16), smaller, anOffering('on-demand', 0.2))
  const story = { types: [uneven, large] }
  const fits = consolidate('single', { ...story, instances: { big: { type: large, pods: [aPod()] } } })
  assert.deepEqual(valuesOn(fits.moves[0]?.claims[0], labels.capacityType), ['spot'])
  const pods = [aPod({ cpu: '1' })]
  const [move] = consolidate('single', { ...story, instances: { big: { type: large, pods } } }).moves
  assert.deepEqual(valuesOn(move?.claims[0], labels.capacityType), ['on-demand'])
  assert.ok(Math.abs((move?.savings ?? 0) - 0.2) < 1e-9)
})
