import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, karpenterKinds, kinds, labels, terminationFinalizer } from '@tenon/api'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

test('LIF-48 LIF-53 LIF-55 LIF-56 the node goes first, then the instance, then the claim', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.deletionMs = 12 * seconds
  await stage.ready('a')
  await stage.deleteClaim('a')
  assert.notEqual(stage.nodeNow('node-a')?.metadata.deletionTimestamp, undefined)
  assert.equal(stage.cloud.count('delete'), 0)
  await stage.pass(8 * seconds)
  assert.equal(stage.state('a', 'InstanceTerminating'), 'True/InstanceTerminating')
  assert.equal(stage.state('a', 'Ready'), 'True/Ready')
  const { metadata, status } = stage.claimNow('a') ?? {}
  assert.ok(status?.conditions?.every((each) => each.observedGeneration === metadata?.generation))
  assert.notEqual(stage.nodeNow('node-a'), undefined)
  await stage.pass(20 * seconds)
  assert.deepEqual([stage.nodeNow('node-a'), stage.claimNow('a')], [undefined, undefined])
  const times = stage.cloud.timesOf('delete a')
  assert.deepEqual(
    times.slice(1, 3).map((time, i) => Math.round((time - (times[i] ?? 0)) / seconds)),
    [5, 5],
  )
  assert.equal(await stage.metric('nodeclaims_instance_termination_duration_seconds'), 1)
  assert.equal(await stage.metric('nodeclaims_termination_duration_seconds'), 1)
  assert.equal(await stage.metric('nodeclaims_terminated_total', { zone: 'zone-1' }), 1)
})

test('LIF-49 every Node of the claim is deleted before the instance', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.join('a', { name: 'two', finalizers: ['example.com/hold'], taints: [] })
  await stage.join('a', { name: 'three', finalizers: ['example.com/hold'], taints: [] })
  await stage.deleteClaim('a')
  await stage.pass(minutes)
  for (const name of ['two', 'three'])
    assert.notEqual(stage.nodeNow(name)?.metadata.deletionTimestamp, undefined)
  assert.notEqual(stage.claimNow('a'), undefined)
  for (const name of ['two', 'three']) stage.patch(kinds.node, name, { metadata: { finalizers: null } })
  await stage.pass(30 * seconds)
  assert.equal(stage.claimNow('a'), undefined)
})

test('LIF-50 the Node of an unregistered claim is left alone', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  stage.cloud.deletionMs = 7 * seconds
  await stage.claim('a')
  await stage.join('a', { name: 'one' })
  await stage.join('a', { name: 'two' })
  await stage.start()
  await stage.deleteClaim('a')
  await stage.pass(20 * seconds)
  assert.equal(stage.claimNow('a'), undefined)
  assert.ok(stage.cloud.count('delete') >= 3)
  assert.equal(stage.nodeNow('one')?.metadata.deletionTimestamp, undefined)
})

test('a Node that is open goes first, too, when nobody could store that its claim is registered', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  stage.cloud.deletionMs = 7 * seconds
  await stage.claim('a')
  await stage.join('a', { name: 'open', labels: { [labels.registered]: 'true' }, taints: [] })
  await stage.join('a', { name: 'other' })
  await stage.start()
  await stage.deleteClaim('a')
  await stage.pass(2 * seconds)
  assert.notEqual(stage.nodeNow('open')?.metadata.deletionTimestamp, undefined)
  await stage.pass(20 * seconds)
  assert.equal(stage.nodeNow('open'), undefined)
  assert.notEqual(stage.nodeNow('other'), undefined)
})

for (const isLaunched of [true, false])
  test(`a Node that joined without the unregistered taint is drained, its claim ${isLaunched ? 'launched' : 'not known to be launched'}`, async (t) => {
    const stage = await Stage.open(t, { idle: true })
    stage.cloud.deletionMs = 7 * seconds
    const claim = await stage.claim('a', {}, { finalizers: [terminationFinalizer] })
    const { providerID } = await stage.cloud.create(claim)
    if (isLaunched) stage.patch(karpenterKinds.nodeClaim, 'a', { status: { providerID } }, 'status')
    await stage.join('a', { taints: [] })
    await stage.pod('web', 'node-a')
    await stage.deleteClaim('a')
    await stage.start()
    await stage.pass(10 * seconds)
    assert.ok(stage.isLeaving('web'))
    assert.equal(stage.cloud.count('delete'), 0)
    await stage.end('web')
    await stage.pass(30 * seconds)
    assert.deepEqual([stage.nodeNow('node-a'), stage.claimNow('a')], [undefined, undefined])
    assert.deepEqual(stage.cloud.instances, [])
  })

test('LIF-51 a claim without an instance goes without a call, and Nodes without provider ID survive', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onCreate = () => {
    throw new Error('no')
  }
  stage.world.create(kinds.node, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'bare' }, spec: {} })
  await stage.claim('a')
  await stage.deleteClaim('a')
  await stage.pass(5 * seconds)
  assert.equal(stage.claimNow('a'), undefined)
  assert.equal(stage.cloud.count('delete'), 0)
  assert.notEqual(stage.nodeNow('bare'), undefined)
})

test('LIF-52 an error of the cloud keeps the claim until the instance is known to be gone', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a')
  stage.cloud.onDelete = () => {
    throw new Error('no answer')
  }
  await stage.deleteClaim('a')
  await stage.pass(10 * seconds)
  assert.notEqual(stage.claimNow('a'), undefined)
  stage.cloud.onDelete = () => undefined
  await stage.pass(minutes)
  assert.equal(stage.claimNow('a'), undefined)
})

test('LIF-54 the grace period is written down once, from the time of deletion', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { terminationGracePeriod: '300s' })
  await stage.ready('none')
  const kept = '2030-01-01T00:00:00Z'
  await stage.ready(
    'kept',
    { terminationGracePeriod: '300s' },
    { annotations: { [annotations.terminationTimestamp]: kept } },
  )
  for (const name of ['a', 'none', 'kept']) {
    await stage.pod(`on-${name}`, `node-${name}`)
    await stage.deleteClaim(name)
  }
  const stamp = (name: string) =>
    stage.claimNow(name)?.metadata.annotations?.[annotations.terminationTimestamp]
  const deletedMs = Date.parse(stage.claimNow('a')?.metadata.deletionTimestamp ?? '')
  assert.equal(Date.parse(stamp('a') ?? '') - deletedMs, 300 * seconds)
  assert.equal(stamp('none'), undefined)
  assert.equal(stamp('kept'), kept)
  assert.ok(stage.events('TerminationGracePeriodExpiring').some(({ object }) => object === 'NodeClaim/a'))
})

test('LIF-57 quantities as users write them do not keep a claim from going', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { resources: { requests: { cpu: '50000', memory: '50000' } } })
  await stage.deleteClaim('a')
  await stage.pass(30 * seconds)
  assert.equal(stage.claimNow('a'), undefined)
})

test('LIF-63 a deleted Node takes its claim along', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  stage.delete(kinds.node, 'node-a')
  await stage.pass(30 * seconds)
  assert.deepEqual([stage.nodeNow('node-a'), stage.claimNow('a')], [undefined, undefined])
  assert.equal(stage.cloud.instances.length, 0)
})

test('LIF-144 the claims of a deleted NodePool go, and none are made meanwhile', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.ready('b')
  stage.delete(karpenterKinds.nodePool, 'default')
  await stage.pass(minutes)
  assert.deepEqual(stage.world.claims(), [])
  assert.equal(stage.cloud.count('create'), 2)
})
