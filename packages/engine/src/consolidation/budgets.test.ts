import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Budget } from '@tenon/api'
import { allowedDisruptions, unlimited, unreadableBudget } from './budgets.ts'
import { nextBudgetChangeMs } from './budget-windows.ts'

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
const reasons = ['Empty', 'Drifted', 'Underutilized'] as const
/** What is allowed for each reason. */
const byReason = (budgets: readonly Budget[], nowMs = newYear, total = 10) =>
  reasons.map((reason) => allowed(budgets, total, nowMs, reason))
const isRead = (schedule: string) =>
  allowed([{ nodes: '5', reasons: ['Drifted'], schedule, duration: '1m' }]) === unlimited

test('API-51 a budget that is always active holds for every reason', () => {
  assert.deepEqual(byReason([{ nodes: '10', schedule: '* * * * *', duration: '1h' }]), [10, 10, 10])
})

test('API-52 budgets outside their windows hold for none', () => {
  const yearly = (nodes: string): Budget => ({ nodes, schedule: '@yearly', duration: '1h' })
  const june = at('2026-06-15T12:00:00Z')
  assert.deepEqual(byReason([yearly('1'), yearly('0')], june), [unlimited, unlimited, unlimited])
})

test('API-53 a budget for a reason holds beside one for all', () => {
  assert.deepEqual(
    byReason([{ nodes: '10' }, { nodes: '5', reasons: ['Drifted'] }], newYear, 100),
    [10, 5, 10],
  )
})

test('API-54 a budget of none outside its window has no effect on any reason that it names', () => {
  const weekly: Budget = { nodes: '0', reasons: [...reasons], schedule: '@weekly', duration: '1h' }
  const thursday = at('2026-01-08T12:00:00Z')
  assert.deepEqual(byReason([weekly], thursday), [unlimited, unlimited, unlimited])
  assert.deepEqual(byReason([weekly, { nodes: '7' }], thursday), [7, 7, 7])
  assert.deepEqual(byReason([weekly], at('2026-01-04T00:30:00Z')), [0, 0, 0], 'on a Sunday')
})

test('API-55 a schedule that cannot be evaluated closes every reason, whichever it names', () => {
  const backwards: Budget = { nodes: '5', schedule: '0 0 * * tue-mon', duration: '1h' }
  assert.deepEqual(byReason([{ nodes: '9' }, backwards]), [0, 0, 0])
  assert.deepEqual(byReason([{ ...backwards, reasons: ['Empty'] }]), [0, 0, 0])
  assert.deepEqual(unreadableBudget([{ nodes: '9' }, backwards], newYear), backwards)
})

test('API-56 a window longer than its period never ends', () => {
  for (let hour = 0; hour < 72; hour++)
    assert.deepEqual(byReason(closed('@daily', '48h'), newYear + hour * 3_600_000), [0, 0, 0], `hour ${hour}`)
})

test('API-57 before its first hit of the week, a window has not begun', () => {
  const open = [unlimited, unlimited, unlimited]
  const weekly = closed('30 6 * * SUN', '6h')
  assert.deepEqual(byReason(weekly, at('2026-01-04T00:00:00Z')), open)
  assert.deepEqual(byReason(weekly, at('2026-01-04T06:29:59Z')), open)
  assert.deepEqual(byReason(weekly, at('2026-01-04T12:29:59Z')), [0, 0, 0])
  assert.deepEqual(byReason(weekly, at('2026-01-04T12:30:00Z')), open)
})

test('API-58 schedules are of UTC, wherever the process runs', () => {
  const zone = process.env['TZ']
  try {
    process.env['TZ'] = 'Etc/GMT-1'
    const localMidnight = at('2025-12-31T23:00:00Z')
    assert.equal(new Date(localMidnight).getHours(), 0)
    assert.deepEqual(byReason(closed('@daily', '30m'), localMidnight), [unlimited, unlimited, unlimited])
    assert.deepEqual(byReason(closed('@daily', '30m'), newYear), [0, 0, 0])
  } finally {
    if (zone === undefined) delete process.env['TZ']
    else process.env['TZ'] = zone
  }
})

test('API-59 a window has begun exactly at its hit, and has ended exactly at its end', () => {
  const [hit, hourMs] = [at('2026-01-01T09:00:00Z'), 3_600_000]
  const nine = (nowMs: number) => allowed(closed('0 9 * * *', '1h'), 10, nowMs) === 0
  assert.deepEqual([hit - 1, hit, hit + hourMs - 1, hit + hourMs].map(nine), [false, true, true, false])
})

test('API-60 a percentage of no nodes is none, of few at least one', () => {
  assert.deepEqual(byReason([{ nodes: '5%' }], newYear, 10), [1, 1, 1])
  assert.deepEqual(byReason([{ nodes: '5%' }], newYear, 0), [0, 0, 0])
})

test('API-61 a schedule without a hit is always active', () => {
  assert.deepEqual(byReason(closed('0 0 30 2 *', '1h'), at('2026-05-05T05:05:05Z')), [0, 0, 0])
  assert.deepEqual(byReason([{ nodes: '3', schedule: '0 0 30 2 *', duration: '1h' }]), [3, 3, 3])
})

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

test('a duration longer than any date closes every reason, and is no error', () => {
  const endless: Budget = { nodes: '1', schedule: '@daily', duration: '99999999999h' }
  assert.equal(allowedDisruptions([endless], 'Empty', 10, newYear), 0)
  assert.deepEqual(unreadableBudget([endless], newYear), endless)
  assert.equal(nextBudgetChangeMs([endless], newYear, 'Europe/Zurich'), undefined)
})
