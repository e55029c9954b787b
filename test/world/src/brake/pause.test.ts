/** What a pause holds, from the next write on, and what goes on (ask.md 8). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Condition, conditionOf, karpenterKinds, kinds, type NodePool } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import {
  cpu,
  left,
  openDisruption,
  setDrifted,
  tainted,
  eventMessages,
} from '../disruption/disruption-stage.test-support.ts'
import { madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import { hours, minutes, seconds, type Stage } from '../testing/stage.test-support.ts'

const still = { disruption: { consolidateAfter: 'Never' } }

/** As `kubectl annotate nodepool default tenon.sh/paused=TEXT`; null takes it back. */
function annotate(stage: Stage, text: string | null, key = 'tenon.sh/paused'): void {
  stage.patch(karpenterKinds.nodePool, 'default', { metadata: { annotations: { [key]: text } } })
}

/** As `kubectl -n kube-system create configmap tenon-brake --from-literal=…`. */
function pauseCluster(stage: Stage, data: Readonly<Record<string, string>>): void {
  const metadata = { name: 'tenon-brake', namespace: 'kube-system' }
  stage.world.create(kinds.configMap, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data })
}

function resumeCluster(stage: Stage): void {
  stage.world.cluster.server.local.delete(kinds.configMap, 'kube-system', 'tenon-brake')
}

const paused = (stage: Stage): Condition | undefined => conditionOf(stage.poolNow() as NodePool, 'Paused')

/** Series of `tenon_paused`, as `nodepool what by`. */
async function measured(stage: Stage): Promise<readonly string[]> {
  const metric = stage.operator.operator.metrics.registry.getSingleMetric('tenon_paused')
  const values = (await metric?.get())?.values ?? []
  return values.map(({ labels }) => `${labels['nodepool']} ${labels['what']} ${labels['by']}`).toSorted()
}

/** A drifted node with a pod, whose replacement has an instance that has not joined. */
async function underWay(stage: Stage): Promise<string> {
  setDrifted(stage, 'old')
  await stage.ready('old')
  await stage.pod('app', 'node-old', cpu('3'))
  await stage.world.clock.advanceUntil(() => madeClaims(stage).length > 1, 60 * seconds)
  assert.deepEqual(tainted(stage), ['old'])
  return (
    madeClaims(stage)
      .map(({ metadata }) => metadata.name)
      .find((name) => name !== 'old') ?? ''
  )
}

const ways = {
  'the ConfigMap': {
    pause: (stage: Stage) => pauseCluster(stage, { paused: 'true' }),
    resume: resumeCluster,
  },
  'the annotation': {
    pause: (stage: Stage) => annotate(stage, 'true'),
    resume: (stage: Stage) => annotate(stage, null),
  },
} as const

for (const [way, { pause, resume }] of Object.entries(ways)) {
  test(`EXP-21 ${way} rolls a command back within a second, also for the next process, until it is taken back`, async (t) => {
    const stage = await openDisruption(t, still)
    const replacement = await underWay(stage)
    pause(stage)
    await stage.pass(1 * seconds)
    assert.deepEqual(tainted(stage), [])
    assert.equal(stage.state('old', 'DisruptionReason'), 'absent')
    assert.equal(paused(stage)?.status, 'True')
    assert.match(paused(stage)?.message ?? '', /Voluntary disruption paused without an end/)
    await stage.join(replacement)
    await stage.report(`node-${replacement}`)
    await stage.pass(20 * minutes)
    await stage.restart()
    await stage.pass(20 * minutes)
    assert.deepEqual(tainted(stage), [])
    assert.equal(stage.isLeaving('app'), false)
    assert.ok(left(stage).includes('old'))
    resume(stage)
    await stage.world.clock.advanceUntil(() => tainted(stage).length > 0, 60 * seconds)
    assert.deepEqual(tainted(stage), ['old'])
    await stage.pass(2 * seconds)
    assert.equal(paused(stage), undefined)
  })
}

test('EXP-21 a process that dies with a command under way, and finds a pause, takes the marks off', async (t) => {
  const stage = await openDisruption(t, still)
  await underWay(stage)
  await stage.world.bury(stage.operator)
  annotate(stage, 'true')
  await stage.start()
  await stage.pass(15 * seconds)
  assert.deepEqual(tainted(stage), [])
  await stage.pass(30 * minutes)
  assert.equal(stage.isLeaving('app'), false)
})

test('EXP-21 a pause ends by itself, and tells of its beginning and its end', async (t) => {
  const stage = await openDisruption(t, still)
  setDrifted(stage, 'old')
  pauseCluster(stage, {
    paused: JSON.stringify({ until: rfc3339(stage.now + 2 * hours), reason: 'incident 42' }),
  })
  await stage.ready('old')
  assert.match(eventMessages(stage, 'Paused', 'ConfigMap/tenon-brake')[0] ?? '', /until .*Z: incident 42/)
  assert.deepEqual(await measured(stage), [' voluntary person'])
  await stage.pass(119 * minutes)
  assert.deepEqual(tainted(stage), [])
  await stage.pass(2 * minutes)
  assert.ok(!left(stage).includes('old') || tainted(stage).includes('old'))
  assert.deepEqual(await measured(stage), [])
  assert.equal(eventMessages(stage, 'Resumed', 'ConfigMap/tenon-brake').length, 1)
})

