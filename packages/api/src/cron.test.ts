import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSchedule } from './cron.ts'

const zurich = 'Europe/Zurich'

/** Runs after `from` and before `to`. */
function runs(schedule: string, zone: string, from: string, to: string): readonly string[] {
  const parsed = parseSchedule(schedule, zone)
  const found: string[] = []
  let run = parsed?.nextRun(new Date(from))
  while (run != null && run < new Date(to)) {
    found.push(run.toISOString().replace(':00.000Z', 'Z'))
    run = parsed?.nextRun(run)
  }
  return found
}

const spring = ['2026-03-28T12:00:00Z', '2026-03-29T12:00:00Z'] as const
const autumn = ['2026-10-24T12:00:00Z', '2026-10-25T12:00:00Z'] as const

test('WNT-28 a time that clocks skip runs at the first moment after it, once', () => {
  assert.deepEqual(runs('30 2 * * *', zurich, ...spring), ['2026-03-29T01:00Z'])
  assert.deepEqual(runs('15,45 2 * * *', zurich, ...spring), ['2026-03-29T01:00Z'])
  assert.deepEqual(runs('0 1-4 * * *', zurich, ...spring), [
    '2026-03-29T00:00Z',
    '2026-03-29T01:00Z',
    '2026-03-29T02:00Z',
  ])
  // Half an hour is skipped, at two o'clock.
  assert.deepEqual(
    runs('10 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00:00Z', '2026-10-04T00:00:00Z'),
    ['2026-10-03T15:30Z'],
  )
  // Midnight is skipped.
  assert.deepEqual(runs('0 0 * * *', 'America/Havana', '2026-03-07T12:00:00Z', '2026-03-08T12:00:00Z'), [
    '2026-03-08T05:00Z',
  ])
})

test('WNT-28 a time that clocks show twice runs once', () => {
  assert.deepEqual(runs('30 2 * * *', zurich, ...autumn), ['2026-10-25T00:30Z'])
  assert.deepEqual(runs('15,45 2 * * *', zurich, ...autumn), ['2026-10-25T00:15Z', '2026-10-25T00:45Z'])
  // Asked between the first time and the second.
  assert.deepEqual(runs('30 2 * * *', zurich, '2026-10-25T01:10:00Z', '2026-10-25T12:00:00Z'), [])
})

test('a schedule of every hour goes by elapsed time', () => {
  assert.deepEqual(runs('30 * * * *', zurich, '2026-10-25T00:00:00Z', '2026-10-25T03:00:00Z'), [
    '2026-10-25T00:30Z',
    '2026-10-25T01:30Z',
    '2026-10-25T02:30Z',
  ])
})

test('runs before a time are those that come after earlier times', () => {
  const parsed = parseSchedule('15,45 2 * * *', zurich)
  const before = (text: string) => parsed?.previousRuns(2, new Date(text)).map((run) => run.toISOString())
  const twice = ['2026-10-25T00:45:00.000Z', '2026-10-25T00:15:00.000Z']
  assert.deepEqual(before('2026-10-25T01:20:00Z'), twice)
  assert.deepEqual(before('2026-10-25T12:00:00Z'), twice)
  assert.deepEqual(before('2026-03-29T12:00:00Z'), ['2026-03-29T01:00:00.000Z', '2026-03-28T01:45:00.000Z'])
})

test('WNT-42 names that are no zones make a schedule invalid', () => {
  for (const zone of ['', 'Europe/Zürich', '+01:00', '__proto__', 'NaN', 'Local', '-1', 'x'.repeat(10_000)])
    assert.equal(parseSchedule('0 0 * * *', zone), undefined, zone.slice(0, 20))
  assert.notEqual(parseSchedule('0 0 * * *', 'europe/zurich'), undefined)
  assert.equal(parseSchedule('0 0 30 2 *', zurich)?.nextRun(new Date()), null)
})
