import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { defaultOptions } from '../options/options.ts'
import { HealthCheck } from './health-check.ts'

const minute = 60_000

function stage() {
  const clock = new VirtualClock()
  const health = new HealthCheck(defaultOptions.status, clock)
  return {
    clock,
    health,
    isHealthyAfter: async (ms: number) => (await clock.advance(ms), health.answer().isHealthy),
  }
}

test('CAS-34 a standby is healthy however long it stands', async () => {
  const { health, isHealthyAfter } = stage()
  health.noteActivity()
  assert.ok(await isHealthyAfter(60 * minute))
  assert.equal(health.answer().text, 'OK')
})

test('CAS-34 a leader whose loops do not begin for longer than ten minutes is not healthy', async () => {
  const { health, isHealthyAfter } = stage()
  health.start()
  health.noteSuccess()
  assert.ok(await isHealthyAfter(10 * minute))
  assert.ok(!(await isHealthyAfter(1 * minute)))
  assert.equal(health.answer().text, 'unhealthy: last activity 11m0s ago, last success 11m0s ago')
})

test('CAS-34 until the first success there are twenty minutes', async () => {
  const { health, isHealthyAfter } = stage()
  health.start()
  assert.ok(await isHealthyAfter(15 * minute))
  assert.ok(await isHealthyAfter(5 * minute))
  assert.ok(!(await isHealthyAfter(1)))
})

test('loops that begin but fail are not healthy after fifteen minutes', async () => {
  const { health, isHealthyAfter } = stage()
  health.start()
  health.noteSuccess()
  for (let passed = 0; passed < 15; passed++) {
    assert.ok(await isHealthyAfter(minute))
    health.noteActivity()
  }
  assert.ok(!(await isHealthyAfter(1)))
  health.noteSuccess()
  assert.ok(await isHealthyAfter(0))
})
