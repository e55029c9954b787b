import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bugsFlag, numberFlag, readFlags, seedsFlag, UsageError } from './arguments.ts'

test('seeds are a number, a range, or a list of both', () => {
  assert.deepEqual(seedsFlag('7'), [7])
  assert.deepEqual(seedsFlag('1..3,9'), [1, 2, 3, 9])
  for (const wrong of ['', 'x', '3..1', '1...3', '-1'])
    assert.throws(() => seedsFlag(wrong), UsageError, wrong)
})

test('a number that is none, or too small, is refused by the name of its flag', () => {
  assert.equal(numberFlag('hours', undefined, 2), 2)
  assert.equal(numberFlag('hours', '0.5', 2), 0.5)
  for (const wrong of ['', 'two', '-1', 'Infinity'])
    assert.throws(() => numberFlag('hours', wrong, 2), /--hours must be a number of at least 0/)
})

test('an unknown flag is refused with the known ones', () => {
  assert.deepEqual({ ...readFlags(['--seed', '3'], ['seed']) }, { seed: '3' })
  assert.throws(() => readFlags(['--sede', '3'], ['seed', 'hours']), /known are --seed, --hours/)
})

test('a planted bug that is none is refused with the known ones', () => {
  assert.deepEqual(
    bugsFlag('finalizer-late,scrapes-fail').map(({ name }) => name),
    ['finalizer-late', 'scrapes-fail'],
  )
  assert.throws(() => bugsFlag('gremlin'), {
    constructor: UsageError,
    message: /^--bug: gremlin is not one of /,
  })
})
