import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTracer, type FinishedSpan, SeededRandom, VirtualClock } from '@tenon/runtime'
import { Stopwatch } from './stopwatch.ts'

test('ADO-12 each step of an iteration is a span below that of the iteration, also one that throws', async () => {
  const clock = new VirtualClock()
  const spans: FinishedSpan[] = []
  const onEnd = (span: FinishedSpan) => spans.push(span)
  const tracer = createTracer({ clock, random: new SeededRandom(1), isSampled: () => true, onEnd })
  const steps: unknown[] = []
  const metrics = {
    set: () => undefined,
    add: () => undefined,
    clear: () => undefined,
    observe: (_: string, __: number, labels?: object) => steps.push(labels),
  }
  const stopwatch = new Stopwatch(clock, { metrics, tracer })
  await stopwatch.run('main', async () => {
    await stopwatch.run('scaleUp', () => Promise.resolve())
    await stopwatch.run('scaleDown', () => Promise.reject(new TypeError('x'))).catch(() => undefined)
  })
  const main = spans.find(({ name }) => name === 'main')
  assert.deepEqual(
    spans.map(({ name, parent, error }) => [name, parent, error]),
    [
      ['scaleUp', main?.context, undefined],
      ['scaleDown', main?.context, 'TypeError'],
      ['main', undefined, undefined],
    ],
  )
  assert.deepEqual(steps, [{ function: 'scaleUp' }, { function: 'main' }])
})
