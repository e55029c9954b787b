import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import type { LoopOutcome } from '../loop/outcome.ts'
import { LoopTrigger } from '../loop/triggers.ts'
import { defaultOptions } from '../options/options.ts'
import { KeptMetrics } from '../testing/sinks.test-support.ts'
import { driveLoop } from './loop-driver.ts'

const done: LoopOutcome = { kind: 'done' }

/** A loop every ten seconds, each of which ends as the test says. */
function stage(outcome: (iteration: number) => LoopOutcome | Promise<LoopOutcome>) {
  const clock = new VirtualClock()
  const metrics = new KeptMetrics()
  const ending = new AbortController()
  let iterations = 0
  const autoscaler = { lastChangeMs: undefined, runOnce: async () => await outcome(++iterations) }
  const trigger = new LoopTrigger(defaultOptions.loop, clock)
  const ended = driveLoop({ autoscaler, trigger, metrics, clock, logger: silentLogger }, ending.signal)
  return { clock, metrics, ending, ended, count: () => iterations }
}

test('one iteration follows the other, and what passes between them is measured', async () => {
  const { clock, metrics, ending, ended, count } = stage(() => done)
  await clock.advance(60_100)
  assert.equal(count(), 7)
  assert.equal(metrics.of('function_duration_seconds', { function: 'loopWait' }), 7)
  ending.abort()
  await ended
})

test('a bug in one iteration does not end the loop', async () => {
  const { clock, ending, ended, count } = stage((iteration) => {
    if (iteration === 1) throw new TypeError('a bug')
    return done
  })
  await clock.advance(60_000)
  assert.ok(count() >= 6)
  ending.abort()
  await ended
})

test('CAS-38 the end does not wait for an iteration that hangs', async () => {
  const { clock, ending, ended } = stage(() => new Promise<LoopOutcome>(() => undefined))
  await clock.advance(60_000)
  ending.abort()
  await ended
})
