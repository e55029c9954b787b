import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations } from '@tenon/api'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

const asks = { resources: { requests: { cpu: '1', memory: '1Gi' } } }
const promised = { capacity: { cpu: '10', memory: '128Gi', pods: '110' } }
const verdict = (stage: Stage) => stage.state('a', 'ConsistentStateFound')

test('LIF-116 a node with half the memory promised is told of, with nine tenths it is as promised', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.extras = promised
  await stage.claim('a', asks)
  await stage.join('a')
  await stage.report('node-a', 'True', { cpu: '9', memory: '64Gi' })
  await stage.pass(10 * minutes)
  assert.equal(verdict(stage), 'False/ConsistencyCheckFailed')
  const [event, another] = stage.events('FailedConsistencyCheck')
  assert.deepEqual([event?.type, event?.object, another], ['Warning', 'NodeClaim/a', undefined])
  for (const word of ['memory', '128Gi', '64Gi', '50.0%']) assert.ok(event?.message.includes(word))
  await stage.report('node-a', 'True', { cpu: '9', memory: '115Gi' })
  await stage.pass(10 * minutes)
  assert.equal(verdict(stage), 'False/ConsistencyCheckFailed')
  await stage.report('node-a', 'True', { cpu: '9', memory: '128Gi' })
  await stage.pass(10 * minutes)
  assert.equal(verdict(stage), 'True/ConsistentStateFound')
})

test('resources that nobody asked for or promised are not compared, nor a claim that goes', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.extras = promised
  const requests = { cpu: '0', 'example.com/gpu': '1' }
  await stage.claim('a', { resources: { requests } })
  await stage.join('a')
  await stage.report('node-a', 'True', { cpu: '1', memory: '1Gi', 'example.com/gpu': '1' })
  await stage.pass(11 * minutes)
  assert.equal(verdict(stage), 'True/ConsistentStateFound')
  await stage.ready('b', asks)
  await stage.pod('p', 'node-b', { annotations: { [annotations.doNotDisrupt]: 'true' } })
  await stage.deleteClaim('b')
  await stage.report('node-b', 'True', { memory: '1Gi' })
  await stage.pass(11 * minutes)
  assert.notEqual(stage.claimNow('b')?.metadata.deletionTimestamp, undefined)
  assert.equal(stage.state('b', 'ConsistentStateFound'), 'True/ConsistentStateFound')
  assert.deepEqual(stage.events('FailedConsistencyCheck'), [])
})

test('LIF-117 a claim without issues is consistent, and is not looked at again for ten minutes', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.extras = promised
  await stage.ready('a', asks)
  await stage.report('node-a', 'True', { cpu: '10', memory: '128Gi' })
  await stage.pass(10 * minutes)
  assert.equal(verdict(stage), 'True/ConsistentStateFound')
  await stage.report('node-a', 'False', { cpu: '10', memory: '1Gi' })
  await stage.pass(9 * minutes)
  assert.deepEqual(
    [verdict(stage), stage.events('FailedConsistencyCheck').length],
    ['True/ConsistentStateFound', 0],
  )
  await stage.pass(minutes + seconds)
  assert.deepEqual(
    [verdict(stage), stage.events('FailedConsistencyCheck').length],
    ['False/ConsistencyCheckFailed', 1],
  )
})

test('before initialization a claim counts as consistent, whatever its node has', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.extras = promised
  await stage.claim('a', { ...asks, startupTaints: [{ key: 'example.com/boot', effect: 'NoSchedule' }] })
  await stage.join('a')
  await stage.report('node-a', 'True', { memory: '1Gi' })
  await stage.pass(11 * minutes)
  assert.equal(verdict(stage), 'True/ConsistentStateFound')
  assert.equal(stage.state('a', 'Initialized'), 'Unknown/StartupTaintsExist')
})
