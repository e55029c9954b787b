/** Node repair as Tenon does it (wanted.md 2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, labels } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import { rfc3339 } from '@tenon/runtime'
import { cpu, left, mediumLabels, tainted } from '../disruption/disruption-stage.test-support.ts'
import { WrongViews } from '../simulation/faults/wrong-views.ts'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import {
  annotateNode,
  annotatePool,
  deadlineOf,
  joinReplacement,
  nodeOf,
  openRepair,
  pressure,
  relief,
  silent,
  turn,
} from './repair-stage.test-support.ts'

const repairs = (stage: Stage) => stage.metric('nodeclaims_disrupted_total', { reason: 'unhealthy' })

/** Keeps the control plane from evicting pods of silent nodes itself. */
const tolerations = [{ key: 'node.kubernetes.io/unreachable', operator: 'Exists' }] as const

/** A budget that lets no pod `app=web` go. */
function guard(stage: Stage): void {
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'default' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
  })
}

test('WNT-11 one of three nodes is repaired, and two of three one after the other', async (t) => {
  const stage = await openRepair(t)
  for (const name of ['a', 'b', 'c']) await nodeOf(stage, name)
  stage.cloud.deletionMs = 2 * minutes
  turn(stage, 'node-a', silent)
  turn(stage, 'node-b', silent)
  await stage.pass(10 * minutes + seconds)
  assert.equal(left(stage).length, 2)
  assert.ok(left(stage).includes('c'))
  await stage.pass(90 * seconds)
  assert.equal(left(stage).length, 2, 'the first instance is not gone yet')
  assert.match(stage.events('NodeRepairBlocked')[0]?.message ?? '', /^Only 1 node of NodePool default/)
  await stage.pass(2 * minutes)
  assert.deepEqual(left(stage), ['c'])
  assert.equal(await repairs(stage), 2)
})

test('WNT-12 a node whose kubelet reports goes once its replacement is initialized, and PDBs hold', async (t) => {
  const stage = await openRepair(t)
  await nodeOf(stage, 'a')
  await stage.pod('web', 'node-a', { ...cpu('3'), labels: { app: 'web' } })
  guard(stage)
  turn(stage, 'node-a', pressure)
  await stage.pass(10 * minutes - seconds)
  assert.deepEqual(left(stage), ['a'])
  await stage.pass(15 * seconds)
  assert.deepEqual(tainted(stage), ['a'])
  assert.equal(stage.state('a', 'DisruptionReason'), 'True/Unhealthy')
  assert.equal(left(stage).length, 2)
  await stage.pass(2 * minutes)
  assert.ok(!stage.isLeaving('web'), 'the replacement is not there yet')
  await joinReplacement(stage, ['a'])
  await stage.pass(minutes)
  assert.equal(left(stage).includes('a'), false)
  assert.equal(deadlineOf(stage, 'a'), undefined)
  assert.ok(!stage.isLeaving('web'), 'its PodDisruptionBudget holds it')
  assert.equal(await repairs(stage), 1)
  assert.equal(await stage.metric('tenon_node_repairs_total', { action: 'replace' }), 1)
  assert.equal(
    await stage.metric('nodeclaims_unhealthy_disrupted_total', { condition: 'memory_pressure' }),
    1,
  )
  stage.world.cluster.server.local.delete(kinds.podDisruptionBudget, 'default', 'web')
  await stage.pass(2 * minutes)
  assert.ok(stage.isLeaving('web'))
})

test('WNT-12 a node that is well again stays, even if its replacement is on its way', async (t) => {
  const stage = await openRepair(t)
  await nodeOf(stage, 'a')
  await stage.pod('web', 'node-a', cpu('3'))
  turn(stage, 'node-a', pressure)
  await stage.pass(10 * minutes + 15 * seconds)
  assert.deepEqual(tainted(stage), ['a'])
  turn(stage, 'node-a', relief)
  await stage.pass(5 * seconds)
  assert.deepEqual(tainted(stage), [])
  await joinReplacement(stage, ['a'])
  await stage.pass(20 * minutes)
  assert.ok(left(stage).includes('a'))
  assert.equal(await repairs(stage), 0)
})

