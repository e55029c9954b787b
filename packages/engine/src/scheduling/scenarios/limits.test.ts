/** Limits of NodePools, minValues, and the order of types (scheduling.md 4, 10, 11.2, 16). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type Requirement, type RequirementOperator } from '@tenon/api'
import type { PoolInput, SchedulingPolicy } from '../../input/input.ts'
import {
  anAppPod,
  anInput,
  anOffering,
  aPod,
  aPool,
  aPoolInput,
  aType,
  failureTexts,
  podNames,
  requirementsOn,
  requiringPods,
  soldAs,
  strictPolicy,
  times,
  typesIn,
} from '../../testing/builders.test-support.ts'
import { nextLoop } from '../../testing/next-loop.test-support.ts'
import { schedule } from '../schedule.ts'

const bestEffort: SchedulingPolicy = { ...strictPolicy, minValues: 'BestEffort' }
const types = typesIn('zone-1', 'zone-2', 'zone-3')

/** A pod that shares its node with none of its kind. */
const alone = (cpu: string) => anAppPod('web', requiringPods('podAntiAffinity', labels.hostname, 'web'), cpu)

function atLeast(
  minValues: number,
  key: string,
  operator: RequirementOperator = 'Exists',
  ...values: readonly string[]
): Requirement {
  return values.length === 0 ? { key, operator, minValues } : { key, operator, values, minValues }
}

/** A pool that needs a choice of types, of 4 and 8 cores by default. */
function choosy(minValues: number, spec: object = {}, sizes: readonly number[] = [4, 8]): PoolInput {
  const pool = aPool('choosy', spec, { requirements: [atLeast(minValues, labels.instanceType)] })
  return aPoolInput(
    pool,
    sizes.map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4)),
  )
}

describe('limits', () => {
  test('SCH-125 a pod whose node would exceed the cpu limit stays pending', () => {
    const pools = [aPoolInput(aPool('default', { limits: { cpu: '2' } }), types)]
    const pod = aPod({ cpu: '2100m' })
    const result = schedule(anInput({ pods: [pod], pools }))
    assert.deepEqual(result.claims, [])
    assert.deepEqual(Object.keys(failureTexts(result)), [pod.metadata.name])
    assert.equal(schedule(anInput({ pods: [aPod({ cpu: '2' })], pools })).claims.length, 1)
  })

  test('SCH-126 of two nodes of two cores a limit of three allows one', () => {
    const pools = [aPoolInput(aPool('default', { limits: { cpu: '3' } }), types)]
    const result = schedule(anInput({ pods: times(2, () => alone('1500m')), pools }))
    assert.deepEqual(
      result.claims.map((claim) => [claim.pods.length, claim.instanceTypes]),
      [[1, ['type-2']]],
    )
    assert.equal(result.failures.length, 1)
    assert.match(Object.values(failureTexts(result))[0] ?? '', /limit/)
  })

  test('SCH-127 two nodes use up a limit of two nodes', () => {
    const pools = [aPoolInput(aPool('default', { limits: { nodes: '2' } }), types)]
    const input = anInput({ pods: times(2, () => alone('1')), pools })
    const first = schedule(input)
    assert.equal(first.claims.length, 2)
    const third = alone('1')
    const second = schedule(nextLoop(input, first, [third]))
    assert.deepEqual([second.claims, second.placements], [[], []])
    assert.deepEqual(Object.keys(failureTexts(second)), [third.metadata.name])
    assert.match(failureTexts(second)[third.metadata.name] ?? '', /limit on the number of nodes/)
  })
})

