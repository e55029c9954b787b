import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandTimeoutMs } from './commands.ts'

const minutes = 60_000

test('DIS-142 a command has ten minutes, more the more nodes are in the queue, and an hour at most', () => {
  assert.deepEqual(
    [100, 10_000, 40_000, 100_000].map((nodes) => commandTimeoutMs(nodes) / minutes),
    [10, 13 + 1 / 3, 53 + 1 / 3, 60],
  )
})
