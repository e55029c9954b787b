/** A list of instance types is not believed when it takes most of them away (reports.md 9). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf } from '@tenon/api'
import { oneChunk, readText, type Transport } from '@tenon/runtime'
import type { World } from '../world.ts'
import { healthyCluster, instanceIds, podNames, runningPods } from './healthy-cluster.test-support.ts'

const minute = 60_000
const hour = 60 * minute

/** Lists of types hold only those that `isTold` admits. */
function telling(isTold: (name: string, at: number) => boolean): (inner: Transport) => Transport {
  return (inner) => ({
    async send(request, signal) {
      const response = await inner.send(request, signal)
      if (request.path.split('?')[0] !== '/v2/instance-type') return response
      const body = JSON.parse(await readText(response.body)) as {
        'instance-types': { family: string; size: string }[]
      }
      const types = body['instance-types'].filter(({ family, size }, at) => isTold(`${family}.${size}`, at))
      return { ...response, body: oneChunk(JSON.stringify({ 'instance-types': types })) }
    },
  })
}

const drifted = (world: World) =>
  world.claims().filter((claim) => conditionOf(claim, 'Drifted')?.status === 'True').length

const isLeft = (name: string, at: number) => name !== 'standard.small' && at % 2 === 0

test('RPT-38 with half of the types gone from one answer nothing drifts, and launches go on', async (t) => {
  let isWrong = false
  const world = await healthyCluster(t, 3, {
    cloudPath: telling((name, at) => !isWrong || isLeft(name, at)),
    settings: { driftPeriodMs: minute },
  })
  const before = [...instanceIds(world), ...podNames(world)]
  await world.clock.advance(2 * hour)
  isWrong = true
  // Types are read every six hours.
  await world.clock.advance(4 * hour - 4 * minute)
  isWrong = false
  world.scale('web', 4)
  await world.clock.advance(8 * minute)
  assert.equal(runningPods(world), 4, 'the offering is still there')
  assert.equal(drifted(world), 0)
  const after = new Set([...instanceIds(world), ...podNames(world)])
  assert.deepEqual(
    before.filter((name) => !after.has(name)),
    [],
  )
})

test('RPT-38 with half of the types gone for good nothing drifts within ten minutes, and then it does', async (t) => {
  let isGone = false
  const gone = { sinceMs: 0 }
  const world: World = await healthyCluster(t, 2, {
    cloudPath: telling((name, at) => {
      if (isGone) gone.sinceMs ||= world.clock.now()
      return !isGone || isLeft(name, at)
    }),
    settings: { driftPeriodMs: minute },
  })
  await world.clock.advance(2 * hour)
  isGone = true
  while (gone.sinceMs === 0) await world.clock.advance(minute)
  await world.clock.advance(9 * minute)
  assert.equal(drifted(world), 0)
  await world.clock.advance(hour)
  assert.equal(drifted(world), 2)
})
