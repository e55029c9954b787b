import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDuration, parseDuration, parseNillableDuration } from './duration.ts'

test('durations are read as Go reads them', () => {
  const cases: readonly (readonly [string, number | undefined])[] = [
    ['0', 0],
    ['0s', 0],
    ['30s', 30_000],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['.5m', 30_000],
    ['1m0.25s', 60_250],
    ['-5m', -300_000],
    ['+5m', 300_000],
    ['100ms', 100],
    ['5µs', 0.005],
    ['5μs', 0.005],
    ['', undefined],
    ['5', undefined],
    ['m', undefined],
    ['5d', undefined],
    ['1h 30m', undefined],
    ['abc', undefined],
    ['Never', undefined],
  ]
  for (const [text, ms] of cases) assert.equal(parseDuration(text), ms, text)
})

test('Never and nothing are endless', () => {
  assert.equal(parseNillableDuration('Never'), Number.POSITIVE_INFINITY)
  assert.equal(parseNillableDuration(undefined), Number.POSITIVE_INFINITY)
  assert.equal(parseNillableDuration('720h'), 2_592_000_000)
})

test('durations are written as Go writes them', () => {
  const cases: readonly (readonly [number, string])[] = [
    [0, '0s'],
    [500, '500ms'],
    [30_000, '30s'],
    [1500, '1.5s'],
    [90_000, '1m30s'],
    [300_000, '5m0s'],
    [86_400_000, '24h0m0s'],
    [172_800_000, '48h0m0s'],
    [-90_000, '-1m30s'],
  ]
  for (const [ms, text] of cases) assert.equal(formatDuration(ms), text)
})
