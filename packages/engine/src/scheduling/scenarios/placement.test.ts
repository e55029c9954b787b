/** Plans that kube-scheduler follows, and that buy no node in vain (reports-2.md 15). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels, type Offering, type Pod, type PodSpec } from '@tenon/api'
import type { SchedulingInput, SchedulingPolicy } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import { violationsOf } from '../../testing/checker/checker.test-support.ts'
import {
  anAppPod,
  anInput,
  anOffering,
  aPool,
  aPoolInput,
  aType,
  podsPerDomain,
  preferringPods,
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
