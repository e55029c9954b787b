import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { done } from '../contract.ts'
import { createController } from './controller.ts'
import { ReconcilePace } from './reconcile-pace.ts'

test('controllers that share a pace let others run after a slice, however many they are', async () => {
  const clock = new VirtualClock()
  let spentMs = 0
  const slow = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic() + spentMs,
    sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms, signal),
    after: (ms: number, callback: () => void) => clock.after(ms, callback),
  }
  const pace = new ReconcilePace(slow)
  const events: string[] = []
  const controllers = ['x', 'y', 'z'].map((name) =>
    createController(
      {
        name,
        concurrency: 1,
        reconcile: (key) => {
          spentMs += 2
          events.push(`${name}${key}`)
          return Promise.resolve(done)
        },
      },
      { clock: slow, logger: silentLogger, pace },
    ),
  )
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
