import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ProviderError } from '@tenon/provider'
import { seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, madeClaims, waitingPod } from '../testing/pools.test-support.ts'

test('STA-14 a claim that is told about after its end keeps decisions back for fifteen seconds', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.instanceTypes = [aType('medium', 4)]
  const { state } = stage.operator.operator
  state.seed(stage.aClaim('gone'))
  waitingPod(stage, 'pod')
  await stage.pass(14 * seconds)
  assert.deepEqual(madeClaims(stage), [])
  assert.equal(await stage.metric('cluster_state_synced'), 0)
  await stage.pass(3 * seconds)
  assert.equal(madeClaims(stage).length, 1)
  assert.equal(await stage.metric('cluster_state_synced'), 1)
})

test('STA-10 STA-15 a claim that exists and is not launched keeps decisions back for as long', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.instanceTypes = [aType('medium', 4)]
  let isSoldOut = true
  stage.cloud.onCreate = () => {
    if (isSoldOut) throw new ProviderError('other', 'not now')
  }
  await stage.claim('a')
  waitingPod(stage, 'pod')
  await stage.pass(60 * seconds)
  assert.deepEqual(madeClaims(stage), [])
  assert.ok((await stage.metric('cluster_state_unsynced_time_seconds')) > 30)
  isSoldOut = false
  await stage.pass(60 * seconds)
  assert.equal(await stage.metric('cluster_state_unsynced_time_seconds'), 0)
  assert.equal(await stage.metric('cluster_state_node_count'), stage.world.claims().length)
})
