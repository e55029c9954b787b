import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Budget } from '@tenon/api'
import { budgetWindows } from './budget-windows.ts'

const now = Date.parse('2026-03-04T12:00:00Z')

function windows(budgets: readonly Budget[], count: number, total = 10): readonly string[] {
  return [...budgetWindows(budgets, 'Underutilized', total, now).take(count)].map(
    ({ fromMs, untilMs, allowed }) =>
      `${text(fromMs)} - ${untilMs === undefined ? 'always' : text(untilMs)}: ${allowed}`,
  )
}

const text = (ms: number): string => new Date(ms).toISOString().slice(5, 16)

test('EXP-6 a budget without a schedule is one window without an end', () => {
  assert.deepEqual(windows([{ nodes: '30%' }], 3), ['03-04T12:00 - always: 3'])
})

test('EXP-6 a window that is open ends, and opens again', () => {
  const working: Budget = { nodes: '0', schedule: '0 9 * * mon-fri', duration: '8h' }
  assert.deepEqual(windows([working, { nodes: '2' }], 4), [
    '03-04T12:00 - 03-04T17:00: 0',
    '03-04T17:00 - 03-05T09:00: 2',
    '03-05T09:00 - 03-05T17:00: 0',
    '03-05T17:00 - 03-06T09:00: 2',
  ])
})

test('EXP-6 windows that overlap or follow each other are one, and other reasons do not count', () => {
  const budgets: readonly Budget[] = [
    { nodes: '0', schedule: '0 12 * * *', duration: '2h' },
    { nodes: '0', schedule: '0 14 * * *', duration: '1h' },
    { nodes: '0', schedule: '30 12 * * *', duration: '1h', reasons: ['Drifted'] },
    { nodes: '5' },
  ]
  assert.deepEqual(windows(budgets, 2), ['03-04T12:00 - 03-04T15:00: 0', '03-04T15:00 - 03-05T12:00: 5'])
})

test('EXP-6 a window that is always open again has no end, and one that cannot be read closes the pool', () => {
  const always: Budget = { nodes: '1', schedule: '* * * * *', duration: '5m' }
  assert.deepEqual(windows([always], 2), ['03-04T12:00 - always: 1'])
  assert.deepEqual(windows([{ nodes: 'many' }], 2), ['03-04T12:00 - always: 0'])
})
