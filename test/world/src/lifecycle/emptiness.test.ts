import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, karpenterKinds, kinds, labels } from '@tenon/api'
import { mediumLabels, openDisruption } from '../disruption/disruption-stage.test-support.ts'
import { minutes, intercepting, seconds, type Stage } from '../testing/stage.test-support.ts'

const pool = (nodes = '100%') => ({ disruption: { consolidateAfter: '30s', budgets: [{ nodes }] } })
/** Nodes that are not on their way out, after the pool has had time to act. */
const left = (stage: Stage) =>
  stage.world
    .claims()
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.name)

test('DIS-56 DIS-67 an empty node is removed, also one without a zone', async (t) => {
  const stage = await openDisruption(t, pool())
  const { [labels.zone]: _, ...others } = mediumLabels
  stage.cloud.extras = { labels: others }
  await stage.ready('a')
  await stage.pass(minutes + 10 * seconds)
  assert.deepEqual(left(stage), [])
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'empty' }), 1)
})

test('DIS-37 with a budget of 0 nothing is removed', async (t) => {
  const stage = await openDisruption(t, pool('0'))
  await stage.ready('a')
  await stage.pass(5 * minutes)
  assert.deepEqual(left(stage), ['a'])
})

test('DIS-36 a budget of 30 % lets 3 of 10 nodes go at a time', async (t) => {
  const stage = await openDisruption(t, pool('0'))
  for (let i = 0; i < 10; i++) await stage.ready(`n${i}`)
  await stage.pass(minutes)
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { disruption: { budgets: [{ nodes: '30%' }] } } })
  for (let i = 0; i < 60 && left(stage).length === 10; i++) await stage.pass(seconds)
  assert.equal(left(stage).length, 7)
})

test('DIS-40 nodes that are not Ready use the budget up', async (t) => {
  const stage = await openDisruption(t, pool('2'))
  for (const name of ['a', 'b', 'c']) await stage.ready(name)
  for (const name of ['b', 'c']) {
    await stage.pod(`on-${name}`, `node-${name}`)
    await stage.report(`node-${name}`, 'False')
  }
  await stage.pass(5 * minutes)
  assert.deepEqual(left(stage), ['a', 'b', 'c'])
})

test('DIS-57 daemon pods, ending pods and pods that cost nothing leave a node empty', async (t) => {
  const stage = await openDisruption(t, pool())
  for (const name of ['daemon', 'ending', 'free', 'plain']) await stage.ready(name)
  await stage.pod('daemon', 'node-daemon', { ownerReferences: [await stage.daemonSet('agent')] })
  await stage.pod('ending', 'node-ending', { spec: { terminationGracePeriodSeconds: 3600 } })
  stage.world.cluster.server.local.delete(kinds.pod, 'default', 'ending')
  const cost = { 'controller.kubernetes.io/pod-deletion-cost': '-2147483647' }
  await stage.pod('free', 'node-free', { annotations: cost })
  await stage.pod('plain', 'node-plain')
  await stage.pass(90 * seconds)
  assert.deepEqual(left(stage), ['plain'])
})

test('DIS-16 DIS-17 do-not-disrupt on the node or on any of its pods keeps it', async (t) => {
  const stage = await openDisruption(t, pool())
  const keep = { annotations: { [annotations.doNotDisrupt]: 'true' } }
  await stage.ready('node', {}, keep)
  await stage.ready('pod')
  await stage.pod('daemon', 'node-pod', { ownerReferences: [await stage.daemonSet('agent')], ...keep })
  await stage.ready('other', {}, { annotations: { [annotations.doNotDisrupt]: 'false' } })
  await stage.pass(2 * minutes)
  assert.deepEqual(left(stage), ['node', 'pod'])
})

test('DIS-65 a node that gets a pod while the removal is checked stays', async (t) => {
  const stage = await openDisruption(t, pool())
  await stage.ready('a')
  await stage.ready('b')
  await stage.pass(38 * seconds)
  assert.deepEqual(left(stage), ['a', 'b'])
  await stage.pod('late', 'node-a')
  await stage.pass(30 * seconds)
  assert.deepEqual(left(stage), ['a'])
})

test('a node that becomes empty while another is checked waits for a check of its own', async (t) => {
  const stage = await openDisruption(t, pool())
  await stage.ready('a')
  await stage.pass(20 * seconds)
  await stage.ready('b')
  const deletedAt: Record<string, number> = {}
  for (let i = 0; i < 120; i++) {
    for (const name of ['a', 'b']) if (!left(stage).includes(name)) deletedAt[name] ??= stage.now
    await stage.pass(seconds)
  }
  assert.ok((deletedAt['b'] ?? 0) - (deletedAt['a'] ?? 0) >= 14 * seconds, JSON.stringify(deletedAt))
})

test('a claim that cannot be deleted at first is untainted or removed later, not forgotten', async (t) => {
  let isRejecting = true
  const apiPath = intercepting((method, path) =>
    isRejecting && method === 'DELETE' && path.includes('/nodeclaims/') ? 'error' : 'pass',
  )
  const stage = await openDisruption(t, { ...pool(), apiPath })
  await stage.ready('a')
  await stage.pass(2 * minutes)
  assert.deepEqual(left(stage), ['a'])
  isRejecting = false
  await stage.pass(2 * minutes)
  assert.deepEqual(left(stage), [])
})

test('LIF-145 DIS-2 taint and reason of a process that died are taken off again', async (t) => {
  const stage = await openDisruption(t, pool('0'))
  await stage.ready('a')
  const conditions = stage.claimNow('a')?.status?.conditions ?? []
  const reason = {
    type: 'DisruptionReason',
    status: 'True',
    reason: 'Empty',
    message: 'Empty',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }
  stage.patch(kinds.node, 'node-a', {
    spec: { taints: [{ key: 'karpenter.sh/disrupted', effect: 'NoSchedule' }] },
  })
  stage.patch(karpenterKinds.nodeClaim, 'a', { status: { conditions: [...conditions, reason] } }, 'status')
  await stage.restart()
  await stage.pass(15 * seconds)
  assert.deepEqual(stage.nodeNow('node-a')?.spec?.taints ?? [], [])
  assert.equal(stage.state('a', 'DisruptionReason'), 'absent')
})
