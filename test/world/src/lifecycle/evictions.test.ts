import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, kinds } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

const protectedBy = (value: string) => ({ annotations: { [annotations.doNotDisrupt]: value } })

async function pdb(stage: Stage, name: string): Promise<void> {
  const type = kinds.podDisruptionBudget
  stage.world.create(type, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'default' },
    spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'web' } } },
  })
  await stage.pass(seconds)
}

test('LIF-81 a pod that took the name of an evicted one is not evicted for it', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('web-0', 'node-a', protectedBy('true'))
  await stage.deleteClaim('a')
  await stage.end('web-0')
  await stage.ready('b')
  await stage.pod('web-0', 'node-b')
  await stage.pass(30 * seconds)
  assert.ok(!stage.isLeaving('web-0'))
})

test('LIF-83 a PDB holds the drain, and the Node says so', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await pdb(stage, 'one')
  await stage.pod('web-0', 'node-a', { labels: { app: 'web' } })
  await stage.deleteClaim('a')
  await stage.pass(minutes)
  assert.ok(!stage.isLeaving('web-0'))
  assert.ok((await stage.metric('pods_eviction_requests_total', { code: '429' })) > 5)
  assert.equal(stage.events('FailedDraining')[0]?.object, 'Node/node-a')
  stage.world.cluster.server.local.delete(kinds.podDisruptionBudget, 'default', 'one')
  await stage.pass(15 * seconds)
  assert.ok(stage.isLeaving('web-0'))
})

test('LIF-84 two PDBs hold the drain with a code of their own', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await pdb(stage, 'one')
  await pdb(stage, 'two')
  await stage.pod('web-0', 'node-a', { labels: { app: 'web' } })
  await stage.deleteClaim('a')
  await stage.pass(minutes)
  assert.ok(!stage.isLeaving('web-0'))
  assert.ok((await stage.metric('pods_eviction_requests_total', { code: '500' })) > 5)
})

test('LIF-86 do-not-disrupt "true" holds until it is removed', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a', protectedBy('true'))
  await stage.deleteClaim('a')
  await stage.pass(10 * minutes)
  assert.ok(!stage.isLeaving('p'))
  stage.patch(kinds.pod, 'p', { metadata: { annotations: null } }, undefined, 'default')
  await stage.pass(15 * seconds)
  assert.ok(stage.isLeaving('p'))
})

test('LIF-87 do-not-disrupt "1m" holds for a minute from the start of the pod', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a', protectedBy('1m'))
  await stage.deleteClaim('a')
  await stage.pass(45 * seconds)
  assert.ok(!stage.isLeaving('p'))
  assert.equal(stage.events('DoNotDisruptUntil').length, 1)
  await stage.pass(30 * seconds)
  assert.ok(stage.isLeaving('p'))
  assert.equal(stage.events('DoNotDisruptGracePeriodElapsed').length, 1)
})

for (const value of ['0s', '-1m', 'abc']) {
  test(`LIF-87 do-not-disrupt "${value}" is no protection, and the pod is told`, async (t) => {
    const stage = await Stage.open(t)
    await stage.ready('a')
    await stage.pod('p', 'node-a', protectedBy(value))
    await stage.deleteClaim('a')
    await stage.pass(2 * seconds)
    assert.ok(stage.isLeaving('p'))
    assert.equal(stage.events('InvalidDoNotDisruptAnnotation')[0]?.object, 'Pod/p')
  })
}

test('LIF-90 LIF-94 a pod that needs the whole grace period is deleted at once, whatever protects it', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { terminationGracePeriod: '300s' })
  await pdb(stage, 'one')
  const spec = { terminationGracePeriodSeconds: 300 }
  await stage.pod('p', 'node-a', { ...protectedBy('true'), labels: { app: 'web' }, spec })
  await stage.deleteClaim('a')
  await stage.pass(2 * seconds)
  assert.ok(stage.isLeaving('p'))
  assert.equal(stage.events('Disrupted').length, 1)
  const grace = stage.podNow('p')?.metadata.deletionGracePeriodSeconds ?? 0
  assert.ok(grace > 290 && grace < 300, String(grace))
})

test('LIF-91 a protected pod is left alone until its own grace period is all that is left', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { terminationGracePeriod: '300s' })
  await stage.pod('p', 'node-a', { ...protectedBy('true'), spec: { terminationGracePeriodSeconds: 60 } })
  await stage.deleteClaim('a')
  await stage.pass(90 * seconds)
  assert.ok(!stage.isLeaving('p'))
  await stage.pass(140 * seconds)
  assert.ok(!stage.isLeaving('p'))
  await stage.pass(20 * seconds)
  assert.ok(stage.isLeaving('p'))
})

