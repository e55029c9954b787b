import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scaledConcurrency } from './settings.ts'

test('a controller has its least number of workers on one core, its greatest on sixty, and never more', () => {
  const cases: readonly (readonly [least: number, most: number, cpuMillis: number, workers: number])[] = [
    [1000, 5000, 1000, 1000],
    [1000, 5000, 50, 1000],
    [1000, 5000, 1001, 1067],
    [1000, 5000, 2000, 1067],
    [10, 1000, 4000, 60],
    [100, 5000, 60_000, 5000],
    [10, 3000, 128_000, 3000],
    [10, 10, 8000, 10],
    [1, 1, 64_000, 1],
  ]
  for (const [least, most, cpuMillis, workers] of cases)
    assert.equal(scaledConcurrency(least, most, cpuMillis), workers, `${least}..${most} at ${cpuMillis}`)
})
