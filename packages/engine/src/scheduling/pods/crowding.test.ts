import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels } from '@tenon/api'
import {
  anAppPod,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  aType,
  spreading,
  strictPolicy,
  times,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

const policy = { ...strictPolicy, improvement: 'planned' as const }
const spread = (cpu: string) => anAppPod('web', spreading(labels.zone, 'web'), cpu)

describe('pods of a spread that would wait for each other on one node', () => {
  test('are kept apart where that costs nothing', () => {
    const pods = [...times(2, () => aPod({ cpu: '5' })), ...times(2, () => spread('1'))]
    const { claims } = schedule(
      anInput({ pods, pools: [aPoolInput(aPool(), [aType('eight', 8, 32)])], policy }),
    )
    const perClaim = claims.map(
      (claim) => claim.pods.filter((pod) => pod.metadata.labels !== undefined).length,
    )
    assert.deepEqual(perClaim, [1, 1])
  })

  test('RPT-47 share one where keeping them apart would raise the price', () => {
    // A node of 8 has room for both beside the large pod; apart, a node of 2 has to become one of 4.
    const types = [aType('two', 2, 8), aType('four', 4, 16), aType('eight', 8, 32)]
    const pods = [aPod({ cpu: '6500m' }), aPod({ cpu: '1900m' }), spread('1'), spread('400m')]
    const { pricePerHour } = schedule(anInput({ pods, pools: [aPoolInput(aPool(), types)], policy }))
    assert.equal(pricePerHour.toFixed(9), '0.500000000')
  })
})
