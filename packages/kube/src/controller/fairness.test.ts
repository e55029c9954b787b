/** Keys that fail, flood or take long must not keep the others from their turn. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { type ControllerOptions, type Controller, done } from '../contract.ts'
import { createController } from './controller.ts'

interface World {
  readonly clock: VirtualClock
  readonly controller: Controller
  /** `key at` of every run, in order. */
  readonly runs: { readonly key: string; readonly at: number }[]
}

/** Every run takes a second; keys that start with `bad` fail. */
function world(options: Partial<ControllerOptions> = {}): World {
  const clock = new VirtualClock()
  const runs: { key: string; at: number }[] = []
  const controller = createController(
    {
      name: 'test',
      concurrency: 1,
      backoff: { baseMs: 1_000, capMs: 60_000 },
      ...options,
      reconcile: async (key) => {
        runs.push({ key, at: clock.monotonic() })
        await clock.sleep(1_000)
        if (key.startsWith('bad')) throw new Error('refused')
        return done
      },
    },
    { clock, logger: silentLogger },
  )
  controller.start()
  return { clock, controller, runs }
}

test('a key that fails for ever comes back ever more rarely, and the others run in between', async () => {
  const { clock, controller, runs } = world()
  controller.enqueue('bad')
  await clock.advance(500)
  for (let i = 0; i < 50; i++) controller.enqueue(`good${i}`)
  await clock.advance(300_000)
  const bad = runs.filter(({ key }) => key === 'bad').map(({ at }) => at)
  const pauses = bad.slice(1).map((at, index) => at - (bad[index] as number))
  assert.ok(bad.length < 16, `${bad.length} runs of the key that fails`)
  assert.deepEqual(pauses.slice(-2), [61_000, 61_000])
  const lastGood = runs.findLast(({ key }) => key.startsWith('good'))
  assert.ok((lastGood?.at ?? 0) < 65_000, `the last good key ran at ${lastGood?.at}`)
})

test('a new key goes before hundreds that keep failing', async () => {
  const { clock, controller, runs } = world({ backoff: { baseMs: 10, capMs: 10 } })
  for (let i = 0; i < 300; i++) controller.enqueue(`bad${i}`)
  await clock.advance(400_000)
  const before = runs.length
  controller.enqueue('new')
  await clock.advance(2_000)
  assert.ok(runs.slice(before).some(({ key }) => key === 'new'))
})

test('keys that come back after a failure get their turns in a flood of new ones', async () => {
  const { clock, controller, runs } = world({ backoff: { baseMs: 10, capMs: 10 } })
  controller.enqueue('bad')
  await clock.advance(500)
  for (let i = 0; i < 100; i++) controller.enqueue(`flood${i}`)
  await clock.advance(30_000)
  const bad = runs.filter(({ key }) => key === 'bad').map(({ at }) => at)
  assert.deepEqual(bad, [0, 4_000, 9_000, 14_000, 19_000, 24_000, 29_000])
})

test('a key that waits to be retried is served with the new ones when something happens to it', async () => {
  const { clock, controller, runs } = world({ backoff: { baseMs: 10, capMs: 10 } })
  for (let i = 0; i < 100; i++) controller.enqueue(`bad${i}`)
  await clock.advance(150_000)
  const before = runs.length
  const last = runs.at(-2)?.key ?? ''
  controller.enqueue(last)
  await clock.advance(2_000)
  assert.ok(runs.slice(before).some(({ key }) => key === last))
})
