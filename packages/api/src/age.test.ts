import assert from 'node:assert/strict'
import { test } from 'node:test'
import { age, humanDuration } from './age.ts'

const s = 1000
const m = 60 * s
const h = 60 * m
const d = 24 * h

test('ages are those of kubectl', () => {
  const cases: readonly (readonly [number, string])[] = [
    [-5 * s, '<invalid>'],
    [-2 * s, '<invalid>'],
    [-2 * s + 1, '0s'],
    [0, '0s'],
    [119 * s + 999, '119s'],
    [2 * m, '2m'],
    [9 * m + 59 * s, '9m59s'],
    [10 * m + 30 * s, '10m'],
    [179 * m, '179m'],
    [3 * h, '3h'],
    [7 * h + 59 * m, '7h59m'],
    [8 * h + 59 * m, '8h'],
    [47 * h, '47h'],
    [2 * d + 3 * h, '2d3h'],
    [8 * d + 3 * h, '8d'],
    [700 * d, '700d'],
    [2 * 365 * d + 17 * d, '2y17d'],
    [9 * 365 * d + 17 * d, '9y'],
  ]
  for (const [ms, expected] of cases) assert.equal(humanDuration(ms), expected)
  assert.equal(age(undefined, 0), '<unknown>')
  assert.equal(age('1970-01-01T00:00:00Z', 90 * s), '90s')
})
