import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, karpenterKinds, kinds } from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { rfc3339 } from '@tenon/runtime'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

const after = (consolidateAfter: string) => ({
  pool: { disruption: { consolidateAfter, budgets: [{ nodes: '0' }] } },
})

test('LIF-118 LIF-120 DIS-151 events of pods are noted, ten seconds apart at least', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  const last = () => stage.claimNow('a')?.status?.lastPodEventTime
  assert.equal(last(), undefined)
  await stage.pod('one', 'node-a')
  const first = last()
  assert.ok(first !== undefined && Math.abs(Date.parse(first) - stage.now) < 2 * seconds)
  await stage.pass(5 * seconds)
  await stage.pod('two', 'node-a')
  assert.equal(last(), first)
  await stage.pass(6 * seconds)
  stage.patch(kinds.pod, 'one', { status: { phase: 'Succeeded' } }, 'status', 'default')
  await stage.pass(100)
  const second = last()
  assert.notEqual(second, first)
  await stage.pass(20 * seconds)
  stage.patch(kinds.pod, 'two', { metadata: { labels: { a: 'b' } } }, undefined, 'default')
  await stage.pass(100)
  assert.equal(last(), second)
  stage.world.cluster.server.local.delete(kinds.pod, 'default', 'two')
  await stage.pass(100)
  assert.notEqual(last(), second)
})

test('LIF-119 daemon pods and pods without a node leave no trace', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('daemon', 'node-a', { ownerReferences: [await stage.daemonSet('agent')] })
  await stage.pod('elsewhere', 'unknown-node')
  await stage.pass(5 * seconds)
  assert.equal(stage.claimNow('a')?.status?.lastPodEventTime, undefined)
})

test('LIF-130 DIS-149 a claim becomes consolidatable so long after its last pod event', async (t) => {
  const stage = await Stage.open(t, after('30s'))
  await stage.ready('a')
  await stage.pass(minutes)
  assert.equal(stage.state('a', 'Consolidatable'), 'True/Consolidatable')
  await stage.pod('p', 'node-a')
  await stage.pass(seconds)
  assert.equal(stage.state('a', 'Consolidatable'), 'absent')
  await stage.pass(27 * seconds)
  assert.equal(stage.state('a', 'Consolidatable'), 'absent')
  await stage.pass(3 * seconds)
  assert.equal(stage.state('a', 'Consolidatable'), 'True/Consolidatable')
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { disruption: { consolidateAfter: 'Never' } } })
  await stage.pass(seconds)
  assert.equal(stage.state('a', 'Consolidatable'), 'absent')
})

test('LIF-131 DIS-150 without any pod event the time of initialization counts', async (t) => {
  const stage = await Stage.open(t, after('30s'))
  await stage.ready('a')
  assert.equal(stage.state('a', 'Consolidatable'), 'absent')
  await stage.pass(31 * seconds)
  assert.equal(stage.state('a', 'Consolidatable'), 'True/Consolidatable')
})

test('LIF-130 DIS-152 with 0s a claim is consolidatable as soon as it is initialized', async (t) => {
  const stage = await Stage.open(t, after('0s'))
  await stage.claim('a')
  await stage.join('a')
  await stage.pass(minutes)
  assert.equal(stage.state('a', 'Consolidatable'), 'absent')
  await stage.report('node-a')
  assert.equal(stage.state('a', 'Consolidatable'), 'True/Consolidatable')
})

test('LIF-121 a claim whose hash differs has drifted, whatever the cloud says; other versions do not compare', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onIsDrifted = () => 'CloudReason'
  const hash = (value: string, version: string) => ({
    annotations: { [annotations.nodePoolHash]: value, [annotations.nodePoolHashVersion]: version },
  })
  await stage.ready('a', {}, hash('1', 'v3'))
  assert.equal(stage.state('a', 'Drifted'), 'True/NodePoolDrifted')
  await stage.ready('b', {}, hash('1', 'v2'))
  await stage.ready('c')
  for (const name of ['b', 'c']) assert.equal(stage.state(name, 'Drifted'), 'True/CloudReason')
})