test('WNT-12 a restart in the middle of a replacement takes nothing away and goes on', async (t) => {
  const stage = await openRepair(t)
  await nodeOf(stage, 'a')
  await stage.pod('web', 'node-a', cpu('3'))
  turn(stage, 'node-a', pressure)
  await stage.pass(10 * minutes + 15 * seconds)
  assert.equal(left(stage).length, 2)
  await stage.restart()
  await stage.pass(minutes)
  assert.equal(left(stage).length, 2, 'the replacement that exists serves')
  assert.ok(!stage.isLeaving('web'))
  await joinReplacement(stage, ['a'])
  await stage.pass(2 * minutes)
  assert.equal(left(stage).includes('a'), false)
  assert.equal(left(stage).length, 1)
})

test('WNT-13 a node whose kubelet is silent goes at once, with a deadline of now', async (t) => {
  const stage = await openRepair(t)
  await nodeOf(stage, 'a')
  await stage.pod('web', 'node-a', { spec: { ...cpu('3').spec, tolerations }, labels: { app: 'web' } })
  guard(stage)
  turn(stage, 'node-a', silent)
  await stage.pass(10 * minutes + seconds)
  assert.equal(left(stage).includes('a'), false)
  assert.ok(Date.parse(deadlineOf(stage, 'a') ?? '') <= stage.now)
  assert.equal(await stage.metric('tenon_node_repairs_total', { action: 'force' }), 1)
  await stage.pass(3 * minutes)
  assert.deepEqual([stage.claimNow('a'), stage.nodeNow('node-a')], [undefined, undefined])
})

test('WNT-13 a node that is well again is not deleted while the watch of nodes is late', async (t) => {
  const views = new WrongViews()
  const stage = await openRepair(t, { apiPath: views.path })
  await nodeOf(stage, 'a')
  turn(stage, 'node-a', silent)
  await stage.pass(9 * minutes)
  views.late('nodes', 2 * minutes)
  turn(stage, 'node-a', { type: 'Ready', status: 'True' })
  await stage.pass(5 * minutes)
  assert.deepEqual([left(stage), deadlineOf(stage, 'a')], [['a'], undefined])
})

for (const mode of ['one process', 'a restart every five minutes'] as const)
  test(`WNT-14 a condition that is bad half of the time counts half, in ${mode}`, async (t) => {
    const stage = await openRepair(t)
    await nodeOf(stage, 'a')
    await nodeOf(stage, 'b')
    const beganMs = stage.now
    for (let minute = 0; minute < 30 && left(stage).includes('a'); minute++) {
      turn(stage, 'node-a', pressure)
      await stage.pass(30 * seconds)
      if (stage.nodeNow('node-a') !== undefined) turn(stage, 'node-a', relief)
      await stage.pass(30 * seconds)
      if (mode !== 'one process' && minute % 5 === 4) await stage.restart()
    }
    const tookMs = stage.now - beganMs
    assert.ok(!left(stage).includes('a') && left(stage).includes('b'))
    assert.ok(tookMs >= 19 * minutes && tookMs <= 23 * minutes, `${tookMs / minutes} min`)
  })

test('WNT-14 a node that flapped and has been well for five minutes stays', async (t) => {
  const stage = await openRepair(t)
  await nodeOf(stage, 'a')
  for (let minute = 0; minute < 19; minute++) {
    turn(stage, 'node-a', pressure)
    await stage.pass(30 * seconds)
    turn(stage, 'node-a', relief)
    await stage.pass(30 * seconds)
  }
  await stage.pass(40 * minutes)
  assert.deepEqual(left(stage), ['a'])
})

for (const mode of ['one process', 'a restart'] as const)
  test(`WNT-15 nothing is repaired while all nodes of a zone are down, told once, in ${mode}`, async (t) => {
    const stage = await openRepair(t)
    const zoneA = ['a1', 'a2', 'a3', 'a4']
    const others = ['b1', 'b2', 'b3', 'b4', 'c1', 'c2', 'c3', 'c4', 'c5']
    for (const name of [...zoneA, ...others]) await nodeOf(stage, name, `zone-${name.charAt(0)}`)
    for (const name of zoneA) {
      turn(stage, `node-${name}`, silent)
      await stage.pass(minutes)
    }
    await stage.pass(10 * minutes)
    if (mode === 'a restart') await stage.restart()
    await stage.pass(10 * minutes)
    assert.equal(left(stage).length, 13)
    const told = stage.events('NodeRepairBlocked')
    if (mode === 'one process') {
      assert.equal(told.length, 1)
      assert.match(told[0]?.message ?? '', /^4 of 4 nodes of zone zone-a turned unhealthy within ten minutes/)
      assert.equal(await stage.metric('tenon_node_repair_brakes_total', { zone: 'zone-a' }), 1)
    }
    for (const name of zoneA) turn(stage, `node-${name}`, { type: 'Ready', status: 'True' })
    await stage.pass(20 * minutes)
    assert.equal(left(stage).length, 13)
    assert.equal(await repairs(stage), 0)
  })

