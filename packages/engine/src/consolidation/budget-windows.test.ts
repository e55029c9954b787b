/** Budgets of a NodePool of 100 nodes on Thursday, 15 June 2000, 12:30:30 UTC (api.md 3.7). */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import type { Budget, DisruptionReason } from '@tenon/api'
import { allowedDisruptions, unlimited } from './budgets.ts'

const reasons: readonly DisruptionReason[] = ['Underutilized', 'Empty', 'Drifted']

/** What is allowed for Underutilized, Empty and Drifted. */
function allowed(budgets: readonly Budget[], total = 100, now = '2000-06-15T12:30:30Z'): readonly number[] {
  return reasons.map((reason) => allowedDisruptions(budgets, reason, total, Date.parse(now)))
}
const every = (count: number): readonly number[] => [count, count, count]
const scheduled = (schedule: string, duration: string, more: Partial<Budget> = {}): Budget => ({
  nodes: '0',
  schedule,
  duration,
  ...more,
})

test('API-51 a budget that begins every minute always holds, for all reasons', () => {
  assert.deepEqual(allowed([scheduled('* * * * *', '1h', { nodes: '10' })]), every(10))
})

test('API-52 without an active budget nothing is bounded', () => {
  const yearly = [scheduled('@yearly', '1h', { nodes: '10' }), scheduled('@yearly', '1h')]
  assert.deepEqual(allowed(yearly), every(unlimited))
  assert.equal(unlimited, 2_147_483_647)
})

test('API-53 a budget of one reason bounds that reason below the budget of all', () => {
  const budgets: readonly Budget[] = [{ nodes: '10' }, { nodes: '5', reasons: ['Drifted'] }]
  assert.deepEqual(allowed(budgets), [10, 10, 5])
})

test('API-54 a weekly budget of no nodes has no effect on a Thursday', () => {
  assert.deepEqual(allowed([scheduled('@weekly', '1h', { reasons })]), every(unlimited))
})

test('API-55 a schedule with a reversed range closes every reason', () => {
  const broken = scheduled('0 0 * * tue-mon', '1h', { nodes: '10', reasons: ['Empty'] })
  assert.deepEqual(allowed([broken]), every(0))
})

test('API-56 a window longer than its recurrence is always open', () => {
  for (const hour of ['00:00:00', '11:59:59', '23:59:59'])
    assert.deepEqual(allowed([scheduled('@daily', '48h')], 100, `2000-06-15T${hour}Z`), every(0))
})

test('API-57 a Sunday window of the morning is closed at midnight', () => {
  assert.deepEqual(allowed([scheduled('30 6 * * SUN', '6h')], 100, '2000-06-18T00:00:00Z'), every(unlimited))
})

test('API-58 midnight of a process in another time zone is not midnight', () => {
  const module = JSON.stringify(new URL('budgets.ts', import.meta.url).href)
  const program = `
    const { allowedDisruptions } = await import(${module})
    const midnight = new Date(2000, 5, 15, 0, 0, 0).getTime()
    const budgets = [{ nodes: '0', schedule: '@daily', duration: '30m' }]
    console.log(new Date(midnight).getUTCHours(), allowedDisruptions(budgets, 'Empty', 100, midnight))`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], TZ: 'Etc/GMT-1' },
  })
  assert.equal(stdout.trim(), `23 ${unlimited}`)
})

test('API-59 a window holds from its hit on, and ends exactly with its duration', () => {
  const budgets = [scheduled('0 9 * * *', '1h')]
  assert.deepEqual(allowed(budgets, 100, '2000-06-15T09:00:00Z'), every(0))
  assert.deepEqual(allowed(budgets, 100, '2000-06-15T10:00:00Z'), every(unlimited))
})

test('API-60 a percentage is rounded up, and of no nodes it is none', () => {
  assert.deepEqual(allowed([{ nodes: '5%' }], 10), every(1))
  assert.deepEqual(allowed([{ nodes: '5%' }], 0), every(0))
})

test('API-61 a schedule that never fires holds always', () => {
  assert.deepEqual(allowed([scheduled('0 0 30 2 *', '1h')]), every(0))
})

test('API-62 API-63 a budget of no reason bounds nothing, and neither does an empty list', () => {
  assert.deepEqual(allowed([{ nodes: '0', reasons: [] }]), every(unlimited))
  assert.deepEqual(allowed([]), every(unlimited))
})

test('API-103 schedules that are admitted and cannot be read close every reason', () => {
  for (const schedule of ['@dailyfoo', '0 0 * * 7'])
    assert.deepEqual(
      allowed([{ nodes: '50%' }, scheduled(schedule, '1h', { nodes: '9', reasons: ['Empty'] })]),
      every(0),
      schedule,
    )
})
