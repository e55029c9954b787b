import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { type Controller, done } from './contract.ts'
import { createController } from './controller/controller.ts'
import { TurnPace } from './turn-pace.ts'

/** Controllers that share a pace, each of whose reconciles takes 2 ms, and what happens. */
function paced(
  names: readonly string[],
  concurrency: number,
): { readonly clock: VirtualClock; readonly events: string[]; readonly controllers: readonly Controller[] } {
  const clock = new VirtualClock()
  let spentMs = 0
  const slow = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic() + spentMs,
    sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms, signal),
    after: (ms: number, callback: () => void) => clock.after(ms, callback),
  }
  const pace = new TurnPace(slow)
  const events: string[] = []
  const controllers = names.map((name) =>
    createController(
      {
        name,
        concurrency,
        reconcile: (key) => {
          spentMs += 2
          events.push(`${name}${key}`)
          return Promise.resolve(done)
        },
      },
      { clock: slow, logger: silentLogger, pace },
    ),
  )
  return { clock, events, controllers }
}

test('controllers that share a pace let others run after a slice, however many they are', async () => {
  const { clock, events, controllers } = paced(['x', 'y', 'z'], 1)
  const others = () => {
    events.push('others')
    if (events.length < 40) clock.after(0, others)
  }
  others()
  for (const controller of controllers) {
    controller.start()
    for (const key of ['1', '2', '3', '4', '5']) controller.enqueue(key)
  }
  await clock.advance(100)
  const runs = events.filter((event) => event !== 'others')
  assert.deepEqual(
    runs.toSorted(),
    ['x', 'y', 'z'].flatMap((name) => [1, 2, 3, 4, 5].map((n) => `${name}${n}`)),
  )
  const slices = events.join(' ').split('others')
  const longest = Math.max(...slices.map((slice) => slice.trim().split(' ').length))
  assert.ok(longest <= 3, `${longest} reconciles of 2 ms in a row`)
  for (const controller of controllers) await controller.stop()
})

test('no controller waits for the whole line of another', async () => {
  const { clock, events, controllers } = paced(['long', 'short'], 100)
  const [long, short] = controllers
  for (let key = 0; key < 100; key++) long?.enqueue(`-${key}`)
  short?.enqueue('')
  for (const controller of controllers) controller.start()
  await clock.advance(100)
  assert.equal(events.length, 101)
  assert.ok(events.indexOf('short') < 10, `after ${events.indexOf('short')} others`)
  for (const controller of controllers) await controller.stop()
})
