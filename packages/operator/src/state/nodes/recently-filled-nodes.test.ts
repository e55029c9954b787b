import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { RecentlyFilledNodes } from './consolidation-state.ts'

const minute = 60_000

test('RPT-26 an instance that a decision filled is left alone for 15 min after its last pod and consolidateAfter', async () => {
  const clock = new VirtualClock()
  const fresh = new RecentlyFilledNodes(clock)
  const start = clock.now()
  fresh.fill('a')
  assert.equal(fresh.leftMs('a', start, minute), 16 * minute)
  assert.equal(fresh.leftMs('other', start, minute), 0)
  await clock.advance(10 * minute)
  assert.equal(fresh.leftMs('a', start, minute), 6 * minute)
  assert.equal(fresh.leftMs('a', clock.now(), minute), 16 * minute)
  await clock.advance(6 * minute)
  assert.equal(fresh.leftMs('a', start, minute), 0)
})

test('RPT-26 pods that come without end keep an instance for an hour at most, one that leaves lets it go at once', async () => {
  const clock = new VirtualClock()
  const fresh = new RecentlyFilledNodes(clock)
  fresh.fill('busy')
  fresh.fill('left')
  fresh.loosen('left')
  assert.equal(fresh.leftMs('left', clock.now(), 0), 0)
  await clock.advance(59 * minute)
  assert.equal(fresh.leftMs('busy', clock.now(), 0), minute)
  await clock.advance(minute)
  assert.equal(fresh.leftMs('busy', clock.now(), 0), 0)
})
