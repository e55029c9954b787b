import assert from 'node:assert/strict'
import { test } from 'node:test'
import { minute, someOptions, startMs } from '../scale-down.test-support.ts'
import { delayedGroups, isInCooldown, type LastTimes } from './cooldown.ts'

const never: LastTimes = { scaleUpMs: undefined, deletionMs: undefined, failureMs: undefined }

function cools(
  last: Partial<LastTimes>,
  options: Parameters<typeof someOptions>[0] = {},
  isForbidden = false,
): boolean {
  return isInCooldown({
    nowMs: startMs,
    isForbidden,
    last: { ...never, ...last },
    delays: someOptions(options),
  })
}

test('CAS-73 a scale-up holds deletions back for 10 minutes', () => {
  assert.equal(cools({ scaleUpMs: startMs - 9 * minute }), true)
  assert.equal(cools({ scaleUpMs: startMs - 10 * minute }), false)
  assert.equal(cools({}), false)
})

test('a failure holds them back for 3 minutes, a deletion not at all by default', () => {
  assert.equal(cools({ failureMs: startMs - 3 * minute + 1 }), true)
  assert.equal(cools({ failureMs: startMs - 3 * minute }), false)
  assert.equal(cools({ deletionMs: startMs }), false)
  assert.equal(cools({ deletionMs: startMs - minute }, { delayAfterDeleteMs: 2 * minute }), true)
})

test('CAS-74 with the local delay type only the group that changed is left alone', () => {
  const local = { delayTypeLocal: true, delayAfterDeleteMs: minute }
  assert.equal(cools({ scaleUpMs: startMs, failureMs: startMs }, local), false)
  assert.equal(cools({}, local, true), true)
  const groups = new Map<string, LastTimes>([
    ['grew', { ...never, scaleUpMs: startMs - 9 * minute }],
    ['shrank', { ...never, deletionMs: startMs - minute + 1 }],
    ['failed', { ...never, failureMs: startMs - 2 * minute }],
    ['quiet', { ...never, scaleUpMs: startMs - 10 * minute }],
  ])
  assert.deepEqual(
    [...delayedGroups(startMs, groups, someOptions(local)).keys()],
    ['grew', 'shrank', 'failed'],
  )
  assert.deepEqual([...delayedGroups(startMs, groups, someOptions()).keys()], [])
})

test('very new pods hold everything back', () => {
  assert.equal(cools({}, {}, true), true)
})
