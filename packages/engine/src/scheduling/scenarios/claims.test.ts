/** What a claim says, and what its types must hold (scheduling.md 11.3, 13.1, 16). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels, parseResources, type Requirement } from '@tenon/api'
import {
  anExpression,
  anInput,
  aNode,
  anOffering,
  aPod,
  aPool,
  aPoolInput,
  aType,
  failureTexts,
  placedOn,
  preferring,
  requirementsOn,
  soldAs,
  typesIn,
} from '../../testing/builders.test-support.ts'
import { allocatableOf } from '../types/allocatable.ts'
import { schedule } from '../schedule.ts'

const types = typesIn('zone-1', 'zone-2')

/** The one claim of a pool with this requirement. */
function claimOf(requirement: Requirement) {
  const pool = aPool('default', {}, { requirements: [requirement] })
  const { claims, failures } = schedule(anInput({ pods: [aPod()], pools: [aPoolInput(pool, types)] }))
  assert.deepEqual(failures, [])
  assert.equal(claims.length, 1)
  return claims[0]
}

describe('labels of a claim', () => {
  test('SCH-141 a custom key that must exist gets some value, one that must not gets none', () => {
    const key = 'example.com/team'
    const value = claimOf({ key, operator: 'Exists' })?.labels[key]
    assert.equal(typeof value, 'string')
    assert.notEqual(value, '')
    assert.equal(key in (claimOf({ key, operator: 'DoesNotExist' })?.labels ?? {}), false)
  })

  test('a custom key with excluded values gets none: the label may be absent', () => {
    const key = 'example.com/team'
    const labelsOf = claimOf({ key, operator: 'NotIn', values: ['0', '1'] })?.labels ?? {}
    assert.equal(key in labelsOf, false)
  })

  test('SCH-142 a well-known key is left to the provider, its exclusion is kept', () => {
    const notFirst = { key: labels.zone, operator: 'NotIn' as const, values: ['zone-1'] }
    const claim = claimOf(notFirst)
    assert.equal(labels.zone in (claim?.labels ?? {}), false)
    assert.deepEqual(requirementsOn(claim, labels.zone), [notFirst])
  })
})

describe('what a type holds', () => {
  /** 20 GiB of memory, 1 GiB of it overhead, some of it set aside as huge pages. */
  function withHugePages(hugePages: string): InstanceType {
    return {
      ...aType('huge', 4, 20),
      capacity: parseResources({ cpu: '4', memory: '20Gi', pods: '110', 'hugepages-2Mi': hugePages }),
      overhead: {
        kubeReserved: parseResources({ memory: '1Gi' }),
        systemReserved: {},
        evictionThreshold: {},
      },
    }
  }

  function isPlaced(type: InstanceType, requests: Readonly<Record<string, string>>): boolean {
    const { claims } = schedule(anInput({ pods: [aPod(requests)], pools: [aPoolInput(aPool(), [type])] }))
    return claims.length === 1
  }

  test('SCH-143 huge pages are taken from memory after overhead, never below nothing', () => {
    const type = withHugePages('15Gi')
    assert.equal(allocatableOf(type)['memory'], 4 * 2 ** 30)
    assert.equal(isPlaced(type, { memory: '4Gi' }), true)
    assert.equal(isPlaced(type, { memory: '4097Mi' }), false)

    const flooded = withHugePages('30Gi')
    assert.equal(allocatableOf(flooded)['memory'], 0)
    assert.equal(isPlaced(flooded, { memory: '1Mi' }), false)
    assert.equal(isPlaced(flooded, { cpu: '1' }), true)
  })

  test('SCH-144 a resource of some offerings needs one of these to be available', () => {
    const device = 'example.com/device'
    const plain = anOffering('on-demand', 0.2)
    const special = (available: boolean) =>
      anOffering('on-demand', 0.3, 'zone-2', { available, capacityOverride: { [device]: 1 } })
    const list = [
      aType('without', 4, 16),
      soldAs(aType('sold-out', 4, 16), plain, special(false)),
      soldAs(aType('with', 4, 16), plain, special(true)),
    ]
    const run = (zone?: string) =>
      schedule(
        anInput({
          pods: [
            aPod(
              { cpu: '1', [device]: '1' },
              zone === undefined ? {} : { nodeSelector: { [labels.zone]: zone } },
            ),
          ],
          pools: [aPoolInput(aPool(), list)],
        }),
      ).claims.map((claim) => claim.instanceTypes)
    assert.deepEqual(run(), [['with']])
    assert.deepEqual(run('zone-2'), [['with']])
    assert.deepEqual(run('zone-1'), [])
  })
})

describe('pods with ResourceClaims', () => {
  test('SCH-171 such a pod fails at once with all its wishes, other pods proceed', () => {
    const demand = preferring([1, anExpression(labels.zone, 'In', 'mars')])
    const claiming = aPod({ cpu: '1' }, { ...demand, resourceClaims: [{ name: 'device' }] })
    const other = aPod({ cpu: '1' }, demand)
    const result = schedule(anInput({ pods: [claiming, other], nodes: [aNode('roomy')] }))
    assert.deepEqual(
      result.failures.map(({ pod }) => pod),
      [claiming],
    )
    assert.match(failureTexts(result)[claiming.metadata.name] ?? '', /ResourceClaims/)
    assert.deepEqual(placedOn(result), { [other.metadata.name]: 'roomy' })
    assert.deepEqual(result.claims, [])
  })
})
