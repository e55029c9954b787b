import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type InstanceType,
  labels,
  type NodeOverlay,
  type NodePool,
  type PricePerHour,
  type Requirement,
  wellKnownLabels,
} from '@tenon/api'
import { allocatableOf } from '../scheduling/types/allocatable.ts'
import { finished } from '../steps.ts'
import { aPool, aType } from '../testing/builders.test-support.ts'
import { evaluateOverlaysInSteps, type OverlayOutcome, renderOverlayConflict } from './evaluation.ts'
import type { OfferedPool } from './matching.ts'
import { overlaidPrice, overlaidType } from './overlaid-type.ts'
import { renderOverlayProblems } from './validation.ts'

const policy = { wellKnownLabels: new Set(wellKnownLabels) }
const only = (key: string, ...values: readonly string[]): Requirement => ({ key, operator: 'In', values })

/** An overlay of everything that changes what is given. */
function anOverlay(name: string, spec: Partial<NodeOverlay['spec']> = {}): NodeOverlay {
  return {
    apiVersion: 'karpenter.sh/v1alpha1',
    kind: 'NodeOverlay',
    metadata: { name },
    spec: { requirements: [], ...spec },
  }
}

/** A pool that is offered types `small` (2 cores, 0.10) and `large` (8 cores, 0.40) in two zones. */
function aShop(nodePool: NodePool = aPool()): OfferedPool {
  const zones = ['zone-1', 'zone-2']
  return { nodePool, instanceTypes: [aType('small', 2, 8, zones), aType('large', 8, 32, zones)] }
}

/** A pool whose nodes carry a label. */
function aLabelledPool(name: string, team: string): NodePool {
  const pool = aPool(name)
  const template = { ...pool.spec.template, metadata: { labels: { team } } }
  return { ...pool, spec: { ...pool.spec, template } }
}

interface Evaluated {
  /** `valid`, or the words for what is wrong, by overlay. */
  readonly outcomes: Readonly<Record<string, string>>
  readonly type: (name: string, pool?: string) => InstanceType
  /** Prices of a type's offerings in order of zone. */
  readonly prices: (type: string, pool?: string) => readonly PricePerHour[]
}

function evaluate(overlays: readonly NodeOverlay[], pools: readonly OfferedPool[] = [aShop()]): Evaluated {
  const { outcomes, byPool } = finished(evaluateOverlaysInSteps(overlays, pools, policy))
  const type = (name: string, poolName = 'default') => {
    const pool = pools.find(({ nodePool }) => nodePool.metadata.name === poolName)
    const base = pool?.instanceTypes.find((each) => each.name === name)
    assert.ok(pool !== undefined && base !== undefined)
    const overlay = byPool.get(pool.nodePool)?.get(name)
    return overlay === undefined ? base : overlaidType(base, overlay)
  }
  return {
    outcomes: Object.fromEntries(
      Array.from(outcomes, ([{ metadata }, each]) => [metadata.name, words(each)]),
    ),
    type,
    prices: (name, pool) => type(name, pool).offerings.map(({ pricePerHour }) => rounded(pricePerHour)),
  }
}

function words(outcome: OverlayOutcome): string {
  switch (outcome.kind) {
    case 'valid':
      return 'valid'
    case 'invalid':
      return renderOverlayProblems(outcome.problems)
    case 'conflict':
      return renderOverlayConflict(outcome)
  }
}

function rounded(price: PricePerHour): PricePerHour {
  return price && Math.round(price * 1e6) / 1e6
}