test('WNT-15 repair goes on once 30 minutes have passed without another node', async (t) => {
  const stage = await openRepair(t)
  annotatePool(stage, { 'repair-budget': '100%' })
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'b3', 'c1', 'c2', 'c3', 'c4'])
    await nodeOf(stage, name, `zone-${name.charAt(0)}`)
  for (const name of ['a1', 'a2', 'a3']) turn(stage, `node-${name}`, silent)
  await stage.pass(29 * minutes)
  assert.equal(await repairs(stage), 0)
  await stage.pass(7 * minutes)
  assert.equal(await repairs(stage), 3)
})

test('WNT-17 of vetoes in the past, unreadable and in the future only the last holds', async (t) => {
  const stage = await openRepair(t)
  annotatePool(stage, { 'repair-budget': '100%' })
  const vetoes: Readonly<Record<string, string>> = {
    past: '2020-01-01T00:00:00Z',
    unreadable: 'soon',
    future: rfc3339(stage.now + 60 * minutes),
    always: 'true',
  }
  const healthy = Array.from({ length: 10 }, (_, i) => `h${i}`)
  for (const name of [...Object.keys(vetoes), ...healthy]) await nodeOf(stage, name)
  for (const [name, value] of Object.entries(vetoes)) {
    annotateNode(stage, `node-${name}`, value)
    turn(stage, `node-${name}`, silent)
  }
  await stage.pass(12 * minutes)
  assert.deepEqual(left(stage), ['always', 'future', ...healthy].toSorted())
  const ignored = stage.events('AnnotationIgnored').filter(({ object }) => object.startsWith('Node/'))
  assert.deepEqual(
    ignored.map(({ object, message }) => [object, message.includes('"soon"')]),
    [['Node/node-unreadable', true]],
  )
  await stage.pass(60 * minutes)
  assert.deepEqual(left(stage), ['always', ...healthy].toSorted())
  annotateNode(stage, 'node-always', null)
  await stage.pass(5 * seconds)
  assert.deepEqual(left(stage), healthy)
})

/** Notes the names of the claims whose instances are rebooted. */
function rebooting(stage: Stage, failure?: ProviderError): readonly string[] {
  const rebooted: string[] = []
  stage.cloud.reboot = ({ metadata }) => {
    rebooted.push(metadata.name)
    return failure === undefined ? Promise.resolve() : Promise.reject(failure)
  }
  return rebooted
}

for (const mode of ['one process', 'a restart after each step'] as const)
  test(`WNT-16 one reboot comes first, and the node goes if the condition comes back, in ${mode}`, async (t) => {
    const stage = await openRepair(t, { idle: true })
    const rebooted = rebooting(stage)
    const next = async () => {
      if (mode !== 'one process') await stage.restart()
    }
    annotatePool(stage, { repair: 'reboot,replace' })
    await stage.start()
    await nodeOf(stage, 'a')
    await nodeOf(stage, 'b')
    turn(stage, 'node-a', pressure)
    await stage.pass(10 * minutes + 10 * seconds)
    assert.deepEqual(rebooted, ['a'])
    assert.equal(await stage.metric('tenon_node_repairs_total', { action: 'reboot' }), 1)
    await next()
    turn(stage, 'node-a', silent)
    await stage.pass(minutes)
    turn(stage, 'node-a', relief)
    await stage.pass(20 * minutes)
    assert.deepEqual(left(stage), ['a', 'b'], 'the reboot has helped')
    await next()
    turn(stage, 'node-a', pressure)
    await stage.pass(9 * minutes)
    await next()
    await stage.pass(3 * minutes)
    assert.deepEqual(rebooted, ['a'])
    assert.deepEqual(left(stage), ['b'])
  })

