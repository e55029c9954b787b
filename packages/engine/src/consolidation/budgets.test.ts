import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Budget } from '@tenon/api'
import { allowedDisruptions, unlimited } from './budgets.ts'

const at = (text: string) => Date.parse(text)
const newYear = at('2026-01-01T00:00:00Z')
const allowed = (
  budgets: readonly Budget[],
  total = 10,
  nowMs = newYear,
  reason: 'Empty' | 'Drifted' | 'Underutilized' = 'Empty',
) => allowedDisruptions(budgets, reason, total, nowMs)
/** A budget of none within its window. */
const closed = (schedule: string, duration: string): readonly Budget[] => [{ nodes: '0', schedule, duration }]
const isActive = (schedule: string, duration: string, now: string) =>
  allowed(closed(schedule, duration), 10, at(now)) === 0
const isRead = (schedule: string) =>
  allowed([{ nodes: '5', reasons: ['Drifted'], schedule, duration: '1m' }]) === unlimited

test('DIS-36 percentages are rounded up, integers taken as they are', () => {
  assert.equal(allowed([{ nodes: '30%' }]), 3)
  assert.equal(allowed([{ nodes: '5%' }]), 1)
  assert.equal(allowed([{ nodes: '0%' }]), 0)
  assert.equal(allowed([{ nodes: '100%' }], 7), 7)
  assert.equal(allowed([{ nodes: '4' }]), 4)
  assert.equal(allowed([]), unlimited)
})

test('DIS-43 the smallest budget of a reason counts; an empty list of reasons is none', () => {
  const budgets: readonly Budget[] = [
    { nodes: '10' },
    { nodes: '15', reasons: ['Drifted', 'Underutilized'] },
    { nodes: '5', reasons: ['Drifted'] },
    { nodes: '4', reasons: ['Empty'] },
    { nodes: '0', reasons: [] },
  ]
  const of = (reason: 'Empty' | 'Drifted' | 'Underutilized') => allowed(budgets, 100, newYear, reason)
  assert.deepEqual([of('Empty'), of('Drifted'), of('Underutilized')], [4, 5, 10])
})

test('DIS-44 DIS-46 outside its window a budget does not count', () => {
  assert.equal(allowed(closed('@daily', '30m'), 10, at('2025-12-31T23:00:00Z')), unlimited)
})

test('DIS-45 DIS-50 DIS-157 a budget that cannot be read closes every reason; a bad number only within its window', () => {
  assert.equal(
    allowed(
      [{ nodes: '5', reasons: ['Empty'], schedule: '0 0 * * tue-mon', duration: '1h' }],
      10,
      newYear,
      'Drifted',
    ),
    0,
  )
  const bad = { nodes: '99999999999999999999', schedule: '@daily', duration: '1h' }
  assert.equal(allowed([bad], 10, at('2026-01-01T12:00:00Z')), unlimited)
  assert.equal(allowed([bad], 10, at('2026-01-01T00:30:00Z'), 'Drifted'), 0)
})

test('DIS-47 DIS-48 DIS-49 windows', () => {
  assert.ok(isActive('@yearly', '24h', '2026-01-01T12:00:00Z'))
  assert.ok(isActive('@daily', '48h', '2026-01-01T23:59:00Z'))
  assert.ok(!isActive('30 6 * * SUN', '6h', '2026-01-04T00:00:00Z'))
  assert.ok(isActive('30 6 * * SUN', '6h', '2026-01-04T06:30:00Z'))
})

test('DIS-51 a window begins with its hit and ends before hit plus duration', () => {
  assert.ok(isActive('0 9 * * *', '1h', '2026-01-01T09:00:00Z'))
  assert.ok(isActive('0 9 * * *', '1h', '2026-01-01T09:59:59Z'))
  assert.ok(!isActive('0 9 * * *', '1h', '2026-01-01T10:00:00Z'))
  assert.ok(!isActive('0 9 * * *', '1h', '2026-01-01T08:59:59Z'))
  assert.ok(!isActive('0 9 * * *', '0m', '2026-01-01T09:00:00Z'))
})

test('a schedule that never fires is always active', () => {
  assert.ok(isActive('0 0 30 2 *', '1h', '2026-05-05T05:05:05Z'))
})

test('both days restricted: either; one of them open: both', () => {
  assert.ok(isActive('0 0 13 * fri', '1h', '2026-01-13T00:00:00Z'))
  assert.ok(isActive('0 0 13 * fri', '1h', '2026-01-16T00:00:00Z'))
  assert.ok(!isActive('0 0 ? * fri', '1h', '2026-01-13T00:00:00Z'))
  assert.ok(!isActive('0 0 13 * ?', '1h', '2026-01-16T00:00:00Z'))
  assert.ok(isActive('0 0 */2 * mon', '1h', '2026-01-05T00:00:00Z'))
  assert.ok(isActive('0 0 */2 * mon', '1h', '2026-01-12T00:00:00Z'))
})

test('a number with a step runs to the end of its field, a step beyond it hits once', () => {
  assert.ok(isActive('5/15 * * * *', '1m', '2026-01-01T00:20:00Z'))
  assert.ok(!isActive('5/15 * * * *', '1m', '2026-01-01T00:00:00Z'))
  assert.ok(isActive('*/70 * * * *', '1m', '2026-01-01T03:00:00Z'))
})

test('what is read and what is not', () => {
  for (const schedule of [
    '@hourly',
    '@midnight',
    '@weekly',
    '@monthly',
    '@annually',
    '0 0 * JAN-mar *',
    '1-5/2,7 * * * *',
    '0 0 * * 0-6',
    '*/1 * * * *',
  ])
    assert.ok(isRead(schedule), schedule)
  for (const schedule of [
    '@Daily',
    '@dailyfoo',
    '@daily x',
    '@every 1h',
    'a b c d e',
    '0 0 * * 7',
    '0 0 * * 5-7',
    '0 0 L * *',
    '0 0 15W * *',
    '0 0 * * 1#2',
    '0 0 * * 5L',
    '0 0 * * +1',
    '60 * * * *',
    '0 24 * * *',
    '0 0 0 * *',
    '0 0 1 13 *',
    '*/0 * * * *',
    '0 0 0 * * *',
    'TZ=UTC 0 0 * * *',
    '',
    '/5 * * * *',
    '0 0 * * monday',
    '0 0 * sun *',
  ])
    assert.ok(!isRead(schedule), schedule)
})