describe('the price under an overlay', () => {
  test('SCH-145 API-99 STA-102 STA-64 unsigned replaces, signed adds, percent scales, and 0 is the least', () => {
    const changes: readonly (readonly [price: number, change: string, expected: number])[] = [
      [10, '-200%', 0],
      [10, '-100%', 0],
      [10, '+5', 15],
      [10, '80', 80],
      [10, '80.0', 80],
      [10, '-10%', 9],
      [10, '-15', 0],
      [1.25, '+0.75', 2],
      [1.5, '+2.5', 4],
      [10, '+.5%', 10.05],
      [10, '-.5', 9.5],
      [10, '0', 0],
    ]
    for (const [price, change, expected] of changes)
      assert.equal(rounded(overlaidPrice(price, change)), expected, `${price} ${change}`)
  })

  test('an unknown price stays unknown unless it is replaced or all of it is taken off', () => {
    const unknown = undefined
    for (const change of ['+1', '-1', '+50%', '-50%']) assert.equal(overlaidPrice(unknown, change), unknown)
    assert.equal(overlaidPrice(unknown, '3'), 3)
    assert.equal(overlaidPrice(unknown, '-100%'), 0)
  })
})

describe('which overlays apply to what', () => {
  test('STA-91 without overlays every type stays the same object', () => {
    const shop = aShop()
    const { type } = evaluate([], [shop])
    for (const base of shop.instanceTypes) assert.equal(type(base.name), base)
  })

  test('STA-128 an overlay that sets nothing, or matches nothing, is valid and changes nothing', () => {
    const shop = aShop()
    const { outcomes, type } = evaluate(
      [
        anOverlay('idle'),
        anOverlay('elsewhere', { price: '1', requirements: [only(labels.zone, 'zone-9')] }),
        anOverlay('empty', { capacity: {} }),
      ],
      [shop],
    )
    assert.deepEqual(outcomes, { idle: 'valid', elsewhere: 'valid', empty: 'valid' })
    for (const base of shop.instanceTypes) assert.equal(type(base.name), base)
  })

  for (const change of [{ price: '0.05' }, { priceAdjustment: '-0.05' }, { priceAdjustment: '+1' }])
    test(`RPB-27 an amount has no effect on prices without a currency, and is told: ${JSON.stringify(change)}`, () => {
      const shop = aShop()
      const relative = [{ ...shop, priceUnit: '2XS-equivalents' }]
      const overlay = anOverlay('amount', { ...change, capacity: { 'example.com/fuse': '1' } })
      const { outcomes, type } = evaluate([overlay], relative)
      assert.match(outcomes['amount'] ?? '', /NodePool default have no currency \(2XS-equivalents\)/)
      for (const base of shop.instanceTypes) assert.equal(type(base.name), base)
      for (const priceUnit of ['EUR', undefined])
        assert.equal(evaluate([overlay], [{ ...shop, priceUnit }]).outcomes['amount'], 'valid')
      const elsewhere = { ...overlay.spec, requirements: [only(labels.zone, 'zone-9')] }
      assert.equal(evaluate([anOverlay('amount', elsewhere)], relative).outcomes['amount'], 'valid')
    })

  test('RPB-27 a percentage changes prices in every unit', () => {
    const { outcomes, prices } = evaluate(
      [anOverlay('half', { priceAdjustment: '-50%' })],
      [{ ...aShop(), priceUnit: '2XS-equivalents' }],
    )
    assert.deepEqual(outcomes, { half: 'valid' })
    assert.deepEqual(prices('small'), [0.05, 0.05])
  })

  test('STA-95 STA-93 by zone each sets its own offerings; on the same ones the later name wins', () => {
    const in1 = { requirements: [only(labels.zone, 'zone-1')] }
    const in2 = { requirements: [only(labels.zone, 'zone-2')] }
    const apart = evaluate([anOverlay('a', { price: '1', ...in1 }), anOverlay('b', { price: '2', ...in2 })])
    assert.deepEqual(apart.outcomes, { a: 'valid', b: 'valid' })
    assert.deepEqual(apart.prices('small'), [1, 2])
    const same = evaluate([anOverlay('a', { price: '1', ...in1 }), anOverlay('b', { price: '2', ...in1 })])
    assert.deepEqual(same.outcomes, {
      a: 'NodeOverlay b of the same weight sets the price of small in NodePool default already; set a higher weight on one of them, or narrow its requirements',
      b: 'valid',
    })
    assert.deepEqual(same.prices('small'), [2, 0.1])
  })

  test('STA-100 by the name of the pool', () => {
    const { prices } = evaluate(
      [anOverlay('a', { priceAdjustment: '-50%', requirements: [only(labels.nodePool, 'second')] })],
      [aShop(), aShop(aPool('second'))],
    )
    assert.deepEqual(prices('small'), [0.1, 0.1])
    assert.deepEqual(prices('small', 'second'), [0.05, 0.05])
  })

  test('STA-101 by a label of the template; a label that a pool does not set is not met', () => {
    const pools = [aShop(), aShop(aLabelledPool('red', 'red')), aShop(aLabelledPool('blue', 'blue'))]
    const priced = (requirement: Requirement) => {
      const { prices } = evaluate([anOverlay('a', { price: '7', requirements: [requirement] })], pools)
      return ['default', 'red', 'blue'].filter((pool) => prices('large', pool)[0] === 7)
    }
    assert.deepEqual(priced(only('team', 'red')), ['red'])
    assert.deepEqual(priced({ key: 'team', operator: 'Exists' }), ['red', 'blue'])
    assert.deepEqual(priced({ key: 'team', operator: 'DoesNotExist' }), ['default'])
    assert.deepEqual(priced({ key: 'team', operator: 'NotIn', values: ['red'] }), ['default', 'blue'])
  })

  test('what a pool requires does not matter', () => {
    const pool = aPool('default', {}, { requirements: [only(labels.zone, 'zone-2')] })
    const { prices } = evaluate(
      [anOverlay('a', { price: '7', requirements: [only(labels.zone, 'zone-1')] })],
      [aShop(pool)],
    )
    assert.deepEqual(prices('small'), [7, 0.1])
  })

  test('by an older name of a label, on offerings that cannot be had now as well', () => {
    const shop = aShop()
    const gone = { ...shop, instanceTypes: shop.instanceTypes.map(unavailable) }
    const zonal = only('failure-domain.beta.kubernetes.io/zone', 'zone-2')
    const { prices } = evaluate([anOverlay('a', { price: '7', requirements: [zonal] })], [gone])
    assert.deepEqual(prices('small'), [0.1, 7])
  })

  test('an offering with a label that nobody knows is met only by overlays that name it', () => {
    const shop = aShop()
    const marked = {
      ...shop,
      instanceTypes: shop.instanceTypes.map((type) => withOfferingLabel(type, 'example.com/rack')),
    }
    const priced = (requirements: readonly Requirement[]) =>
      evaluate([anOverlay('a', { price: '7', requirements })], [marked]).prices('small')
    assert.deepEqual(priced([]), [0.1, 0.1])
    assert.deepEqual(priced([only('example.com/rack', 'r1')]), [7, 7])
  })
})

