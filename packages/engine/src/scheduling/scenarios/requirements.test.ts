/** Label requirements of pods and pools meeting (scheduling.md 4, 6.4). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type NodeSelectorRequirement, type Pod, type Requirement } from '@tenon/api'
import { lookupsOf } from '../../eligibility/storage.test-support.ts'
import { validatePod } from '../../eligibility/validation.ts'
import { intersection, operatorOf, valueSet } from '../../requirements/requirement.ts'
import type { SchedulingInput } from '../../input/input.ts'
import type { NewClaim, SchedulingResult } from '../../input/result.ts'
import {
  aNode,
  anExpression,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  failureTexts,
  placedOn,
  podNames,
  preferring,
  requirementsOn,
  requiring,
  strictPolicy,
  typesIn,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

const size = 'example.com/size'
const team = 'example.com/team'
const inZone = (...zones: readonly string[]) => anExpression(labels.zone, 'In', ...zones)

/** A pool that serves three zones, with further requirements. */
function zonalPool(...requirements: readonly Requirement[]) {
  return aPoolInput(aPool('default', {}, { requirements }), typesIn('zone-1', 'zone-2', 'zone-3'))
}

function scheduled(pod: Pod, overrides: Partial<SchedulingInput> = {}): SchedulingResult {
  return schedule(anInput({ pods: [pod], pools: [zonalPool()], ...overrides }))
}

/** The one claim of a result without failures. */
function onlyClaim({ claims, failures }: SchedulingResult): NewClaim | undefined {
  assert.deepEqual(failures, [])
  assert.equal(claims.length, 1)
  return claims[0]
}

/** What a claim says of `size` when the pool states `requirements` on it. */
function sizeOf(...requirements: readonly Omit<Requirement, 'key'>[]): readonly Requirement[] {
  const pool = zonalPool(...requirements.map((rest) => ({ key: size, ...rest })))
  return requirementsOn(onlyClaim(scheduled(aPod(), { pools: [pool] })), size)
}

function zoneOf(claim: NewClaim | undefined): readonly (readonly string[] | undefined)[] {
  return requirementsOn(claim, labels.zone).map(({ values }) => values)
}

describe('keys', () => {
  test('SCH-30 the beta zone label in a selector means the zone', () => {
    const beta = 'failure-domain.beta.kubernetes.io/zone'
    for (const spec of [
      { nodeSelector: { [beta]: 'zone-2' } },
      requiring([anExpression(beta, 'In', 'zone-2')]),
    ]) {
      const claim = onlyClaim(scheduled(aPod({}, spec)))
      assert.deepEqual(zoneOf(claim), [['zone-2']])
      assert.deepEqual(requirementsOn(claim, beta), [])
    }
    const nodes = [aNode('n1'), aNode('n2', { labels: { [labels.zone]: 'zone-2' } })]
    const pod = aPod({}, { nodeSelector: { [beta]: 'zone-2' } })
    assert.deepEqual(placedOn(scheduled(pod, { nodes })), { [pod.metadata.name]: 'n2' })
  })

  test('SCH-31 a custom label that no pool defines may only be wanted absent', () => {
    const refused: readonly NodeSelectorRequirement[] = [
      anExpression(team, 'In', 'blue'),
      anExpression(team, 'Exists'),
      anExpression(team, 'Gt', '1'),
    ]
    for (const expression of refused) {
      const pod = aPod({}, requiring([expression]))
      const result = scheduled(pod)
      assert.deepEqual(result.claims, [], expression.operator)
      assert.match(failureTexts(result)[pod.metadata.name] ?? '', /example\.com\/team/, expression.operator)
    }
    const accepted = [anExpression(team, 'NotIn', 'blue'), anExpression(team, 'DoesNotExist')]
    for (const expression of accepted) onlyClaim(scheduled(aPod({}, requiring([expression]))))
  })

  test('SCH-32 what the pool and the pod both allow becomes the label of the node', () => {
    const pool = zonalPool({ key: team, operator: 'In', values: ['a'] })
    const claim = onlyClaim(
      scheduled(aPod({}, requiring([anExpression(team, 'In', 'a', 'b')])), { pools: [pool] }),
    )
    assert.equal(claim?.labels[team], 'a')
    assert.deepEqual(requirementsOn(claim, team), [{ key: team, operator: 'In', values: ['a'] }])
  })

  test('SCH-165 a key that the real node lacks stays lacking, whatever was placed before', () => {
    const declining = aPod({ cpu: '2' }, requiring([anExpression(team, 'NotIn', 'a')]))
    const wanting = aPod({ cpu: '1' }, requiring([anExpression(team, 'In', 'b')]))
    const pool = zonalPool({ key: team, operator: 'In', values: ['b'] })
    const result = schedule(anInput({ pods: [declining, wanting], nodes: [aNode('n1')], pools: [pool] }))
    assert.deepEqual(placedOn(result), { [declining.metadata.name]: 'n1' })
    assert.deepEqual(podNames(onlyClaim(result)?.pods ?? []), [wanting.metadata.name])
  })
})

