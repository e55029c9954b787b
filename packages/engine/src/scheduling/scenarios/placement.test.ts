/** Plans that kube-scheduler follows, and that buy no node in vain (reports-2.md 15). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels, type Offering, type Pod, type PodSpec } from '@tenon/api'
import type { SchedulingInput, SchedulingPolicy } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import { violationsOf } from '../../testing/checker/checker.test-support.ts'
import {
  aCluster,
  aFullNode,
  anAppPod,
  anInput,
  aNode,
  anOffering,
  boundTo,
  aPool,
  aPoolInput,
  aType,
  podsPerDomain,
  preferringPods,
  requiring,
  requiringPods,
  soldAs,
  spreading,
  strictPolicy,
  times,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

/** What first fit decides, and what it comes to when cheaper plans are looked for. */
function decided(input: SchedulingInput): readonly SchedulingResult[] {
  const policies = [input.policy, { ...input.policy, improvement: 'planned' as const }]
  const results = policies.map((policy) => schedule({ ...input, policy }))
  for (const result of results) assert.deepEqual(violationsOf(input, result), [])
  return results
}

describe('RPB-51 zones of a type that is reserved in another one', () => {
  const reservation = 'example.com/reservation'
  const policy: SchedulingPolicy = {
    ...strictPolicy,
    wellKnownLabels: new Set([...strictPolicy.wellKnownLabels, reservation]),
    reservations: { label: reservation, mode: 'Strict' },
  }
  const unreserved = (zone: string): Offering => {
    const offering = anOffering('on-demand', 0.2, zone)
    const none = { key: reservation, operator: 'DoesNotExist' as const }
    return { ...offering, requirements: [...offering.requirements, none] }
  }
  /** On demand in zones 1 and 3, reserved in zone 2. */
  const reservable = (reservationCapacity: number): InstanceType => {
    const available = reservationCapacity > 0
    const offering = anOffering('reserved', 0.001, 'zone-2', { available, reservationCapacity })
    const id = { key: reservation, operator: 'In' as const, values: ['r-1'] }
    const reserved = { ...offering, requirements: [...offering.requirements, id] }
    return soldAs(aType('r', 4, 16), unreserved('zone-1'), unreserved('zone-3'), reserved)
  }
  const large = (count: number, spec: Partial<PodSpec>): Pod[] => times(count, () => anAppPod('a', spec, '3'))
  const inputOf = (pods: readonly Pod[], capacity: number): SchedulingInput =>
    anInput({ pods, pools: [aPoolInput(aPool(), [reservable(capacity)])], policy })

  test('RPB-51 pods spread over the zones where the type is sold on demand when the reservation is used up', () => {
    for (const { claims, failures } of decided(inputOf(large(3, spreading(labels.zone, 'a')), 0))) {
      assert.deepEqual(podsPerDomain(claims, labels.zone), { 'zone-1': 1, 'zone-3': 1 })
      assert.equal(failures.length, 1)
    }
  })

  test('RPB-51 pods spread over all three zones while the reservation has room for all', () => {
    for (const { claims } of decided(inputOf(large(3, spreading(labels.zone, 'a')), 3)))
      assert.deepEqual(podsPerDomain(claims, labels.zone), { 'zone-1': 1, 'zone-2': 1, 'zone-3': 1 })
  })

  test('RPB-51 pods that have to be together are where the type is sold on demand', () => {
    const together = requiringPods('podAffinity', labels.zone, 'a')
    for (const { claims, failures } of decided(inputOf(large(2, together), 0))) {
      assert.deepEqual(failures, [])
      assert.deepEqual(podsPerDomain(claims, labels.zone), { 'zone-1': 2 })
    }
  })
})

test('RPB-51 a pod that would rather be apart shares a node where a second one would be in the same zone', () => {
  const only = aType('only', 4, 16)
  const apart = preferringPods('podAntiAffinity', labels.zone, 'b')
  const pods = [anAppPod('b', {}, '1'), anAppPod('b', apart, '1')]
  for (const { claims } of decided(anInput({ pods, pools: [aPoolInput(aPool(), [only])] })))
    assert.deepEqual(
      claims.map((claim) => claim.pods.length),
      [2],
    )
})

describe('RPB-51 zones that a plan opens itself', () => {
  const zones = ['zone-1', 'zone-2', 'zone-3']
  const small = aType('small', 8, 32, zones)
  const gpu: InstanceType = {
    ...aType('gpu', 8, 32, zones.slice(1)),
    capacity: { ...aType('gpu', 8, 32).capacity, 'example.com/gpu': 1 },
  }
  const onGpu = (): Pod => {
    const pod = anAppPod('g', spreading(labels.zone, 'g'))
    const requests = { cpu: '4', 'example.com/gpu': '1' }
    return { ...pod, spec: { ...pod.spec, containers: [{ name: 'app', resources: { requests } }] } }
  }
  const decidedFor = (pods: readonly Pod[]) =>
    decided(anInput({ pods, pools: [aPoolInput(aPool(), [small, gpu])] }))

  for (const [when, cpu] of [
    ['before', '7'],
    ['after', '1'],
  ] as const)
    test(`RPB-51 no node is bought that a zone makes useless which is opened ${when} the pods are placed`, () => {
      const pinned = anAppPod('web', { nodeSelector: { [labels.zone]: 'zone-1' } }, cpu)
      for (const { claims, failures } of decidedFor([...times(4, onGpu), pinned])) {
        assert.deepEqual(podsPerDomain(claims, labels.zone), { 'zone-1': 1, 'zone-2': 1, 'zone-3': 1 })
        assert.equal(failures.length, 2)
      }
    })

  test('RPB-51 zones that nobody opens do not count', () => {
    for (const { claims } of decidedFor(times(4, onGpu)))
      assert.deepEqual(podsPerDomain(claims, labels.zone), { 'zone-2': 2, 'zone-3': 2 })
  })
})