describe('overlays that set the same', () => {
  test('STA-96 of different weights the heavier wins, and both are valid', () => {
    const { outcomes, prices } = evaluate([
      anOverlay('light', { price: '1', weight: 10 }),
      anOverlay('heavy', { price: '2', weight: 20 }),
    ])
    assert.deepEqual(outcomes, { light: 'valid', heavy: 'valid' })
    assert.deepEqual(prices('small'), [2, 2])
  })

  test('STA-94 API-98 STA-127 equal values conflict as well', () => {
    const capacity = { 'example.com/fuse': '1' }
    const prices = evaluate([anOverlay('a', { price: '1' }), anOverlay('b', { price: '1' })])
    assert.deepEqual([prices.outcomes['a'] === 'valid', prices.outcomes['b']], [false, 'valid'])
    for (const amount of ['1', '2']) {
      const { outcomes, type } = evaluate([
        anOverlay('a', { capacity: { 'example.com/fuse': amount } }),
        anOverlay('b', { capacity }),
      ])
      assert.match(
        outcomes['a'] ?? '',
        /^NodeOverlay b of the same weight sets resource example.com\/fuse of /,
      )
      assert.equal(outcomes['b'], 'valid')
      assert.equal(type('small').capacity['example.com/fuse'], 1)
    }
  })

  test('STA-97 two that lose to a third still conflict with each other', () => {
    const { outcomes, prices } = evaluate([
      anOverlay('a', { price: '1', weight: 10 }),
      anOverlay('b', { price: '2', weight: 10 }),
      anOverlay('c', { price: '3', weight: 20 }),
    ])
    assert.match(outcomes['a'] ?? '', /^NodeOverlay b of the same weight/)
    assert.deepEqual([outcomes['b'], outcomes['c']], ['valid', 'valid'])
    assert.deepEqual(prices('large'), [3, 3])
  })

  test('API-108 of three of one weight the third is compared with the first as well', () => {
    const { outcomes, type } = evaluate([
      anOverlay('z', { capacity: { 'example.com/a': '1' } }),
      anOverlay('y', { capacity: { 'example.com/b': '2' } }),
      anOverlay('x', { capacity: { 'example.com/a': '3' } }),
    ])
    assert.match(outcomes['x'] ?? '', /^NodeOverlay z of the same weight/)
    assert.deepEqual([outcomes['y'], outcomes['z']], ['valid', 'valid'])
    assert.equal(type('small').capacity['example.com/a'], 1)
    assert.equal(type('small').capacity['example.com/b'], 2)
  })

  test('STA-99 one that conflicts anywhere applies nowhere', () => {
    const { outcomes, prices, type } = evaluate(
      [
        anOverlay('a', { price: '1', capacity: { 'example.com/a': '1' } }),
        anOverlay('b', {
          price: '2',
          requirements: [only(labels.nodePool, 'second'), only(labels.instanceType, 'large')],
        }),
      ],
      [aShop(), aShop(aPool('second'))],
    )
    assert.match(outcomes['a'] ?? '', /sets the price of large in NodePool second already/)
    assert.deepEqual(prices('small'), [0.1, 0.1])
    assert.deepEqual(prices('small', 'second'), [0.1, 0.1])
    assert.deepEqual(prices('large', 'second'), [2, 2])
    assert.equal(type('small').overlaid, undefined)
  })

  test('STA-98 different resources are added up, the heavier overlay wins on the same one', () => {
    const { type } = evaluate([
      anOverlay('a', { weight: 5, capacity: { 'example.com/a': '1', 'example.com/b': '1' } }),
      anOverlay('b', { capacity: { 'example.com/b': '2', 'example.com/c': '3' } }),
    ])
    const { capacity } = type('large')
    assert.deepEqual(
      ['a', 'b', 'c'].map((name) => capacity[`example.com/${name}`]),
      [1, 1, 3],
    )
  })

  test('the order in which overlays and pools are given does not matter', () => {
    const overlays = ['a', 'b', 'c'].map((name) => anOverlay(name, { price: String(name.charCodeAt(0)) }))
    const pools = [aShop(), aShop(aPool('second'))]
    const forth = evaluate(overlays, pools)
    const back = evaluate(overlays.toReversed(), pools)
    assert.deepEqual(forth.outcomes, back.outcomes)
    assert.deepEqual(forth.prices('small', 'second'), back.prices('small', 'second'))
  })
})