test('EXP-21 pods of a node that is being deleted for drift wait for the end of the pause', async (t) => {
  const stage = await openDisruption(t, still)
  await stage.ready('roomy')
  setDrifted(stage, 'old')
  await stage.ready('old')
  const spec = cpu('1')
  await stage.pod('first', 'node-old', spec)
  await stage.pod('last', 'node-old', { spec: { ...spec.spec, priorityClassName: 'system-node-critical' } })
  await stage.world.clock.advanceUntil(() => stage.isLeaving('first'), 60 * seconds)
  annotate(stage, 'true')
  await stage.pass(1 * seconds)
  await stage.end('first')
  await stage.pass(30 * minutes)
  assert.equal(stage.isLeaving('last'), false)
  annotate(stage, null)
  await stage.pass(30 * seconds)
  assert.equal(stage.isLeaving('last'), true)
})

test('EXP-21 a person may delete a node, and expiration goes on, while only voluntary disruption is paused', async (t) => {
  const stage = await openDisruption(t, still)
  annotate(stage, 'true')
  await stage.ready('mine')
  await stage.ready('aged', { expireAfter: '1h' })
  await stage.pod('app', 'node-mine')
  await stage.deleteClaim('mine')
  await stage.pass(5 * seconds)
  assert.equal(stage.isLeaving('app'), true)
  await stage.pass(61 * minutes)
  assert.ok(!left(stage).includes('aged'))
})

test('EXP-21 with expiration included an expired node stays until the pause is taken back', async (t) => {
  const stage = await openDisruption(t, still)
  annotate(stage, JSON.stringify({ includes: ['expiration'] }))
  await stage.ready('aged', { expireAfter: '1h' })
  await stage.pass(3 * hours)
  assert.ok(left(stage).includes('aged'))
  annotate(stage, null)
  await stage.pass(2 * seconds)
  assert.ok(!left(stage).includes('aged'))
})

test('EXP-21 with launches included nothing is launched for pods, and then it is', async (t) => {
  const stage = await openDisruption(t, still)
  annotate(stage, JSON.stringify({ includes: ['launches'] }))
  await stage.pass(1 * seconds)
  waitingPod(stage, 'waiting', { cpu: '1' })
  await stage.pass(5 * minutes)
  assert.equal(madeClaims(stage).length, 0)
  assert.equal(stage.cloud.count('create'), 0)
  annotate(stage, null)
  await stage.pass(1 * minutes)
  assert.equal(madeClaims(stage).length, 1)
})

for (const [text, problem] of [
  ['', /is not a pause/],
  ['2h', /"2h" is not a pause/],
  ['2026-13-45T99:00:00Z', /is not a pause/],
  ['{"until":', /its JSON cannot be read/],
  ['{"until":"tomorrow"}', /until "tomorrow" is not a time/],
  ['{"includes":["evictions"]}', /includes "evictions" is unknown/],
  ['{"untill":"2026-11-27T14:00:00Z"}', /field "untill" is unknown/],
] as const) {
  test(`EXP-21 a pause of "${text}" cannot be read: everything voluntary stays, and the NodePool says why`, async (t) => {
    const stage = await openDisruption(t, still)
    setDrifted(stage, 'old')
    annotate(stage, text)
    await stage.ready('old')
    await stage.pass(1 * hours)
    assert.deepEqual(tainted(stage), [])
    assert.deepEqual([paused(stage)?.status, paused(stage)?.reason], ['True', 'Unreadable'])
    assert.match(paused(stage)?.message ?? '', problem)
    assert.equal(eventMessages(stage, 'PauseUnreadable', 'NodePool/default').length, 1)
  })
}

test('EXP-21 a ConfigMap with other keys only is taken for a pause that cannot be read', async (t) => {
  const stage = await openDisruption(t, still)
  setDrifted(stage, 'old')
  pauseCluster(stage, { pause: 'true', constructor: 'x' })
  await stage.ready('old')
  await stage.pass(1 * hours)
  assert.deepEqual(tainted(stage), [])
  assert.match(
    paused(stage)?.message ?? '',
    /key "constructor" is unknown; a pause stands under key "paused"/,
  )
})

test('EXP-21 of two pauses each holds until its own end', async (t) => {
  const stage = await openDisruption(t, still)
  setDrifted(stage, 'old')
  await stage.ready('roomy')
  pauseCluster(stage, { paused: rfc3339(stage.now + 1 * hours) })
  annotate(stage, JSON.stringify({ until: rfc3339(stage.now + 2 * hours), includes: ['expiration'] }))
  await stage.ready('old', { expireAfter: '30m' })
  await stage.pass(90 * minutes)
  assert.ok(left(stage).includes('old'))
  assert.equal(paused(stage)?.message.includes('ConfigMap'), false)
  await stage.pass(31 * minutes)
  assert.ok(!left(stage).includes('old'))
})

test('EXP-21 other ConfigMaps of the namespace pause nothing', async (t) => {
  const stage = await openDisruption(t, still)
  setDrifted(stage, 'old')
  const metadata = { name: 'tenon-brake', namespace: 'default' }
  stage.world.create(kinds.configMap, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata,
    data: { paused: 'true' },
  })
  await stage.ready('old')
  await stage.pass(1 * minutes)
  assert.ok(!left(stage).includes('old') || tainted(stage).includes('old'))
})
