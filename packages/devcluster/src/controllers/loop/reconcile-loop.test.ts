import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { ReconcileLoop, type Steps } from './reconcile-loop.ts'

function aLoop(turnSteps = 100): { clock: VirtualClock; loop: ReconcileLoop } {
  const clock = new VirtualClock()
  return { clock, loop: new ReconcileLoop(clock, silentLogger, { turnBudgetMs: 4, turnSteps }) }
}

test('many additions of a key are one reconcile', async () => {
  const { clock, loop } = aLoop()
  const seen: string[] = []
  const queue = loop.queue('q', (key) => void seen.push(key))
  for (const key of ['a', 'b', 'a', 'a']) queue.add(key)
  await clock.advance(0)
  assert.deepEqual(seen, ['a', 'b'])
})

test('a failing key backs off alone, and recovers', async () => {
  const { clock, loop } = aLoop()
  const at: number[] = []
  let others = 0
  const queue = loop.queue('q', (key) => {
    if (key === 'good') {
      others++
      return undefined
    }
    at.push(clock.monotonic())
    if (at.length < 4) throw new Error('no')
    return undefined
  })
  queue.add('bad')
  queue.add('good')
  await clock.advance(10_000)
  assert.deepEqual(at, [0, 5, 15, 35])
  assert.equal(others, 1)
})

test('a key that changes while it runs in steps runs once more, never twice at once', async () => {
  const { clock, loop } = aLoop(1)
  let running = 0
  let runs = 0
  const queue = loop.queue('q', function* (): Steps {
    assert.equal(running++, 0)
    runs++
    yield
    if (runs === 1) queue.add('a')
    yield
    running--
    return undefined
  })
  queue.add('a')
  await clock.advance(0)
  assert.equal(runs, 2)
})

test('large keys rest in proportion to what they looked at', async () => {
  const { clock, loop } = aLoop()
  let runs = 0
  const queue = loop.queue('q', () => {
    runs++
    return { touched: 10_000 }
  })
  for (let i = 0; i < 100; i++) {
    queue.add('a')
    await clock.advance(10)
  }
  assert.ok(runs >= 5 && runs <= 6, `${runs} runs`)
})

test('where it is asked for, keys of many objects rest between two looks, and others do not', async () => {
  const clock = new VirtualClock()
  const loop = new ReconcileLoop(clock, silentLogger, { turnBudgetMs: 4, turnSteps: 100, leastRestMs: 1000 })
  const at: Record<string, number[]> = { many: [], few: [] }
  const queue = loop.queue('q', (key) => {
    at[key]?.push(clock.monotonic())
    return { touched: key === 'many' ? 20 : 2 }
  })
  for (let i = 0; i < 3; i++) {
    queue.add('many')
    queue.add('few')
    await clock.advance(100)
  }
  await clock.advance(5000)
  assert.deepEqual(at, { many: [0, 1000], few: [0, 100, 200] })
})

test('a stopped loop does nothing more', async () => {
  const { clock, loop } = aLoop()
  let runs = 0
  const queue = loop.queue('q', () => {
    runs++
    return { afterMs: 10 }
  })
  queue.add('a')
  await clock.advance(25)
  loop.stop()
  queue.add('a')
  await clock.advance(1000)
  assert.equal(runs, 3)
})