test('RPB-51 a pod that may be anywhere leaves the capacity type to one that can have no other', () => {
  const sold = soldAs(
    aType('small', 4, 16),
    anOffering('spot', 0.08, 'zone-1'),
    anOffering('on-demand', 0.12, 'zone-2'),
    anOffering('on-demand', 0.12, 'zone-3'),
  )
  const byCapacityType = (): Partial<PodSpec> => {
    const [constraint] = spreading(labels.capacityType, 'd').topologySpreadConstraints ?? []
    assert.ok(constraint)
    return { topologySpreadConstraints: [{ ...constraint, nodeAffinityPolicy: 'Ignore' }] }
  }
  const pods = [
    anAppPod('d', byCapacityType(), '1'),
    anAppPod('d', { ...byCapacityType(), nodeSelector: { [labels.zone]: 'zone-1' } }, '1'),
  ]
  for (const { claims, failures } of decided(anInput({ pods, pools: [aPoolInput(aPool(), [sold])] }))) {
    assert.deepEqual(failures, [])
    assert.deepEqual(podsPerDomain(claims, labels.capacityType), { spot: 1, 'on-demand': 1 })
  }
})

describe('RPB-51 a pod of which one of several terms must hold', () => {
  const zones = ['zone-1', 'zone-2']
  const inOneOf = (...values: readonly string[]): Partial<PodSpec> =>
    requiring(...values.map((value) => [{ key: labels.zone, operator: 'In' as const, values: [value] }]))
  const pools = [aPoolInput(aPool(), [aType('any', 4, 16, zones)])]

  test('RPB-51 goes to a node that is there and meets the second term', () => {
    const node = aNode('there', { labels: { [labels.zone]: 'zone-2' } })
    const pods = [anAppPod('a', inOneOf('zone-1', 'zone-2'), '1')]
    for (const { claims, placements } of decided(anInput({ pods, pools, nodes: [node] })))
      assert.deepEqual([claims.length, placements.map((each) => each.node)], [0, ['there']])
  })

  test('RPB-51 shares a node of this decision that meets the second term', () => {
    const pods = [
      anAppPod('a', { nodeSelector: { [labels.zone]: 'zone-2' } }, '2'),
      anAppPod('a', inOneOf('zone-1', 'zone-2'), '1'),
    ]
    for (const { claims } of decided(anInput({ pods, pools })))
      assert.deepEqual(podsPerDomain(claims, labels.zone), { 'zone-2': 2 })
  })

  test('RPB-51 gets a node for the first term where none is there', () => {
    const pods = [anAppPod('a', inOneOf('zone-1', 'zone-2'), '1')]
    for (const { claims } of decided(anInput({ pods, pools })))
      assert.deepEqual(podsPerDomain(claims, labels.zone), { 'zone-1': 1 })
  })
})

test('RPB-52 a pod of several terms that starts its affinity goes to a node that one of them allows', () => {
  const notIn = (zone: string) => [{ key: labels.zone, operator: 'NotIn' as const, values: [zone] }]
  const { affinity = {} } = requiring(notIn('zone-1'), notIn('zone-2'))
  const pod = anAppPod('a', {
    affinity: { ...affinity, ...requiringPods('podAffinity', labels.zone, 'a').affinity },
  })
  const there = aNode('there', { labels: { [labels.zone]: 'zone-1' } })
  // A zone that the first term allows is there, too, but nobody tolerates its node.
  const closed = aFullNode('closed', 'zone-3')
  const input = anInput({ pods: [pod], nodes: [there, closed], topology: aCluster([there, closed]) })
  for (const { claims, placements } of decided(input))
    assert.deepEqual([claims.length, placements.map((each) => each.node)], [0, ['there']])
})

test('RPB-51 a zone counts from the launch of its node on, before there is a Node', () => {
  const zones = ['zone-2', 'zone-3']
  const large = aType('large', 64, 64, zones)
  const onTheirWay = ['zone-1', ...zones].map((zone) =>
    aNode(`launched-${zone}`, { initialized: false, labels: { [labels.zone]: zone } }),
  )
  const running = zones.map((zone) =>
    boundTo(`launched-${zone}`, anAppPod('g', spreading(labels.zone, 'g'), '1')),
  )
  const seen = onTheirWay.slice(1)
  const late = anInput({
    pods: [anAppPod('g', spreading(labels.zone, 'g'), '40')],
    nodes: onTheirWay,
    pools: [aPoolInput(aPool(), [large])],
    topology: aCluster(seen, running),
  })
  for (const { claims, failures } of decided(late)) assert.deepEqual([claims.length, failures.length], [0, 1])
})