test('a protected pod with a short grace period is deleted in time, however long it was left alone', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { terminationGracePeriod: '300s' })
  await stage.pod('p', 'node-a', { ...protectedBy('true'), spec: { terminationGracePeriodSeconds: 3 } })
  await stage.deleteClaim('a')
  const deadline = Date.parse(
    stage.claimNow('a')?.metadata.annotations?.[annotations.terminationTimestamp] ?? '',
  )
  await stage.pass(deadline - stage.now - 3 * seconds)
  assert.ok(!stage.isLeaving('p'))
  await stage.pass(100)
  assert.ok(stage.isLeaving('p'))
  assert.ok(Date.parse(stage.podNow('p')?.metadata.deletionTimestamp ?? '') <= deadline)
})

test('LIF-92 a critical pod past its deadline goes at once beside the first tier', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { terminationGracePeriod: '300s' })
  await stage.pod('plain', 'node-a')
  await stage.pod('critical', 'node-a', {
    spec: { priorityClassName: 'system-node-critical', terminationGracePeriodSeconds: 600 },
  })
  await stage.deleteClaim('a')
  await stage.pass(2 * seconds)
  assert.ok(stage.isLeaving('critical') && stage.isLeaving('plain'))
  assert.deepEqual(
    stage.events('Disrupted').map(({ object }) => object),
    ['Pod/critical'],
  )
})

test('LIF-93 a pod that would end after the deadline gets less time', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { terminationGracePeriod: '60s' })
  await stage.pod('p', 'node-a', { spec: { terminationGracePeriodSeconds: 600 } })
  stage.world.cluster.server.local.delete(kinds.pod, 'default', 'p')
  await stage.deleteClaim('a')
  await stage.pass(3 * seconds)
  const end = Date.parse(stage.podNow('p')?.metadata.deletionTimestamp ?? '')
  const deadline = Date.parse(
    stage.claimNow('a')?.metadata.annotations?.[annotations.terminationTimestamp] ?? '',
  )
  assert.ok(end <= deadline, `${end - deadline}`)
})

test('LIF-96 past the deadline pods get one second', async (t) => {
  const stage = await Stage.open(t)
  const hourAgo = rfc3339(stage.now - 60 * minutes)
  await stage.ready('a', {}, { annotations: { [annotations.terminationTimestamp]: hourAgo } })
  await stage.pod('p', 'node-a', protectedBy('true'))
  await stage.deleteClaim('a')
  await stage.pass(2 * seconds)
  assert.ok(stage.isLeaving('p'))
  assert.equal(stage.podNow('p')?.metadata.deletionGracePeriodSeconds, 1)
})

test('LIF-99 a claim without any grace period ends by force, and its pods get one second', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { terminationGracePeriod: '0s', expireAfter: '10m' })
  await stage.pod('p', 'node-a', protectedBy('true'))
  await stage.pass(9 * minutes)
  assert.ok(!stage.isLeaving('p'))
  await stage.pass(minutes)
  const series = { reason: 'expired', nodepool: 'default', termination_mode: 'forceful' }
  assert.equal(await stage.metric('nodeclaims_disrupted_total', series), 1)
  assert.ok(stage.isLeaving('p'))
  assert.equal(stage.podNow('p')?.metadata.deletionGracePeriodSeconds, 1)
})

test('LIF-100 a hook that takes longer than the pod may does not hold the node past its deadline', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { terminationGracePeriod: '60s' })
  const preStop = { exec: { command: ['sleep', '300'] } }
  const container = { name: 'app', image: 'registry.k8s.io/pause', lifecycle: { preStop } }
  await stage.pod('p', 'node-a', { spec: { terminationGracePeriodSeconds: 30, containers: [container] } })
  const deletedAt = stage.now
  await stage.deleteClaim('a')
  await stage.pass(2 * seconds)
  assert.equal(stage.events('Evicted').length, 1)
  assert.equal(stage.podNow('p')?.metadata.deletionGracePeriodSeconds, 30)
  const killedAt = Date.parse(stage.podNow('p')?.metadata.deletionTimestamp ?? '')
  await stage.pass(killedAt - stage.now)
  await stage.end('p')
  await stage.pass(deletedAt + minutes - stage.now)
  assert.equal(stage.nodeNow('node-a'), undefined)
  assert.equal(stage.claimNow('a'), undefined)
  assert.deepEqual(stage.events('Disrupted'), [])
})
