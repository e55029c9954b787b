/** Which NodePool serves a pod, and what happens when one has nothing to offer (scheduling.md 3, 5). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels } from '@tenon/api'
import {
  aNode,
  anExpression,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  failureTexts,
  placedOn,
  preferring,
  requiring,
  requirementsOn,
  strictPolicy,
  typesIn,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

const soft = { taints: [{ key: 'example.com/soft', value: 'yes', effect: 'PreferNoSchedule' as const }] }
const bogusType = { requirements: [anExpression(labels.instanceType, 'In', 'type-99')] }

describe('the order of NodePools', () => {
  test('SCH-21 of the weights 100, 20 and none, the pool with 100 is used', () => {
    const pools = [aPool('a-none'), aPool('b-high', { weight: 100 }), aPool('c-low', { weight: 20 })]
    const { claims, failures } = schedule(
      anInput({ pods: [aPod()], pools: pools.map((pool) => aPoolInput(pool)) }),
    )
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => claim.nodePool),
      ['b-high'],
    )
  })

  test('SCH-22 of equal weights, the name later in the alphabet is used', () => {
    for (const weight of [undefined, 7]) {
      const spec = weight === undefined ? {} : { weight }
      for (const names of [
        ['a', 'b'],
        ['b', 'a'],
      ]) {
        const pools = names.map((name) => aPoolInput(aPool(name, spec)))
        const { claims } = schedule(anInput({ pods: [aPod()], pools }))
        assert.deepEqual(
          claims.map((claim) => claim.nodePool),
          ['b'],
        )
      }
    }
  })

  test('SCH-23 a pod that selects the pool of low weight by its label gets it', () => {
    const pools = [aPoolInput(aPool('high', { weight: 100 })), aPoolInput(aPool('low', { weight: 1 }))]
    const { claims, failures } = schedule(
      anInput({ pods: [aPod({}, { nodeSelector: { [labels.nodePool]: 'low' } })], pools }),
    )
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => [claim.nodePool, claim.labels[labels.nodePool]]),
      [['low', 'low']],
    )
  })
})

describe('NodePools without usable types', () => {
  test('SCH-27 a pool whose requirements match no type is named, and the pod fails', () => {
    const pod = aPod()
    const result = schedule(anInput({ pods: [pod], pools: [aPoolInput(aPool('odd', {}, bogusType))] }))
    assert.deepEqual(result.poolsWithoutTypes, [{ nodePool: 'odd', becauseOfMinValues: false }])
    assert.deepEqual(result.claims, [])
    assert.deepEqual(
      result.failures.map((failure) => [failure.pod, failure.reason.kind]),
      [[pod, 'noTypesInPools']],
    )
    assert.match(failureTexts(result)[pod.metadata.name] ?? '', /leave no usable instance type/)
  })

  test('a pool without types is named while the others serve', () => {
    const pools = [aPoolInput(aPool('odd', { weight: 9 }, bogusType)), aPoolInput(aPool('rest'))]
    const { claims, failures, poolsWithoutTypes } = schedule(anInput({ pods: [aPod()], pools }))
    assert.deepEqual(poolsWithoutTypes, [{ nodePool: 'odd', becauseOfMinValues: false }])
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => claim.nodePool),
      ['rest'],
    )
  })

  test('a pool that only its minValues leave without types is named with that cause, if they are strict', () => {
    const requirements = [{ key: labels.instanceType, operator: 'Exists' as const, minValues: 5 }]
    const input = anInput({ pods: [aPod()], pools: [aPoolInput(aPool('wide', {}, { requirements }))] })
    const strict = schedule(input)
    assert.deepEqual(strict.poolsWithoutTypes, [{ nodePool: 'wide', becauseOfMinValues: true }])
    assert.deepEqual(
      strict.failures.map(({ reason }) => reason.kind),
      ['noTypesInPools'],
    )
    const relaxed = schedule({ ...input, policy: { ...strictPolicy, minValues: 'BestEffort' } })
    assert.deepEqual(relaxed.poolsWithoutTypes, [])
    assert.deepEqual(
      relaxed.claims.map((claim) => [claim.nodePool, claim.minValuesRelaxed]),
      [['wide', true]],
    )
  })

  test('SCH-153 with every template dropped, room on an existing node is still used', () => {
    const small = aPod({ cpu: '1' })
    const large = aPod({ cpu: '5' })
    const result = schedule(
      anInput({
        pods: [small, large],
        nodes: [aNode('n1')],
        pools: [aPoolInput(aPool('odd', {}, bogusType))],
      }),
    )
    assert.deepEqual(placedOn(result), { [small.metadata.name]: 'n1' })
    assert.deepEqual(result.claims, [])
    assert.deepEqual(
      result.failures.map(({ pod, reason }) => [pod, reason.kind]),
      [[large, 'noTypesInPools']],
    )
  })
})

describe('NodePools with a PreferNoSchedule taint', () => {
  test('SCH-28 a plain pool is used in their place, whatever its weight', () => {
    const pools = [aPoolInput(aPool('soft', { weight: 100 }, soft)), aPoolInput(aPool('plain'))]
    const { claims, failures } = schedule(anInput({ pods: [aPod()], pools }))
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => claim.nodePool),
      ['plain'],
    )
  })

  test('SCH-29 alone, the pool is used after every preference of the pod was given up', () => {
    const demands = {
      affinity: {
        ...preferring([1, anExpression(labels.zone, 'In', 'zone-2')]).affinity,
        podAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, podAffinityTerm: { topologyKey: labels.zone, labelSelector: {} } },
          ],
        },
      },
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: labels.zone,
          whenUnsatisfiable: 'ScheduleAnyway' as const,
          labelSelector: {},
        },
      ],
    }
    const types = typesIn('zone-1', 'zone-2')
    const pods = [aPod({}, demands)]
    const plain = schedule(anInput({ pods, pools: [aPoolInput(aPool('plain'), types)] }))
    assert.deepEqual(
      plain.claims.map((claim) => requirementsOn(claim, labels.zone)),
      [[{ key: labels.zone, operator: 'In', values: ['zone-2'] }]],
    )
    const tainted = schedule(anInput({ pods, pools: [aPoolInput(aPool('soft', {}, soft), types)] }))
    assert.deepEqual(tainted.failures, [])
    assert.deepEqual(
      tainted.claims.map((claim) => [claim.nodePool, requirementsOn(claim, labels.zone)]),
      [['soft', []]],
    )
  })

  test('a pod whose last node affinity term nothing meets is placed by an earlier one', () => {
    const earlier = anExpression(labels.arch, 'NotIn', 'arm64')
    const spec = requiring([earlier], [anExpression('rack', 'In', 'blue')])
    const { claims, failures } = schedule(
      anInput({ pods: [aPod({}, spec)], pools: [aPoolInput(aPool('soft', {}, soft))] }),
    )
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => claim.nodePool),
      ['soft'],
    )
  })

  test('only a NodePool’s taint lets a pod onto a node with such a taint, never the node’s own', () => {
    const nodes = [aNode('n1', soft)]
    const full = { limits: { nodes: '0' } }
    const alone = schedule(anInput({ pods: [aPod()], nodes, pools: [aPoolInput(aPool('plain', full))] }))
    assert.deepEqual(alone.placements, [])
    assert.equal(alone.failures.length, 1)
    const pool = aPoolInput(aPool('soft', full, soft))
    const enabled = schedule(anInput({ pods: [aPod()], nodes, pools: [pool] }))
    assert.deepEqual(Object.values(placedOn(enabled)), ['n1'])
    assert.deepEqual(enabled.failures, [])
  })
})