describe('bounds and minValues', () => {
  test('SCH-33 bounds on one key meet in the narrower one', () => {
    assert.deepEqual(sizeOf({ operator: 'Gt', values: ['4'] }, { operator: 'Gte', values: ['5'] }), [
      { key: size, operator: 'Gte', values: ['5'] },
    ])
    assert.deepEqual(sizeOf({ operator: 'Gt', values: ['5'] }, { operator: 'Gte', values: ['5'] }), [
      { key: size, operator: 'Gte', values: ['6'] },
    ])
  })

  test('SCH-34 bounds without a number between them mean that the key does not exist', () => {
    const bounds: readonly Omit<Requirement, 'key'>[] = [
      { operator: 'Gt', values: ['9'] },
      { operator: 'Lt', values: ['1'] },
    ]
    const [above, below] = bounds.map((rest) => valueSet({ key: size, ...rest }))
    assert.ok(above !== undefined && below !== undefined)
    assert.equal(operatorOf(intersection(above, below)), 'DoesNotExist')
  })

  test('RPT-50 a pool whose requirements contradict each other launches nothing', () => {
    const contradictions: readonly (readonly Omit<Requirement, 'key'>[])[] = [
      [
        { operator: 'Gt', values: ['9'] },
        { operator: 'Lt', values: ['1'] },
      ],
      [
        { operator: 'In', values: ['1'] },
        { operator: 'In', values: ['2'] },
      ],
      [{ operator: 'In', values: ['1'] }, { operator: 'DoesNotExist' }],
      [{ operator: 'Exists' }, { operator: 'DoesNotExist' }],
    ]
    for (const terms of contradictions) {
      const pools = [zonalPool(...terms.map((rest) => ({ key: size, ...rest })))]
      for (const pod of [aPod(), aPod({}, requiring([anExpression(size, 'DoesNotExist')]))]) {
        const { claims, failures } = scheduled(pod, { pools })
        assert.deepEqual([claims, podNames(failures.map((each) => each.pod))], [[], [pod.metadata.name]])
      }
    }
  })

  test('SCH-35 a lower and an upper bound are two entries of the claim', () => {
    assert.deepEqual(sizeOf({ operator: 'Gte', values: ['8'] }, { operator: 'Lte', values: ['8'] }), [
      { key: size, operator: 'Gte', values: ['8'] },
      { key: size, operator: 'Lte', values: ['8'] },
    ])
  })

  test('SCH-36 a value that is not a number never meets a bound', () => {
    const pools = [zonalPool({ key: size, operator: 'Gt', values: ['1'] })]
    const pod = aPod({}, requiring([anExpression(size, 'In', 'A')]))
    const result = scheduled(pod, { pools })
    assert.deepEqual(result.claims, [])
    assert.match(failureTexts(result)[pod.metadata.name] ?? '', /example\.com\/size Exists >=2.*In \[A\]/)
    const mixed = aPod({}, requiring([anExpression(size, 'In', 'A', '3')]))
    assert.equal(onlyClaim(scheduled(mixed, { pools }))?.labels[size], '3')
  })

  test('SCH-37 an excluded value outside of the bounds is dropped, the bound remains', () => {
    assert.deepEqual(sizeOf({ operator: 'NotIn', values: ['A'] }, { operator: 'Gt', values: ['1'] }), [
      { key: size, operator: 'Gte', values: ['2'] },
    ])
  })

  test('SCH-38 of two minValues on one key the larger holds', () => {
    const pool = zonalPool(
      { key: labels.instanceType, operator: 'Exists', minValues: 1 },
      { key: labels.instanceType, operator: 'NotIn', values: ['type-16'], minValues: 3 },
    )
    const fitting = onlyClaim(scheduled(aPod({ cpu: '1' }), { pools: [pool] }))
    assert.deepEqual(requirementsOn(fitting, labels.instanceType), [
      { key: labels.instanceType, operator: 'In', values: ['type-2', 'type-4', 'type-8'], minValues: 3 },
    ])
    // Only two types hold it, which the lower minValues alone would allow.
    const narrow = scheduled(aPod({ cpu: '3' }), { pools: [pool] })
    assert.deepEqual([narrow.claims.length, narrow.failures.length], [0, 1])
  })
})

