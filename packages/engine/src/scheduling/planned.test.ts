import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  anAppPod,
  aNode,
  anInput,
  aPod,
  aPoolInput,
  aType,
  requiringPods,
  spreading,
  strictPolicy,
  times,
} from '../testing/builders.test-support.ts'
import { schedule } from './schedule.ts'

describe('pods with a plan', () => {
  test('stay on the node that was launched for them, though another one comes first', () => {
    const pods = [aPod({ cpu: '1' }), aPod({ cpu: '1' })]
    const nodes = [aNode('a'), aNode('b')]
    const planned = new Map(pods.map((pod) => [pod.metadata.uid ?? '', 'b']))
    const { placements } = schedule(anInput({ pods, nodes, planned }))
    assert.deepEqual(
      placements.map(({ node }) => node),
      ['b', 'b'],
    )
  })

  test('are placed before others can take their room', () => {
    const small = aPod({ cpu: '3' })
    const large = aPod({ cpu: '4' })
    const planned = new Map([[small.metadata.uid ?? '', 'a']])
    const { placements, claims } = schedule(anInput({ pods: [large, small], nodes: [aNode('a')], planned }))
    assert.deepEqual(placements, [{ pod: small, node: 'a' }])
    assert.deepEqual(
      claims.map(({ pods }) => pods),
      [[large]],
    )
  })

  test('go elsewhere once their node has gone or no longer holds them', () => {
    const [one, two] = [aPod({ cpu: '1' }), aPod({ cpu: '8' })]
    const planned = new Map([one, two].map((pod, i) => [pod.metadata.uid ?? '', i === 0 ? 'gone' : 'a']))
    const { placements, claims } = schedule(anInput({ pods: [one, two], nodes: [aNode('a')], planned }))
    assert.deepEqual(placements, [{ pod: one, node: 'a' }])
    assert.deepEqual(
      claims.map(({ pods }) => pods),
      [[two]],
    )
  })

  test('change places rather than have a node launched for one whose room was taken', () => {
    const [small, large] = [aPod({ cpu: '3' }), aPod({ cpu: '4' })]
    const nodes = [aNode('a'), aNode('b', { available: { cpu: 3000, memory: 1024 ** 4, pods: 110 } })]
    const planned = new Map([[small.metadata.uid ?? '', 'a']])
    const result = schedule(anInput({ pods: [large, small], nodes, planned }))
    assert.deepEqual(result.claims, [])
    const nodeOf = new Map(result.placements.map(({ pod, node }) => [pod, node]))
    assert.deepEqual([nodeOf.get(large), nodeOf.get(small)], ['a', 'b'])
  })

  test('follow those that they have an affinity to', () => {
    const target = aPod({ cpu: '100m' })
    const labelled = { ...target, metadata: { ...target.metadata, labels: { app: 'target' } } }
    const follower = aPod({ cpu: '2' }, requiringPods('podAffinity', 'kubernetes.io/hostname', 'target'))
    const nodes = [aNode('a'), aNode('b')]
    const planned = new Map([labelled, follower].map((pod) => [pod.metadata.uid ?? '', 'b']))
    const result = schedule(anInput({ pods: [follower, labelled], nodes, planned }))
    assert.deepEqual(
      result.placements.map(({ node }) => node),
      ['b', 'b'],
    )
  })

  test('make no further node when they are decided about again', () => {
    const sizes = [1, 5, 2, 7, 3, 4, 6, 2, 1, 3, 5]
    const pods = sizes.map((cpu) => aPod({ cpu: String(cpu) }))
    const { claims } = schedule(anInput({ pods, policy: { ...strictPolicy, improvement: 'planned' } }))
    const nodes = claims.map(({ instanceTypes }, index) => {
      const cpu = Number(instanceTypes[0]?.slice('type-'.length))
      return aNode(`n-${index}`, { available: { cpu: cpu * 1000, memory: cpu * 4 * 1024 ** 3, pods: 110 } })
    })
    const planned = new Map(
      claims.flatMap((claim, index) => claim.pods.map((pod) => [pod.metadata.uid ?? '', `n-${index}`])),
    )
    const again = schedule(anInput({ pods, nodes, planned }))
    assert.deepEqual(again.claims, [])
    assert.equal(again.placements.length, pods.length)
  })
})

