import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { kinds } from '@tenon/api'
import { seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, madeClaims, waitingPod } from '../testing/pools.test-support.ts'

/** How long `node-a` is kept for a pod that was sent to it, asked every 100 ms; the pod goes at once. */
async function keptMs(t: TestContext, batchMaxMs?: number): Promise<number> {
  const stage = await Stage.open(t, batchMaxMs === undefined ? {} : { settings: { batchMaxMs } })
  stage.cloud.instanceTypes = [aType('medium', 4)]
  await stage.ready('a')
  const { state } = stage.operator.operator
  waitingPod(stage, 'pod')
  for (let i = 0; i < 100 && !state.isNominated('fake://a'); i++) await stage.pass(100)
  const start = stage.now
  stage.world.cluster.server.local.delete(kinds.pod, 'default', 'pod', { gracePeriodSeconds: 0 })
  for (let i = 0; i < 300 && state.isNominated('fake://a'); i++) await stage.pass(100)
  assert.deepEqual(madeClaims(stage), [])
  return stage.now - start
}

test('STA-40 a node is kept for a pod for twice as long as batches last', async (t) => {
  const ms = await keptMs(t)
  assert.ok(ms > 19 * seconds && ms <= 20 * seconds, `${ms} ms`)
})

test('STA-41 it is kept ten seconds at least', async (t) => {
  const ms = await keptMs(t, 2 * seconds)
  assert.ok(ms > 9 * seconds && ms <= 10 * seconds, `${ms} ms`)
})

test('another pod for it keeps it for longer', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.instanceTypes = [aType('medium', 4)]
  await stage.ready('a')
  const { state } = stage.operator.operator
  waitingPod(stage, 'one')
  await stage.pass(5 * seconds)
  await stage.end('one')
  await stage.pass(8 * seconds)
  waitingPod(stage, 'two')
  await stage.pass(5 * seconds)
  await stage.end('two')
  await stage.pass(10 * seconds)
  assert.ok(state.isNominated('fake://a'))
  await stage.pass(10 * seconds)
  assert.ok(!state.isNominated('fake://a'))
})
