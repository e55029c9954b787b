import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, kinds } from '@tenon/api'
import { hours, minutes, seconds, Stage } from '../testing/stage.test-support.ts'

const noBudget = { disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '0' }] } }

test('LIF-107 LIF-108 a claim expires at its age, and is counted once', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { expireAfter: '1h' })
  await stage.pod('p', 'node-a', { annotations: { [annotations.doNotDisrupt]: 'true' } })
  await stage.ready('never')
  await stage.pass(hours - minutes)
  assert.equal(stage.claimNow('a')?.metadata.deletionTimestamp, undefined)
  await stage.pass(minutes)
  assert.notEqual(stage.claimNow('a')?.metadata.deletionTimestamp, undefined)
  await stage.pass(minutes)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'expired' }), 1)
  assert.equal(stage.claimNow('never')?.metadata.deletionTimestamp, undefined)
})

test('LIF-109 neither budgets nor do-not-disrupt on the node keep it from expiring', async (t) => {
  const stage = await Stage.open(t, { pool: noBudget })
  await stage.ready('a', { expireAfter: '1h' }, { annotations: { [annotations.doNotDisrupt]: 'true' } })
  await stage.pass(hours + minutes)
  assert.equal(stage.claimNow('a'), undefined)
})

test('LIF-110 a claim that was never launched expires too', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onCreate = () => {
    throw new Error('no')
  }
  await stage.claim('a', { expireAfter: '2m' })
  await stage.pass(2 * minutes + seconds)
  assert.equal(stage.claimNow('a'), undefined)
})

test('LIF-111 LIF-150 claims whose instances are gone are deleted once their nodes are silent', async (t) => {
  const stage = await Stage.open(t)
  const names = Array.from({ length: 20 }, (_, i) => `n${i}`)
  for (const name of names) await stage.ready(name)
  for (const name of names) {
    await stage.report(`node-${name}`, 'Unknown')
    stage.cloud.lose(`fake://${name}`)
  }
  await stage.pass(2 * minutes + 10 * seconds)
  assert.deepEqual([stage.world.claims(), stage.world.nodes()], [[], []])
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'garbage_collected' }), 20)
})

test('LIF-111 a Node and its instance that go while no operator runs take their claim along, though lists fail at first', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.world.bury(stage.operator)
  stage.patch(kinds.node, 'node-a', { metadata: { finalizers: null } })
  stage.world.cluster.server.local.delete(kinds.node, undefined, 'node-a')
  stage.cloud.lose('fake://a')
  stage.cloud.onList = () => Promise.reject(new Error('the cloud is busy'))
  await stage.start()
  await stage.pass(5 * seconds)
  stage.cloud.onList = () => Promise.resolve()
  await stage.pass(3 * minutes)
  assert.equal(stage.claimNow('a'), undefined)
})

test('LIF-112 a node that is Ready is trusted over the cloud', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  stage.cloud.lose('fake://a')
  await stage.pass(10 * minutes)
  assert.equal(stage.claimNow('a')?.metadata.deletionTimestamp, undefined)
})

test('LIF-113 a claim that is not registered is the registration timeout’s to find', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a')
  stage.cloud.lose('fake://a')
  await stage.pass(10 * minutes)
  assert.equal(stage.claimNow('a')?.metadata.deletionTimestamp, undefined)
})

test('LIF-114 an instance that the cloud is deleting counts as gone', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.report('node-a', 'False')
  stage.cloud.markDeleting('fake://a')
  await stage.pass(3 * minutes)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'garbage_collected' }), 1)
})

test('LIF-115 a claim whose Node is missing is kept while the instance is there', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.report('node-a', 'Unknown')
  await stage.pass(10 * minutes)
  assert.equal(stage.claimNow('a')?.metadata.deletionTimestamp, undefined)
})
