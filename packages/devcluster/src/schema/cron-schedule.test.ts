import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cronSchedule } from './cron-schedule.ts'

const at = (text: string) => Date.parse(text)

test('RPT-56 a daily run keeps its local time when clocks change', () => {
  const schedule = cronSchedule('0 9 * * *', 'Europe/Zurich')
  assert.equal(schedule?.next(at('2026-03-28T00:00:00Z')), at('2026-03-28T08:00:00Z'))
  assert.equal(schedule?.next(at('2026-03-29T00:00:00Z')), at('2026-03-29T07:00:00Z'))
  assert.equal(schedule?.last(0, at('2026-10-25T12:00:00Z')), at('2026-10-25T08:00:00Z'))
})

test('RPT-56 the last run is at or before now and after the one before', () => {
  const schedule = cronSchedule('*/5 * * * *', 'UTC')
  const run = at('2026-03-01T00:05:00Z')
  assert.equal(schedule?.last(at('2026-03-01T00:00:00Z'), run), run)
  assert.equal(schedule?.last(run, run + 1000), undefined)
  assert.equal(cronSchedule('0 0 30 2 *', 'UTC')?.next(run), undefined)
})

test('RPT-56 day of month and day of week admit a day that either names', () => {
  const schedule = cronSchedule('0 0 13 * FRI', 'UTC')
  assert.equal(schedule?.next(at('2026-10-10T00:00:00Z')), at('2026-10-13T00:00:00Z'))
  assert.equal(schedule?.next(at('2026-10-13T00:00:00Z')), at('2026-10-16T00:00:00Z'))
})
