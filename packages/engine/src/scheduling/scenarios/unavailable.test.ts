/** What pods are told when the offerings that suit them exist and cannot be bought at present. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels, type Pod, type Unavailability } from '@tenon/api'
import {
  anExpression,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  aType,
  failureTexts,
  spreading,
  strictPolicy,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

const quota: Unavailability = { because: 'the quota is used up', untilMs: 180_000 }
const until = 'the quota is used up, next try at 1970-01-01T00:03:00Z'

/** The type with its offerings in these zones closed; in all of them without any. */
function closed(type: InstanceType, zones?: readonly string[], why = quota): InstanceType {
  return {
    ...type,
    offerings: type.offerings.map((offering) => {
      const zone = offering.requirements.find(({ key }) => key === labels.zone)?.values?.[0] ?? ''
      return zones === undefined || zones.includes(zone)
        ? { ...offering, available: false, unavailability: why }
        : offering
    }),
  }
}

const small = aType('small', 2, 4)
const large = aType('large', 8, 16)

function told(pods: readonly Pod[], types: readonly InstanceType[], pool = aPool('blue')): string {
  const texts = failureTexts(schedule(anInput({ pods, pools: [aPoolInput(pool, types)] })))
  return [...new Set(Object.values(texts))].join(' | ')
}

describe('what stands in the way now is told apart from what never fits', () => {
  test('a pool with everything unavailable: which offerings, why, until when', () => {
    assert.equal(
      told([aPod()], [closed(small), closed(large)]),
      `NodePool blue: every offering that suits the pod is unavailable now (large/zone-1/on-demand, ` +
        `small/zone-1/on-demand: ${until}); it is retried automatically`,
    )
  })

  test('a pod that no type holds is told so, not that types are unavailable', () => {
    assert.match(told([aPod({ cpu: '9' })], [closed(small), closed(large)]), /has enough resources/)
  })

  test('the large type is unavailable and the pod does not fit the small one', () => {
    const text = told([aPod({ cpu: '4' })], [small, closed(large)])
    assert.match(text, /unavailable now \(large\/zone-1\/on-demand: the quota is used up, next try/)
    assert.doesNotMatch(text, /small|has enough resources/)
  })

  test('the zone that the pod selects is unavailable', () => {
    const zonal = closed(aType('small', 2, 4, ['zone-1', 'zone-2']), ['zone-2'])
    const text = told([aPod({}, { nodeSelector: { [labels.zone]: 'zone-2' } })], [zonal])
    assert.match(text, /unavailable now \(small\/zone-2\/on-demand: /)
  })

  test('a taint, a foreign zone, limits: told as such, whatever is unavailable', () => {
    const all = [closed(small), closed(large)]
    const taints = [{ key: 'team', value: 'a', effect: 'NoSchedule' as const }]
    assert.match(told([aPod()], all, aPool('blue', {}, { taints })), /does not tolerate team=a/)
    const elsewhere = aPod({}, { nodeSelector: { [labels.zone]: 'zone-9' } })
    assert.doesNotMatch(told([elsewhere], all), /unavailable now/)
    assert.match(told([aPod()], all, aPool('blue', { limits: { cpu: '1' } })), /raise its spec.limits/)
  })

  test('within the limits there is only a type that is unavailable', () => {
    const text = told([aPod()], [closed(small), large], aPool('blue', { limits: { cpu: '3' } }))
    assert.match(text, /unavailable now \(small\/zone-1\/on-demand: /)
  })

  test('minValues that are met once a type is back', () => {
    const requirements = [{ ...anExpression(labels.instanceType, 'Exists'), minValues: 2 }]
    assert.match(
      told([aPod()], [closed(small), large], aPool('blue', {}, { requirements })),
      /unavailable now \(small\/zone-1\/on-demand: /,
    )
  })

  test('a pool that has nothing now is told beside one that never suits', () => {
    const input = anInput({
      pods: [aPod({ cpu: '4' })],
      pools: [aPoolInput(aPool('blue'), [closed(large)]), aPoolInput(aPool('red'), [small])],
      policy: strictPolicy,
    })
    const [text = ''] = Object.values(failureTexts(schedule(input)))
    assert.match(text, /NodePool blue: every offering that suits the pod is unavailable now/)
    assert.match(text, /NodePool red: no instance type has enough resources/)
  })

  test('a spread whose emptier zone is unavailable', () => {
    const zonal = closed(aType('small', 2, 4, ['zone-1', 'zone-2']), ['zone-2'])
    const pods = [0, 1].map(() => ({
      ...aPod({ cpu: '1500m' }, spreading(labels.zone, 'web', { maxSkew: 1 })),
    }))
    const labelled = pods.map((pod) => ({
      ...pod,
      metadata: { ...pod.metadata, labels: { app: 'web' } },
    }))
    const text = told(labelled, [zonal])
    assert.match(text, /unavailable now \(small\/zone-2\/on-demand: /)
  })

  test('a provider that does not tell why', () => {
    const silent = { ...small, offerings: small.offerings.map((each) => ({ ...each, available: false })) }
    assert.match(told([aPod()], [silent]), /the provider does not sell it now/)
  })
})