describe('pods that must spread over zones', () => {
  const spread = spreading('topology.kubernetes.io/zone', 'spread')
  const twins = (count: number) => times(count, () => anAppPod('spread', spread, '500m'))
  /** Two nodes of 16 cores with little room on each; first fit prefers the one with a single large pod. */
  const fillers = [aPod({ cpu: '14' }), ...times(6, () => aPod({ cpu: '2500m' }))]
  const twinsPerClaim = (count: number, improvement?: 'planned') => {
    const policy = improvement === undefined ? strictPolicy : { ...strictPolicy, improvement }
    const { claims } = schedule(anInput({ pods: [...fillers, ...twins(count)], policy }))
    return claims
      .map(({ pods }) => pods.filter(({ metadata }) => metadata.labels?.['app']).length)
      .toSorted((a, b) => a - b)
  }

  test('are kept on different nodes if they can, as the scheduler can be told of few at a time for one node', () => {
    assert.deepEqual(twinsPerClaim(2, 'planned'), [1, 1])
    assert.deepEqual(twinsPerClaim(2), [0, 2])
  })

  test('share a node rather than have one more launched', () => {
    assert.deepEqual(twinsPerClaim(4, 'planned'), [1, 3])
  })
})

test('a plan that holds wherever pods land has the fewest nodes that its price buys', () => {
  const pods = [
    ...times(3, () => aPod({ cpu: '1200m', memory: '1Gi' })),
    ...times(9, () => aPod({ cpu: '500m', memory: '3Gi' })),
  ]
  const policy = { ...strictPolicy, improvement: 'free' } as const
  const { claims, pricePerHour } = schedule(anInput({ pods, policy }))
  // One of eight cores, and one of two for what is left: five of two would cost the same.
  assert.ok(Math.abs(pricePerHour - 0.5) < 1e-6)
  assert.equal(claims.length, 2)
})

const soldAt = (name: string, cpu: number, pricePerHour: number) => {
  const type = aType(name, cpu, 4 * cpu)
  return { ...type, offerings: type.offerings.map((offering) => ({ ...offering, pricePerHour })) }
}

test('RPT-26 a plan that holds wherever pods land is not exchanged for more nodes at the same price', () => {
  const sold = [soldAt('four', 4, 0.1), soldAt('eight', 8, 0.4 + 1e-6)]
  const pods = [aPod({ cpu: '3300m' }), ...times(3, () => aPod({ cpu: '800m' }))]
  const policy = { ...strictPolicy, improvement: 'free' } as const
  const { claims } = schedule(anInput({ pods, policy, pools: [aPoolInput(undefined, sold)] }))
  assert.equal(claims.length, 1)
})

test('RPT-47 a plan that holds wherever pods land ends in no node that is too small for a pod left over', () => {
  const sold = [soldAt('three', 3, 0.28), soldAt('six', 6, 0.37), soldAt('twelve', 12, 0.75)]
  // On the node of six both small pods may come first, and the large one would need a third node.
  const pods = [aPod({ cpu: '3300m' }), ...times(2, () => aPod({ cpu: '2200m' }))]
  const policy = { ...strictPolicy, improvement: 'free' } as const
  const { claims } = schedule(anInput({ pods, policy, pools: [aPoolInput(undefined, sold)] }))
  assert.deepEqual(
    claims.map(({ instanceTypes }) => instanceTypes[0]),
    ['six', 'six'],
  )
})

test('RPT-47 a node that holds all pods is not exchanged for smaller ones that fill up as they come', () => {
  const sold = [soldAt('four', 4, 0.1), soldAt('eight', 8, 0.25)]
  // On the first node of four both small pods may come first, and a large one would need a third node.
  const pods = [...times(2, () => aPod({ cpu: '2500m' })), ...times(2, () => aPod({ cpu: '800m' }))]
  const policy = { ...strictPolicy, improvement: 'free' } as const
  const { claims } = schedule(anInput({ pods, policy, pools: [aPoolInput(undefined, sold)] }))
  assert.deepEqual(
    claims.map(({ instanceTypes }) => instanceTypes[0]),
    ['eight'],
  )
})
