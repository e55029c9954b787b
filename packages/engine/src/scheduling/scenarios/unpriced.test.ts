import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels } from '@tenon/api'
import {
  anInput,
  anOffering,
  aPod,
  aPool,
  aPoolInput,
  aType,
  soldAs,
  strictPolicy,
  times,
} from '../../testing/builders.test-support.ts'
import type { SchedulingPolicy } from '../../input/input.ts'
import { schedule } from '../schedule.ts'

/** A type that can be bought, and nobody knows for how much. */
function unpriced(name: string, cpu: number, memoryGi: number): InstanceType {
  const type = aType(name, cpu, memoryGi)
  return { ...type, offerings: type.offerings.map((each) => ({ ...each, pricePerHour: undefined })) }
}

const priced = [aType('small', 2, 4), aType('medium', 4, 8), aType('large', 8, 16)]
const mixed = [...priced, unpriced('huge', 48, 128), unpriced('titan', 96, 450)]

const policies: readonly SchedulingPolicy[] = ([undefined, 'planned', 'free'] as const).flatMap(
  (improvement) =>
    (['Respect', 'Ignore'] as const).flatMap((preferences) =>
      (['Strict', 'BestEffort'] as const).map((minValues) => ({
        ...strictPolicy,
        preferences,
        minValues,
        ...(improvement && { improvement }),
      })),
    ),
)

const modeOf = ({ improvement, preferences, minValues }: SchedulingPolicy) =>
  `${improvement ?? 'first fit'}, ${preferences}, ${minValues}`

function planOf(pods: ReturnType<typeof aPod>[], types: readonly InstanceType[], policy: SchedulingPolicy) {
  return schedule(anInput({ pods, pools: [aPoolInput(aPool(), types)], policy }))
}

describe('types without a known price', () => {
  for (const policy of policies) {
    test(`RPT-28 40 pods of 700m and 40 of 800m are placed on types whose price is known (${modeOf(policy)})`, () => {
      const pods = [
        ...times(40, () => aPod({ cpu: '700m', memory: '64Mi' })),
        ...times(40, () => aPod({ cpu: '800m', memory: '64Mi' })),
      ]
      const { claims, failures, pricePerHour } = planOf(pods, mixed, policy)
      assert.deepEqual(failures, [])
      assert.equal(claims.flatMap((claim) => claim.pods).length, 80)
      for (const claim of claims) assert.ok((claim.pricePerHour ?? 0) > 0, `${claim.instanceTypes[0]}`)
      assert.ok(Number.isFinite(pricePerHour) && pricePerHour > 0)
    })

    test(`RPT-28 a pod that only they hold gets one, and draws no other pods (${modeOf(policy)})`, () => {
      const large = aPod({ cpu: '32' })
      const pods = [large, ...times(40, () => aPod({ cpu: '1500m' }))]
      const { claims, failures } = planOf(pods, mixed, policy)
      assert.deepEqual(failures, [])
      const bought = claims.filter(({ pricePerHour }) => pricePerHour === undefined)
      assert.equal(bought.length, 1)
      assert.ok(bought[0]?.pods.includes(large))
      // Others may use its spare room, but have it launched as no larger type.
      assert.deepEqual(bought[0]?.instanceTypes, ['huge', 'titan'])
    })

    test(`RPT-28 a NodePool that knows no price at all places every pod (${modeOf(policy)})`, () => {
      const pods = [...times(40, () => aPod({ cpu: '700m' })), ...times(40, () => aPod({ cpu: '800m' }))]
      const types = [unpriced('huge', 48, 128), unpriced('titan', 96, 450)]
      const { claims, failures, pricePerHour } = planOf(pods, types, policy)
      assert.deepEqual(failures, [])
      assert.equal(claims.length, 1)
      assert.equal(claims[0]?.pricePerHour, undefined)
      assert.equal(pricePerHour, 0)
    })
  }

  test('RPT-28 a zone in which the price is not known is used last', () => {
    const type = soldAs(
      aType('medium', 4, 8, ['zone-1', 'zone-2']),
      anOffering('on-demand', undefined, 'zone-1'),
      anOffering('on-demand', 5, 'zone-2'),
    )
    const { claims } = planOf([aPod({ cpu: '3' })], [type], strictPolicy)
    assert.equal(claims[0]?.pricePerHour, 5)
    const inFirst = aPod({ cpu: '1' }, { nodeSelector: { [labels.zone]: 'zone-1' } })
    const both = planOf([aPod({ cpu: '2' }), inFirst], [type], strictPolicy)
    assert.deepEqual(
      new Set(both.claims.map(({ pricePerHour, pods }) => `${pods.length} for ${pricePerHour}`)),
      new Set(['1 for 5', '1 for undefined']),
    )
  })

  test('RPT-28 the weight of NodePools goes before prices', () => {
    const preferred = aPool('preferred', { weight: 10 })
    const result = schedule(
      anInput({
        pods: [aPod({ cpu: '1' }), aPod({ cpu: '1' })],
        pools: [aPoolInput(preferred, [unpriced('huge', 48, 128)]), aPoolInput(aPool('other'), priced)],
      }),
    )
    assert.deepEqual(
      result.claims.map(({ nodePool, pods }) => [nodePool, pods.length]),
      [['preferred', 2]],
    )
  })

  test('RPT-28 a price that is no price leaves out the type that has it, and no other', () => {
    for (const pricePerHour of [Number.POSITIVE_INFINITY, Number.NaN, -1, 1e300]) {
      const broken = soldAs(aType('broken', 4, 8), anOffering('on-demand', pricePerHour))
      const { claims, malformed } = planOf([aPod({ cpu: '1' })], [...priced, broken], strictPolicy)
      assert.deepEqual(
        malformed.map(({ kind, name }) => [kind, name]),
        [['InstanceType', 'broken']],
      )
      assert.equal(claims[0]?.instanceTypes.includes('broken'), false)
    }
  })
})
