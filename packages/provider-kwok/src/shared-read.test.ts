import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { SharedRead } from './provider.ts'

/** Reads that end as the test says, in order. */
function aRead() {
  const pending: PromiseWithResolvers<number>[] = []
  const shared = new SharedRead(() => {
    const answer = Promise.withResolvers<number>()
    pending.push(answer)
    return answer.promise
  })
  return { pending, shared }
}

test('whoever asks while a read is under way shares the next one, which begins later', async () => {
  const { pending, shared } = aRead()
  const first = shared.ask()
  await turn()
  const later = [shared.ask(), shared.ask()]
  await turn()
  assert.equal(pending.length, 1)
  pending[0]?.resolve(1)
  assert.equal(await first, 1)
  await turn()
  assert.equal(pending.length, 2)
  pending[1]?.resolve(2)
  assert.deepEqual(await Promise.all(later), [2, 2])
})

test('a read that failed is told to its askers only', async () => {
  const { pending, shared } = aRead()
  const first = shared.ask()
  await turn()
  const second = shared.ask()
  pending[0]?.reject(new Error('unreachable'))
  await assert.rejects(first, /unreachable/)
  await turn()
  pending[1]?.resolve(2)
  assert.equal(await second, 2)
})