describe('minValues', () => {
  test('SCH-129 three types wanted of two: nothing under Strict, two under BestEffort', () => {
    const input = anInput({ pods: [aPod({ cpu: '3' })], pools: [choosy(3)] })
    const strict = schedule(input)
    assert.deepEqual([strict.claims, strict.failures.length], [[], 1])
    assert.deepEqual(strict.poolsWithoutTypes, [{ nodePool: 'choosy', becauseOfMinValues: true }])

    const { claims, failures, poolsWithoutTypes } = schedule({ ...input, policy: bestEffort })
    assert.deepEqual([failures, poolsWithoutTypes], [[], []])
    assert.equal(claims.length, 1)
    assert.deepEqual(requirementsOn(claims[0], labels.instanceType), [
      { key: labels.instanceType, operator: 'In', values: ['type-4', 'type-8'], minValues: 2 },
    ])
    assert.equal(claims[0]?.minValuesRelaxed, true)
  })

  test('SCH-130 the pool of higher weight is relaxed before one without minValues is used', () => {
    const { claims, failures } = schedule(
      anInput({
        pods: [aPod({ cpu: '3' })],
        pools: [choosy(3, { weight: 10 }), aPoolInput(aPool('plain'), types)],
        policy: bestEffort,
      }),
    )
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => [claim.nodePool, claim.minValuesRelaxed]),
      [['choosy', true]],
    )
  })

  test('SCH-131 pods that fit together on one type alone get two claims where two types are wanted', () => {
    const { claims, failures } = schedule(
      anInput({ pods: times(2, () => aPod({ cpu: '3' })), pools: [choosy(2)] }),
    )
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => [claim.pods.length, claim.instanceTypes, claim.minValuesRelaxed]),
      [
        [1, ['type-4', 'type-8'], false],
        [1, ['type-4', 'type-8'], false],
      ],
    )
  })

  test('SCH-132 a list cut below minValues fails every pod of its claim', () => {
    const pods = times(2, () => aPod({ cpu: '1' }))
    const policy = { ...strictPolicy, maxInstanceTypes: 1 }
    const cut = schedule(anInput({ pods, pools: [choosy(2)], policy }))
    assert.deepEqual([cut.claims, cut.placements], [[], []])
    assert.deepEqual(Object.keys(failureTexts(cut)).toSorted(), podNames(pods))
    for (const text of Object.values(failureTexts(cut))) assert.match(text, /minValues/)

    const kept = schedule(
      anInput({ pods, pools: [choosy(2)], policy: { ...bestEffort, maxInstanceTypes: 1 } }),
    )
    assert.deepEqual(
      kept.claims.map((claim) => [claim.pods.length, claim.instanceTypes]),
      [[2, ['type-4']]],
    )
  })

  test('SCH-169 a zone that no type is in lowers minValues and stays listed', () => {
    const wanted = ['zone-1', 'zone-2', 'zone-3']
    const pool = aPool('default', {}, { requirements: [atLeast(3, labels.zone, 'In', ...wanted)] })
    const { claims, failures } = schedule(
      anInput({
        pods: [aPod()],
        pools: [aPoolInput(pool, typesIn('zone-1', 'zone-2'))],
        policy: bestEffort,
      }),
    )
    assert.deepEqual(failures, [])
    assert.equal(claims.length, 1)
    assert.deepEqual(requirementsOn(claims[0], labels.zone), [
      { key: labels.zone, operator: 'In', values: wanted, minValues: 2 },
    ])
    assert.equal(claims[0]?.minValuesRelaxed, true)
  })
})

describe('the order of types', () => {
  test('SCH-170 a claim limited to on-demand ranks its types by their on-demand prices', () => {
    const sold = (name: string, spot: number, onDemand: number) =>
      soldAs(aType(name, 4, 16), anOffering('spot', spot), anOffering('on-demand', onDemand))
    const list = [sold('a', 0.01, 0.9), sold('b', 0.4, 0.5), sold('c', 0.02, 0.7)]
    const run = (requirements: readonly Requirement[]) =>
      schedule(anInput({ pods: [aPod()], pools: [aPoolInput(aPool('default', {}, { requirements }), list)] }))
    const onDemand = run([{ key: labels.capacityType, operator: 'In', values: ['on-demand'] }])
    assert.deepEqual(
      onDemand.claims.map((claim) => [claim.instanceTypes, claim.pricePerHour]),
      [[['b', 'c', 'a'], 0.5]],
    )
    assert.deepEqual(
      run([]).claims.map((claim) => [claim.instanceTypes, claim.pricePerHour]),
      [[['a', 'c', 'b'], 0.01]],
    )
  })
})
