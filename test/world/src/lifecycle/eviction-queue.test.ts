import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, karpenterKinds, kinds } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'

const protectedPod = { annotations: { [annotations.doNotDisrupt]: 'true' } }

/** The claim's termination deadline, as somebody else may set it. */
function setDeadline(stage: Stage, claim: string, atMs: number): void {
  const metadata = { annotations: { [annotations.terminationTimestamp]: rfc3339(atMs) } }
  stage.patch(karpenterKinds.nodeClaim, claim, { metadata })
}

test('LIF-80 of a pod that is gone before its turn nothing is said', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a', protectedPod)
  await stage.deleteClaim('a')
  await stage.pass(5 * seconds)
  await stage.end('p')
  await stage.pass(30 * seconds)
  assert.deepEqual([stage.events('Evicted'), stage.events('Disrupted')], [[], []])
  assert.equal(await stage.metric('pods_eviction_requests_total'), 0)
  assert.equal(await stage.metric('pods_drained_total'), 0)
  assert.equal(stage.nodeNow('node-a'), undefined)
})

test('LIF-85 an eviction that meets another pod is dropped without a word, until the drain asks again', async (t) => {
  let isRejecting = true
  const apiPath = intercepting((method, path) =>
    method === 'POST' && path.includes('/pods/p/eviction') && isRejecting ? 'conflict' : 'pass',
  )
  const stage = await Stage.open(t, { apiPath })
  await stage.ready('a')
  await stage.pod('p', 'node-a')
  await stage.deleteClaim('a')
  await stage.pass(minutes)
  // An entry that stayed in the queue would back off up to 10 s between attempts.
  const attempts = await stage.metric('pods_eviction_requests_total', { code: '409' })
  assert.ok(attempts > 40, String(attempts))
  assert.deepEqual(stage.events('Evicted'), [])
  assert.equal(await stage.metric('pods_drained_total'), 0)
  isRejecting = false
  await stage.pass(3 * seconds)
  assert.ok(stage.isLeaving('p'))
})

test('LIF-88 a drain counts under the reason on the claim', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a')
  const reason = {
    type: 'DisruptionReason',
    status: 'True',
    reason: 'SpotInterruption',
    message: '',
    lastTransitionTime: rfc3339(stage.now),
  }
  const conditions = [...(stage.claimNow('a')?.status?.conditions ?? []), reason]
  stage.delete(karpenterKinds.nodeClaim, 'a')
  stage.patch(karpenterKinds.nodeClaim, 'a', { status: { conditions } }, 'status')
  await stage.pass(3 * seconds)
  assert.equal(await stage.metric('pods_drained_total', { reason: 'SpotInterruption' }), 1)
  assert.match(stage.events('Evicted')[0]?.message ?? '', /SpotInterruption/)
})

test('LIF-88 a drain without a reason on the claim counts as forceful termination', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a')
  await stage.deleteClaim('a')
  await stage.pass(3 * seconds)
  assert.equal(await stage.metric('pods_drained_total', { reason: 'Forceful Termination' }), 1)
})

test('LIF-88 a drain without a claim, or whose Node is gone, counts under no reason', async (t) => {
  const stage = await Stage.open(t)
  const managed = { labels: { 'karpenter.kwok.sh/kwoknodeclass': 'default' } }
  const finalizers = ['karpenter.sh/termination']
  await stage.join('nobody', { name: 'lone', ...managed, finalizers, taints: [] })
  await stage.report('lone')
  await stage.pod('on-lone', 'lone')
  stage.delete(kinds.node, 'lone')
  await stage.pass(3 * seconds)
  assert.ok(stage.isLeaving('on-lone'))
  assert.equal(await stage.metric('pods_drained_total', { reason: '' }), 1)

  await stage.ready('a')
  await stage.pod('left', 'node-a', protectedPod)
  await stage.deleteClaim('a')
  await stage.pass(2 * seconds)
  stage.patch(kinds.node, 'node-a', { metadata: { finalizers: null } })
  stage.patch(kinds.pod, 'left', { metadata: { annotations: null } }, undefined, 'default')
  await stage.pass(15 * seconds)
  assert.equal(stage.nodeNow('node-a'), undefined)
  assert.ok(stage.isLeaving('left'))
  assert.equal(await stage.metric('pods_drained_total', { reason: '' }), 2)
})

