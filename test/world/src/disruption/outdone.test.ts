/** A move that waits to be confirmed, while a far better one becomes possible. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { seconds } from '../testing/stage.test-support.ts'
import { tainted } from './disruption-stage.test-support.ts'
import { aNodeOf, consolidate, large, openReplacing, running } from './replacing-stage.test-support.ts'

const podsOfEach = 5

test('while a workload is being scaled down, one move for all of it takes the place of one for its beginning', async (t) => {
  const stage = await openReplacing(t)
  const names = ['a', 'b', 'c', 'd']
  for (const name of names) {
    await aNodeOf(stage, name, large)
    const count = name === 'a' ? 1 : podsOfEach
    for (let i = 0; i < count; i++) await running(stage, `${name}-${i}`, `node-${name}`, '1400m')
  }
  consolidate(stage)
  const found = () => stage.events('ConsolidationCandidate').length > 0
  await stage.world.clock.advanceUntil(found, 30 * seconds)
  await stage.pass(3 * seconds)
  for (const name of names.slice(1))
    for (let i = 1; i < podsOfEach; i++)
      stage.world.cluster.server.local.delete(kinds.pod, 'default', `${name}-${i}`, { gracePeriodSeconds: 0 })
  await stage.pass(13 * seconds)
  assert.deepEqual(tainted(stage), [], 'the small move is not carried out')
  assert.match(stage.events('ConsolidationRejected')[0]?.message ?? '', /rejected: outdone$/)
  await stage.pass(20 * seconds)
  assert.equal(tainted(stage).length, 3)
})