describe('the overlaid type', () => {
  test('capacity covers the whole type though one offering matches; the price that one only', () => {
    const shop = aShop()
    const { type } = evaluate(
      [
        anOverlay('a', {
          price: '9',
          capacity: { 'example.com/fuse': '4' },
          requirements: [only(labels.zone, 'zone-2'), only(labels.instanceType, 'small')],
        }),
      ],
      [shop],
    )
    const { overlaid, capacity, offerings } = type('small')
    assert.deepEqual(overlaid, { price: true, capacity: true })
    assert.equal(capacity['example.com/fuse'], 4)
    assert.equal(capacity['cpu'], 2000)
    assert.deepEqual(
      offerings.map(({ pricePerHour }) => pricePerHour),
      [0.1, 9],
    )
    const [base] = shop.instanceTypes
    assert.equal(offerings[0], base?.offerings[0])
    assert.deepEqual(base, aShop().instanceTypes[0])
    assert.equal(type('large'), shop.instanceTypes[1])
  })

  test('says which of price and capacity was changed', () => {
    const { type } = evaluate([anOverlay('a', { price: '1' })])
    assert.deepEqual(type('small').overlaid, { price: true, capacity: false })
    const more = evaluate([anOverlay('a', { capacity: { 'example.com/fuse': '1' } })])
    assert.deepEqual(more.type('small').overlaid, { price: false, capacity: true })
  })

  test('STA-109 huge pages are taken out of the memory that pods can use', () => {
    const shop = aShop()
    const { type } = evaluate([anOverlay('a', { capacity: { 'hugepages-2Mi': '2Gi' } })], [shop])
    const before = allocatableOf(shop.instanceTypes[0] as InstanceType)['memory'] ?? 0
    const after = allocatableOf(type('small'))
    assert.equal(before - (after['memory'] ?? 0), 2 * 1024 ** 3)
    assert.equal(after['hugepages-2Mi'], 2 * 1024 ** 3)
  })

  test('what single offerings override stays theirs', () => {
    const shop = aShop()
    const overriding = { capacityOverride: { 'example.com/fuse': 8 }, overheadOverride: { memory: 5 } }
    const types = shop.instanceTypes.map((type) => ({
      ...type,
      offerings: type.offerings.map((offering, i) => (i === 0 ? { ...offering, ...overriding } : offering)),
    }))
    const { type } = evaluate(
      [anOverlay('a', { price: '3', capacity: { 'example.com/fuse': '4' } })],
      [{ ...shop, instanceTypes: types }],
    )
    const [first, second] = type('small').offerings
    assert.deepEqual(first, { ...types[0]?.offerings[0], pricePerHour: 3 })
    assert.equal(second?.capacityOverride, undefined)
  })

  test('pools that are changed alike share the change', () => {
    const pools = [aShop(), aShop(aPool('second'))]
    const { byPool } = finished(evaluateOverlaysInSteps([anOverlay('a', { price: '1' })], pools, policy))
    const [first, second] = pools.map(({ nodePool }) => byPool.get(nodePool)?.get('small'))
    assert.ok(first !== undefined)
    assert.equal(first, second)
  })
})