test('LIF-89 a thousand pods that are to go at once are each evicted, and each once', async (t) => {
  const evictions = new Map<string, number>()
  const apiPath = intercepting((method, path) => {
    const name = /\/pods\/([^/]+)\/eviction/.exec(path)?.[1]
    if (method === 'POST' && name !== undefined) evictions.set(name, (evictions.get(name) ?? 0) + 1)
    return 'pass'
  })
  const stage = await Stage.open(t, { apiPath })
  const claims = Array.from({ length: 10 }, (_, i) => `c${i}`)
  for (const claim of claims) await stage.ready(claim)
  for (let i = 0; i < 1000; i++) {
    stage.world.create(kinds.pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `p${i}`, namespace: 'default' },
      spec: { nodeName: `node-c${i % 10}`, containers: [{ name: 'app', image: 'registry.k8s.io/pause' }] },
    })
  }
  await stage.pass(seconds)
  for (const claim of claims) stage.delete(karpenterKinds.nodeClaim, claim)
  await stage.pass(20 * seconds)
  assert.equal(evictions.size, 1000)
  assert.deepEqual([...new Set(evictions.values())], [1])
  assert.ok(stage.world.pods().every(({ metadata }) => metadata.deletionTimestamp !== undefined))
  assert.equal(await stage.metric('pods_eviction_requests_total', { code: '200' }), 1000)
})

test('LIF-95 a deadline that comes later holds for pods that wait already', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a', protectedPod)
  await stage.deleteClaim('a')
  await stage.pass(minutes)
  assert.ok(!stage.isLeaving('p'))
  setDeadline(stage, 'a', stage.now + 60 * seconds)
  await stage.pass(25 * seconds)
  assert.ok(!stage.isLeaving('p'))
  await stage.pass(18 * seconds)
  assert.ok(stage.isLeaving('p'))
})

test('LIF-95 a deadline that is put off does not hold for pods that wait already', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a', protectedPod)
  await stage.deleteClaim('a')
  const deadline = stage.now + 60 * seconds
  setDeadline(stage, 'a', deadline)
  await stage.pass(5 * seconds)
  setDeadline(stage, 'a', stage.now + 60 * minutes)
  await stage.pass(20 * seconds)
  assert.ok(!stage.isLeaving('p'))
  await stage.pass(18 * seconds)
  assert.ok(stage.isLeaving('p'))
  assert.ok(stage.events('Disrupted')[0]?.message.includes(rfc3339(deadline)))
})

test('LIF-97 a pod that is gone when its time is up is dropped, until the drain asks again', async (t) => {
  let attempts = 0
  let isRejecting = true
  const apiPath = intercepting((method, path) => {
    if (method !== 'DELETE' || !path.includes('/pods/p')) return 'pass'
    attempts++
    return isRejecting ? 'notFound' : 'pass'
  })
  const stage = await Stage.open(t, { apiPath })
  await stage.ready('a', { terminationGracePeriod: '0s' })
  await stage.pod('p', 'node-a')
  await stage.deleteClaim('a')
  await stage.pass(minutes)
  // The cache shows it still; asking each second would only find that it does.
  assert.ok(attempts >= 5 && attempts <= 7, String(attempts))
  assert.equal(await stage.metric('pods_drained_total'), 0)
  isRejecting = false
  await stage.pass(12 * seconds)
  assert.ok(stage.isLeaving('p'))
  assert.equal(await stage.metric('pods_drained_total', { reason: 'Forceful Termination' }), 1)
})