test('WNT-16 a reboot that helps for an hour is followed by another one, and never by two at once', async (t) => {
  const stage = await openRepair(t, { idle: true })
  const rebooted = rebooting(stage)
  annotatePool(stage, { repair: 'reboot,replace' })
  await stage.start()
  await nodeOf(stage, 'a')
  await nodeOf(stage, 'b')
  turn(stage, 'node-a', silent)
  turn(stage, 'node-b', silent)
  await stage.pass(11 * minutes)
  assert.equal(rebooted.length, 1)
  for (const name of ['node-a', 'node-b']) turn(stage, name, { type: 'Ready', status: 'True' })
  await stage.pass(50 * minutes)
  const [first] = rebooted
  turn(stage, `node-${first ?? ''}`, silent)
  await stage.pass(11 * minutes)
  assert.deepEqual(rebooted, [first, first])
  assert.deepEqual(left(stage), ['a', 'b'])
})

test('WNT-16 a reboot that fails is told, and the node is replaced after its toleration', async (t) => {
  const stage = await openRepair(t, { idle: true })
  const rebooted = rebooting(stage, new ProviderError('other', 'the instance is locked'))
  annotatePool(stage, { repair: 'reboot,replace' })
  await stage.start()
  await nodeOf(stage, 'a')
  turn(stage, 'node-a', silent)
  await stage.pass(11 * minutes)
  assert.match(stage.events('NodeRebootFailed')[0]?.message ?? '', /the instance is locked/)
  assert.deepEqual(left(stage), ['a'])
  await stage.pass(10 * minutes)
  assert.equal(rebooted.length, 1)
  assert.deepEqual(left(stage), [])
})

test('WNT-16 a process that ends between the note of a reboot and its call does not reboot twice', async (t) => {
  const stage = await openRepair(t, { idle: true })
  let calls = 0
  stage.cloud.reboot = () => {
    calls++
    return new Promise(() => undefined)
  }
  annotatePool(stage, { repair: 'reboot,replace' })
  await stage.start()
  await nodeOf(stage, 'a')
  turn(stage, 'node-a', silent)
  await stage.pass(10 * minutes + 10 * seconds)
  await stage.restart()
  await stage.pass(9 * minutes)
  assert.equal(calls, 1)
  assert.deepEqual(left(stage), ['a'])
  await stage.pass(2 * minutes)
  assert.deepEqual(left(stage), [])
})

test('WNT-16 a cloud that cannot reboot replaces at once', async (t) => {
  const stage = await openRepair(t)
  annotatePool(stage, { repair: 'reboot,replace' })
  await nodeOf(stage, 'a')
  turn(stage, 'node-a', silent)
  await stage.pass(10 * minutes + seconds)
  assert.deepEqual(left(stage), [])
})

test('a NodePool that is annotated off is not repaired, one with a budget only so many at a time', async (t) => {
  const stage = await openRepair(t)
  annotatePool(stage, { repair: 'off' })
  const healthy = Array.from({ length: 10 }, (_, i) => `h${i}`)
  const sick = ['s1', 's2', 's3']
  for (const name of [...healthy, ...sick]) await nodeOf(stage, name)
  stage.cloud.deletionMs = 5 * minutes
  for (const name of sick) turn(stage, `node-${name}`, silent)
  await stage.pass(40 * minutes)
  assert.equal(left(stage).length, 13)
  assert.deepEqual(stage.events('NodeRepairBlocked'), [])
  annotatePool(stage, { repair: null, 'repair-budget': '2' })
  await stage.pass(6 * minutes)
  assert.equal(left(stage).length, 11)
  await stage.pass(8 * minutes)
  assert.deepEqual(left(stage), healthy)
})

test('WNT-17 a veto and "off" that the caches do not show yet hold all the same', async (t) => {
  const views = new WrongViews()
  const stage = await openRepair(t, { apiPath: views.path })
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await nodeOf(stage, name)
  turn(stage, 'node-a', silent)
  await stage.pass(9 * minutes)
  views.late('nodes', 3 * minutes)
  annotateNode(stage, 'node-a', 'true')
  await stage.pass(2 * minutes)
  assert.ok(left(stage).includes('a'))
  annotatePool(stage, { repair: 'off' })
  annotateNode(stage, 'node-a', null)
  await stage.pass(20 * minutes)
  assert.ok(left(stage).includes('a'))
})

test('nothing of this is there in the compatibility mode', async (t) => {
  const stage = await openRepair(t, { settings: { compatibility: 'karpenter' } })
  annotatePool(stage, { repair: 'off', 'repair-budget': '0' })
  await stage.ready('a', {}, { labels: { ...mediumLabels, [labels.zone]: 'zone-1' } })
  annotateNode(stage, 'node-a', 'true')
  turn(stage, 'node-a', pressure)
  await stage.pass(10 * minutes + seconds)
  assert.deepEqual(left(stage), [])
})
