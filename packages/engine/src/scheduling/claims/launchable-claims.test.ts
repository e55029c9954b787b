import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type OfferingRef, parseResources, type Pod } from '@tenon/api'
import type { SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import {
  anInput,
  aPod,
  aPool,
  aPoolInput,
  aType,
  podNames,
  times,
} from '../../testing/builders.test-support.ts'
import { violationsOf } from '../../testing/checker/checker.test-support.ts'
import { schedule } from '../schedule.ts'

/** Each fills a node of two cores. */
const large = (count: number) => times(count, () => aPod({ cpu: '1900m' }))
const offering = (instanceType: string, zone = 'zone-1'): OfferingRef => ({
  instanceType,
  zone,
  capacityType: 'on-demand',
})
const onlyTwo = (...zones: readonly string[]) => [aPoolInput(aPool(), [aType('two', 2, 8, zones)])]

/** The decision, in which every pod is in exactly one list. */
function decided(overrides: Partial<SchedulingInput>): SchedulingResult {
  const input = anInput(overrides)
  const result = schedule(input)
  assert.deepEqual(
    violationsOf(input, result).filter((each) => each.includes('of the result')),
    [],
  )
  return result
}

/** Names of the pods whose claims are to be created, and of those that wait, with why. */
function fates({ claims, deferred }: SchedulingResult) {
  return {
    launched: claims.flatMap(({ pods }) => podNames(pods)),
    waiting: deferred.map(({ claim, because }) => [...podNames(claim.pods), because.kind]),
  }
}

const names = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata.name)

test('of claims that only an offering on trial can serve the first is created, the others wait', () => {
  const pods = large(3)
  const [first, second, third] = names(pods)
  assert.deepEqual(fates(decided({ pods, pools: onlyTwo('zone-1'), offeringsOnTrial: [offering('two')] })), {
    launched: [first],
    waiting: [
      [second, 'offeringsOnTrial'],
      [third, 'offeringsOnTrial'],
    ],
  })
})

test('claims that have an offering beside the one on trial do not wait for it', () => {
  const pods = large(3)
  const pools = onlyTwo('zone-1', 'zone-2')
  assert.deepEqual(fates(decided({ pods, pools, offeringsOnTrial: [offering('two')] })), {
    launched: names(pods),
    waiting: [],
  })
})

test('a claim waits for which others have reserved the rest of a limit of its NodePool', () => {
  const pods = large(3)
  const [pool] = onlyTwo('zone-1')
  assert.ok(pool !== undefined)
  const nodePool = aPool('default', { limits: { cpu: '8' } })
  const used = { ...pool, nodePool, usage: parseResources({ cpu: '2' }) }
  assert.deepEqual(fates(decided({ pods, pools: [used] })), { launched: names(pods), waiting: [] })
  const reserved = { ...used, reserved: parseResources({ cpu: '2' }) }
  const result = decided({ pods, pools: [reserved] })
  assert.equal(result.claims.length, 2)
  assert.deepEqual(
    result.deferred.map(({ because }) => because),
    [{ kind: 'limitReserved', limit: 'cpu' }],
  )
})
