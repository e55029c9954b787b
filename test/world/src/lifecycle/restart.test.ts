import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, karpenterKinds } from '@tenon/api'
import { minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'

test('LIF-146 a claim whose launch was not written down gets the same instance', async (t) => {
  let isRejecting = true
  const apiPath = intercepting((method, path) =>
    isRejecting && method === 'PATCH' && path.includes('/nodeclaims/a/status') ? 'error' : 'pass',
  )
  const stage = await Stage.open(t, { apiPath })
  await stage.claim('a')
  isRejecting = false
  await stage.restart()
  assert.equal(stage.state('a', 'Launched'), 'True/Launched')
  assert.equal(stage.cloud.instances.length, 1)
})

test('a claim whose instance does not come goes in time, also where no process leads for long', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.creationMs = 60 * minutes
  await stage.claim('a')
  for (let passed = 0; passed < 8; passed += 2) {
    await stage.pass(2 * minutes - 2 * seconds)
    await stage.restart()
  }
  assert.equal(stage.claimNow('a'), undefined)
})

test('a claim that is overdue when a process starts gets the instance that is there', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  await stage.claim('a')
  await stage.pass(10 * minutes)
  stage.cloud.creationMs = 30 * seconds
  await stage.start()
  await stage.pass(minutes)
  assert.equal(stage.state('a', 'Launched'), 'True/Launched')
})

test('a restart takes no pod for news whose coming was noted', async (t) => {
  const disruption = { consolidateAfter: '30s', budgets: [{ nodes: '0' }] }
  const stage = await Stage.open(t, { pool: { disruption } })
  await stage.ready('a')
  await stage.pod('p', 'node-a')
  await stage.pass(40 * seconds)
  const last = () => stage.claimNow('a')?.status?.lastPodEventTime
  const before = last()
  assert.notEqual(before, undefined)
  await stage.restart()
  assert.equal(last(), before)
  assert.equal(stage.state('a', 'Consolidatable'), 'True/Consolidatable')
  await stage.pod('q', 'node-a')
  assert.notEqual(last(), before)
  assert.equal(stage.state('a', 'Consolidatable'), 'absent')
})

test('LIF-147 a drain goes on with the same deadline and in the same order', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { terminationGracePeriod: '300s' })
  await stage.pod('plain', 'node-a')
  await stage.pod('critical', 'node-a', { spec: { priorityClassName: 'system-node-critical' } })
  await stage.deleteClaim('a')
  await stage.pass(3 * seconds)
  const deadline = () => stage.claimNow('a')?.metadata.annotations?.[annotations.terminationTimestamp]
  const before = deadline()
  await stage.restart()
  assert.equal(deadline(), before)
  assert.ok(!stage.isLeaving('critical'))
  await stage.end('plain')
  await stage.pass(2 * seconds)
  assert.ok(stage.isLeaving('critical'))
})

test('LIF-148 the Node of a claim that was torn out is drained and goes', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a')
  stage.patch(karpenterKinds.nodeClaim, 'a', { metadata: { finalizers: null } })
  stage.delete(karpenterKinds.nodeClaim, 'a')
  await stage.pass(5 * seconds)
  assert.ok(stage.isLeaving('p'))
  await stage.end('p')
  await stage.pass(3 * seconds)
  assert.equal(stage.nodeNow('node-a'), undefined)
})
