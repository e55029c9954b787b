import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { includable, pauseText, type PauseValue, readPause } from './pause.ts'

const atMs = Date.UTC(2026, 10, 27, 14)

test('EXP-21 the forms of a pause', () => {
  const none = { includes: [] }
  assert.deepEqual(readPause('true'), { kind: 'paused', value: none })
  assert.deepEqual(readPause(' True\n'), { kind: 'paused', value: none })
  assert.deepEqual(readPause('false'), { kind: 'none' })
  assert.deepEqual(readPause('2026-11-27T14:00:00Z'), { kind: 'paused', value: { ...none, untilMs: atMs } })
  assert.deepEqual(readPause('2026-11-27T15:00:00+01:00'), {
    kind: 'paused',
    value: { ...none, untilMs: atMs },
  })
  assert.deepEqual(readPause('{"until":"2026-11-27T14:00:00Z","reason":"x","includes":["repair"]}'), {
    kind: 'paused',
    value: { untilMs: atMs, reason: 'x', includes: ['repair'] },
  })
})

test('EXP-21 what can be read of a faulty pause holds, and the rest has no end', () => {
  const read = readPause('{"until":"tomorrow","includes":["launches",3],"__proto__":1}')
  assert.ok(read.kind === 'malformed')
  assert.deepEqual(read.value, { includes: ['launches'] })
})

test('EXP-21 whatever the text, it is a pause unless it says false, and the problem is short', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json(), fc.constantFrom('2', '1e9', 'null', '[]', '{}')), (text) => {
      const read = readPause(text)
      assert.equal(read.kind === 'none', text.trim().toLowerCase() === 'false')
      if (read.kind === 'malformed') assert.ok(read.problem.length > 10)
    }),
  )
})

test('EXP-21 a pause that is written is read as it was, to the second', () => {
  const seconds = fc.integer({ min: 0, max: 4_000_000_000 }).map((s) => s * 1000)
  const pause: fc.Arbitrary<PauseValue> = fc.record(
    {
      untilMs: seconds,
      sinceMs: seconds,
      reason: fc.string({ minLength: 1, maxLength: 200 }),
      includes: fc.subarray([...includable]),
    },
    { requiredKeys: ['includes'], noNullPrototype: true },
  )
  fc.assert(
    fc.property(pause, (value) => {
      assert.deepEqual(readPause(pauseText(value)), { kind: 'paused', value })
    }),
  )
})