test('LIF-122 STA-110 a label in the template drifts the nodes, requirements leave the hash alone', async (t) => {
  const stage = await Stage.open(t)
  const hash = () => stage.poolNow()?.metadata.annotations?.[annotations.nodePoolHash]
  const before = hash() ?? ''
  await stage.ready(
    'a',
    {},
    { annotations: { [annotations.nodePoolHash]: before, [annotations.nodePoolHashVersion]: 'v3' } },
  )
  const requirements = [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux', 'windows'] }]
  stage.patch(karpenterKinds.nodePool, 'default', {
    spec: {
      limits: { cpu: '100' },
      weight: 5,
      disruption: { consolidateAfter: '1h', budgets: [{ nodes: '1' }] },
      template: { spec: { requirements } },
    },
  })
  await stage.pass(seconds)
  assert.equal(hash(), before)
  assert.equal(stage.state('a', 'Drifted'), 'absent')
  stage.patch(karpenterKinds.nodePool, 'default', {
    spec: { template: { metadata: { labels: { team: 'a' } } } },
  })
  await stage.pass(seconds)
  assert.notEqual(hash(), before)
  assert.equal(stage.state('a', 'Drifted'), 'True/NodePoolDrifted')
})

test('LIF-123 LIF-124 only claims whose labels the pool no longer allows have drifted', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', {}, { labels: { 'example.com/size': '5' } })
  await stage.ready('b', {}, { labels: { 'example.com/size': '50' } })
  const require = async (extra: object) => {
    const requirements = [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }, extra]
    stage.patch(karpenterKinds.nodePool, 'default', { spec: { template: { spec: { requirements } } } })
    await stage.pass(seconds)
    return ['a', 'b'].map((name) => stage.state(name, 'Drifted') === 'True/RequirementsDrifted')
  }
  const size = 'example.com/size'
  assert.deepEqual(await require({ key: size, operator: 'Gt', values: ['10'] }), [true, false])
  assert.deepEqual(await require({ key: size, operator: 'Exists' }), [false, false])
  assert.deepEqual(await require({ key: size, operator: 'DoesNotExist' }), [true, true])
  assert.deepEqual(await require({ key: size, operator: 'In', values: ['5', '7'] }), [false, true])
  assert.deepEqual(await require({ key: 'example.com/new', operator: 'Exists' }), [true, true])
  assert.deepEqual(await require({ key: 'example.com/new', operator: 'NotIn', values: ['x'] }), [
    false,
    false,
  ])
})

test('LIF-127 LIF-128 the reason of the cloud comes and goes without moving the time', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onIsDrifted = () => 'One'
  await stage.ready('a')
  assert.equal(stage.condition('a', 'Drifted')?.message, 'One')
  const since = stage.condition('a', 'Drifted')?.lastTransitionTime
  stage.cloud.onIsDrifted = () => 'Two'
  await stage.pass(6 * minutes)
  assert.equal(stage.state('a', 'Drifted'), 'True/Two')
  assert.equal(stage.condition('a', 'Drifted')?.lastTransitionTime, since)
  stage.cloud.onIsDrifted = () => undefined
  await stage.pass(6 * minutes)
  assert.equal(stage.state('a', 'Drifted'), 'absent')
})

test('a changed node class is noticed at once', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  stage.cloud.onIsDrifted = () => 'NodeClassDrifted'
  stage.patch(kwokNodeClassKind, 'default', { spec: { nodeRegistrationDelay: '5s' } })
  await stage.pass(seconds)
  assert.equal(stage.state('a', 'Drifted'), 'True/NodeClassDrifted')
})

test('LIF-129 STA-111 a new hash version reaches the claims; drifted ones keep their hash', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  const old = { annotations: { [annotations.nodePoolHash]: '1', [annotations.nodePoolHashVersion]: 'v2' } }
  await stage.claim('fresh', {}, old)
  await stage.claim('drifted', {}, old)
  const condition = {
    type: 'Drifted',
    status: 'True',
    reason: 'X',
    message: 'X',
    lastTransitionTime: rfc3339(stage.now),
  }
  stage.patch(karpenterKinds.nodeClaim, 'drifted', { status: { conditions: [condition] } }, 'status')
  await stage.start()
  const of = (name: string) => stage.claimNow(name)?.metadata.annotations ?? {}
  assert.equal(
    of('fresh')[annotations.nodePoolHash],
    stage.poolNow()?.metadata.annotations?.[annotations.nodePoolHash],
  )
  assert.equal(of('drifted')[annotations.nodePoolHash], '1')
  for (const name of ['fresh', 'drifted']) assert.equal(of(name)[annotations.nodePoolHashVersion], 'v3')
  assert.equal(stage.poolNow()?.metadata.annotations?.[annotations.nodePoolHashVersion], 'v3')
})