describe('terms and preferences', () => {
  test('SCH-39 required terms are taken in turn until one can be met', () => {
    const spec = requiring([inZone('mars')], [inZone('venus')], [inZone('zone-1')], [inZone('zone-2')])
    assert.deepEqual(zoneOf(onlyClaim(scheduled(aPod({}, spec)))), [['zone-1']])
  })

  test('SCH-40 a single required term is never given up', () => {
    const pod = aPod({}, requiring([inZone('mars')]))
    const result = scheduled(pod, { nodes: [aNode('n1')] })
    assert.deepEqual([result.claims, result.placements], [[], []])
    assert.match(failureTexts(result)[pod.metadata.name] ?? '', /topology\.kubernetes\.io\/zone In \[mars\]/)
  })

  test('SCH-41 the heaviest preference that can be met is', () => {
    for (const spec of [
      preferring([100, inZone('mars')], [50, inZone('zone-2')]),
      preferring([50, inZone('zone-2')], [100, inZone('mars')]),
      preferring([1, inZone('zone-3')], [50, inZone('zone-2')], [100, inZone('mars')]),
    ]) {
      assert.deepEqual(zoneOf(onlyClaim(scheduled(aPod({}, spec)))), [['zone-2']])
    }
  })

  test('SCH-42 a requirement wins over a preference against it', () => {
    const required = requiring([inZone('zone-1')]).affinity?.nodeAffinity
    const preferred = preferring([1, inZone('zone-2')]).affinity?.nodeAffinity
    const pod = aPod({}, { affinity: { nodeAffinity: { ...required, ...preferred } } })
    assert.deepEqual(zoneOf(onlyClaim(scheduled(pod))), [['zone-1']])
  })

  test('SCH-43 with policy Ignore a preference that cannot be met does not keep a pod off a node', () => {
    const pod = aPod({}, preferring([1, inZone('mars')]))
    const policy = { ...strictPolicy, preferences: 'Ignore' as const }
    const result = scheduled(pod, { nodes: [aNode('n1')], policy })
    assert.deepEqual(placedOn(result), { [pod.metadata.name]: 'n1' })
    assert.deepEqual([result.claims, result.failures], [[], []])
  })

  test('SCH-172 for a preference, Respect opens a node where Ignore uses one that is there', () => {
    const pod = aPod({}, preferring([1, inZone('zone-2')]))
    const nodes = [aNode('n1')]
    const respected = scheduled(pod, { nodes })
    assert.deepEqual(respected.placements, [])
    assert.deepEqual(zoneOf(onlyClaim(respected)), [['zone-2']])
    const policy = { ...strictPolicy, preferences: 'Ignore' as const }
    const ignored = scheduled(pod, { nodes, policy })
    assert.deepEqual(placedOn(ignored), { [pod.metadata.name]: 'n1' })
    assert.deepEqual(ignored.claims, [])
  })

  test('required terms are used up before preferences are given up', () => {
    const required = requiring([inZone('zone-1')], [inZone('zone-3')]).affinity?.nodeAffinity
    const preferred = preferring([1, inZone('mars')]).affinity?.nodeAffinity
    const pod = aPod({}, { affinity: { nodeAffinity: { ...required, ...preferred } } })
    assert.deepEqual(zoneOf(onlyClaim(scheduled(pod))), [['zone-3']])
  })

  test('RPT-15 a preference that cannot be met blocks none of the required terms', () => {
    const required = requiring([inZone('zone-1')], [inZone('mars')]).affinity?.nodeAffinity
    const preferred = preferring([1, inZone('venus')]).affinity?.nodeAffinity
    const pod = aPod({}, { affinity: { nodeAffinity: { ...required, ...preferred } } })
    assert.deepEqual(zoneOf(onlyClaim(scheduled(pod))), [['zone-1']])
  })

  test('terms that say the same are tried once', () => {
    const pod = aPod({}, requiring([inZone('mars')], [inZone('mars')]))
    assert.deepEqual(podNames(scheduled(pod).failures.map((each) => each.pod)), [pod.metadata.name])
  })

  test('RPT-13 a term about hosts is one of several', () => {
    const { hostname } = labels
    for (const operator of ['In', 'NotIn'] as const) {
      const pod = aPod({}, requiring([anExpression(hostname, operator, 'x')], [inZone('zone-1')]))
      assert.equal(validatePod(pod, lookupsOf(), strictPolicy), undefined)
      assert.equal(scheduled(pod).claims.length, 1)
    }
  })
})