describe('overlays that cannot be used', () => {
  test('STA-106 STA-105 they are told why, and the others still apply', () => {
    const longKey = `example.com/${'k'.repeat(64)}`
    const { outcomes, prices } = evaluate([
      anOverlay('good', { price: '5' }),
      anOverlay('key', { price: '6', weight: 9, requirements: [only(longKey, 'x')] }),
      anOverlay('cpu', { price: '7', weight: 9, capacity: { cpu: '4', 'example.com/fuse': '1' } }),
    ])
    assert.equal(outcomes['good'], 'valid')
    assert.match(outcomes['key'] ?? '', /^spec.requirements\[0\]: "example.com\/k+" is not a label key/)
    assert.match(outcomes['cpu'] ?? '', /^spec.capacity\["cpu"\]: the provider knows/)
    assert.deepEqual(prices('small'), [5, 5])
  })
})

function unavailable(type: InstanceType): InstanceType {
  return { ...type, offerings: type.offerings.map((offering) => ({ ...offering, available: false })) }
}

function withOfferingLabel(type: InstanceType, key: string): InstanceType {
  const label = only(key, 'r1')
  return {
    ...type,
    requirements: [...type.requirements, label],
    offerings: type.offerings.map((offering) => ({
      ...offering,
      requirements: [...offering.requirements, label],
    })),
  }
}
