import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { annotations, karpenterKinds, kinds, labels, type NodeCondition } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import type { RepairPolicy } from '@tenon/provider'
import { rfc3339 } from '@tenon/runtime'
import { WrongViews } from '../simulation/faults/wrong-views.ts'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

const policies: readonly RepairPolicy[] = [
  { conditionType: 'Ready', conditionStatus: 'False', tolerationMs: 10 * minutes },
  { conditionType: 'MemoryPressure', conditionStatus: 'True', tolerationMs: 30 * minutes },
]
/** Karpenter's way; Tenon's own is in node-repair.test.ts. */
const repairing = {
  featureGates: { ...defaultSettings.featureGates, nodeRepair: true },
  compatibility: 'karpenter',
} as const
type StageOptions = NonNullable<Parameters<typeof Stage.open>[1]>

/** A world in which nodes are repaired, by default. */
async function open(
  t: TestContext,
  { repairPolicies = policies, ...options }: StageOptions & { repairPolicies?: readonly RepairPolicy[] } = {},
): Promise<Stage> {
  const stage = await Stage.open(t, { settings: repairing, ...options, idle: true })
  stage.cloud.repairPolicies = repairPolicies
  await stage.start()
  return stage
}

/** The node reports these conditions, each since now unless it says otherwise. */
async function turn(stage: Stage, name: string, ...conditions: readonly NodeCondition[]): Promise<void> {
  const at = rfc3339(stage.now)
  const dated = conditions.map((each) => ({ lastHeartbeatTime: at, lastTransitionTime: at, ...each }))
  stage.patch(kinds.node, name, { status: { conditions: dated } }, 'status')
  await stage.pass(100)
}

/** Keeps the control plane from evicting pods of a failing node itself after five minutes. */
const tolerations = [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }] as const
const failing: NodeCondition = { type: 'Ready', status: 'False' }
const isLeaving = (stage: Stage, claim: string) => {
  const found = stage.claimNow(claim)
  return found === undefined || found.metadata.deletionTimestamp !== undefined
}
const deadlineOf = (stage: Stage, claim: string) =>
  stage.claimNow(claim)?.metadata.annotations?.[annotations.terminationTimestamp]
const repairs = (stage: Stage) => stage.metric('nodeclaims_disrupted_total', { reason: 'unhealthy' })

test('LIF-135 nothing is repaired while the gate is closed or the provider has no policies', async (t) => {
  const closed = await open(t, { settings: {} })
  const unpolicied = await open(t, { repairPolicies: [] })
  for (const stage of [closed, unpolicied]) {
    await stage.ready('a')
    await turn(stage, 'node-a', failing)
    await stage.pass(60 * minutes)
    assert.ok(!isLeaving(stage, 'a'))
    assert.equal(deadlineOf(stage, 'a'), undefined)
    assert.deepEqual(stage.events('NodeRepairBlocked'), [])
  }
})

test('LIF-136 a condition whose type or status is in no policy is nobody’s business', async (t) => {
  const stage = await open(t)
  await stage.ready('a')
  await stage.ready('b')
  await turn(stage, 'node-a', { type: 'Ready', status: 'Unknown' })
  await turn(stage, 'node-b', { type: 'Ready', status: 'True' }, { type: 'DiskPressure', status: 'True' })
  await stage.pass(60 * minutes)
  assert.deepEqual([isLeaving(stage, 'a'), isLeaving(stage, 'b')], [false, false])
})

test('VER-55 a node on which somebody else drains is not repaired until that is over', async (t) => {
  const stage = await open(t)
  await stage.ready('a')
  const since = rfc3339(stage.now)
  const broken = { ...failing, lastTransitionTime: since }
  await turn(stage, 'node-a', broken, { type: 'DrainInProgress', status: 'True' })
  await stage.pass(60 * minutes)
  assert.ok(!isLeaving(stage, 'a'))
  await turn(stage, 'node-a', broken, { type: 'DrainInProgress', status: 'False' })
  await stage.pass(3 * seconds)
  assert.ok(isLeaving(stage, 'a'))
})

test('LIF-137 a node is repaired when its toleration ends, of two policies the one that ends first', async (t) => {
  const stage = await open(t)
  await stage.ready('a')
  const longAgo = rfc3339(stage.now - 25 * minutes)
  await turn(stage, 'node-a', failing, {
    type: 'MemoryPressure',
    status: 'True',
    lastTransitionTime: longAgo,
  })
  await stage.pass(5 * minutes - 3 * seconds)
  assert.ok(!isLeaving(stage, 'a'))
  await stage.pass(3 * seconds)
  assert.ok(isLeaving(stage, 'a'))
  assert.equal(
    await stage.metric('nodeclaims_unhealthy_disrupted_total', { condition: 'memory_pressure' }),
    1,
  )
})

test('RPB-9 a node that is well again is not repaired while the watch of nodes is two minutes late', async (t) => {
  const views = new WrongViews()
  const stage = await open(t, { apiPath: views.path })
  await stage.ready('a')
  await turn(stage, 'node-a', failing)
  await stage.pass(9 * minutes)
  views.late('nodes', 2 * minutes)
  await turn(stage, 'node-a', { type: 'Ready', status: 'True' })
  await stage.pass(5 * minutes)
  assert.deepEqual([isLeaving(stage, 'a'), deadlineOf(stage, 'a')], [false, undefined])
  assert.equal(await repairs(stage), 0)
})

test('LIF-138 OPS-27 past the toleration the claim goes by force and is counted with its labels', async (t) => {
  const stage = await open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a', { spec: { tolerations } })
  await stage.pod('daemon', 'node-a', {
    ownerReferences: [await stage.daemonSet('agent')],
    spec: { tolerations },
  })
  await turn(stage, 'node-a', failing)
  await stage.pass(10 * minutes - seconds)
  assert.deepEqual([isLeaving(stage, 'a'), deadlineOf(stage, 'a')], [false, undefined])
  await stage.pass(2 * seconds)
  assert.ok(isLeaving(stage, 'a'))
  const deadlineMs = Date.parse(deadlineOf(stage, 'a') ?? '')
  assert.ok(deadlineMs <= stage.now && deadlineMs > stage.now - 3 * seconds)
  const series = { nodepool: 'default', capacity_type: 'on-demand' }
  const disrupted = { ...series, reason: 'unhealthy', consolidation_policy: '', termination_mode: 'graceful' }
  assert.equal(await stage.metric('nodeclaims_disrupted_total', disrupted), 1)
  assert.equal(await stage.metric('pods_disruption_initiated_total', disrupted), 1)
  const unhealthy = { ...series, condition: 'ready', image_id: 'image-1' }
  assert.equal(await stage.metric('nodeclaims_unhealthy_disrupted_total', unhealthy), 1)
})

test('LIF-138 the labels of metrics come from the Node', async (t) => {
  const stage = await open(t)
  await stage.ready('a')
  stage.patch(kinds.node, 'node-a', { metadata: { labels: { [labels.capacityType]: 'spot' } } })
  await turn(stage, 'node-a', failing)
  await stage.pass(11 * minutes)
  assert.equal(await stage.metric('nodeclaims_unhealthy_disrupted_total', { capacity_type: 'spot' }), 1)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { capacity_type: 'spot' }), 1)
})

test('LIF-139 a deadline ahead becomes now, one that has passed stays', async (t) => {
  const stage = await open(t)
  const past = '2026-01-01T00:00:00Z'
  await stage.ready('early', {}, { annotations: { [annotations.terminationTimestamp]: past } })
  await stage.ready(
    'late',
    {},
    { annotations: { [annotations.terminationTimestamp]: '2099-01-01T00:00:00Z' } },
  )
  await stage.ready('broken', {}, { annotations: { [annotations.terminationTimestamp]: 'soon' } })
  for (const name of ['early', 'late', 'broken']) {
    await turn(stage, `node-${name}`, failing)
    await stage.pass(10 * minutes - 2 * seconds)
    const before = stage.now
    await stage.pass(4 * seconds)
    assert.ok(isLeaving(stage, name))
    const deadline = deadlineOf(stage, name) ?? ''
    if (name === 'early') assert.equal(deadline, past)
    else assert.ok(Date.parse(deadline) >= before && Date.parse(deadline) <= stage.now)
    await turn(stage, `node-${name}`, { type: 'Ready', status: 'True' })
  }
})

/** `total` nodes, of which `sick` fail for longer than is tolerated. */
async function ward(
  stage: Stage,
  total: number,
  sick: number,
  claim: 'pooled' | 'standalone',
): Promise<void> {
  const names = Array.from({ length: total }, (_, i) => `n${i}`)
  for (const name of names) {
    if (claim === 'standalone') {
      const { metadata, ...rest } = stage.aClaim(name)
      const { [labels.nodePool]: _, ...tags } = metadata.labels ?? {}
      stage.world.create(karpenterKinds.nodeClaim, {
        ...rest,
        metadata: { name, labels: tags },
      })
      await stage.pass(100)
    } else await stage.claim(name)
    await stage.join(name)
    await stage.report(`node-${name}`)
  }
  for (const name of names.slice(0, sick)) await turn(stage, `node-${name}`, failing)
}

for (const claim of ['pooled', 'standalone'] as const) {
  test(`LIF-140 with 3 of 10 ${claim} nodes unhealthy none is repaired, with 2 they are`, async (t) => {
    const stage = await open(t)
    await ward(stage, 10, 3, claim)
    await stage.pass(11 * minutes)
    assert.equal(await repairs(stage), 0)
    const events = stage.events('NodeRepairBlocked')
    assert.ok(events.length > 0)
    for (const { type, object, message } of events) {
      assert.deepEqual([type, object.startsWith('Node/node-n')], ['Warning', true])
      const scope = claim === 'pooled' ? 'NodePool default' : 'the cluster'
      assert.ok(message.includes(scope) && message.includes('3 of 10'), message)
    }
    // The last of three that is found well again says so at once, the others look again in five minutes.
    await turn(stage, 'node-n2', { type: 'Ready', status: 'True' })
    await stage.pass(3 * minutes)
    assert.equal(await repairs(stage), 0)
    await stage.pass(2 * minutes)
    assert.equal(await repairs(stage), 2)
    assert.deepEqual([isLeaving(stage, 'n0'), isLeaving(stage, 'n2')], [true, false])
  })
}

test('LIF-140 with 1 of 3 nodes unhealthy it is repaired', async (t) => {
  const stage = await open(t)
  await ward(stage, 3, 1, 'pooled')
  await stage.pass(11 * minutes)
  assert.equal(await repairs(stage), 1)
})

test('nodes of a claim without a NodePool are judged among all, foreign ones included', async (t) => {
  const stage = await open(t)
  await ward(stage, 1, 1, 'standalone')
  for (const name of ['foreign-1', 'foreign-2', 'foreign-3']) {
    await stage.join(name, { name, taints: [] })
    await turn(stage, name, failing)
  }
  await stage.pass(20 * minutes)
  assert.equal(await repairs(stage), 0)
  assert.match(stage.events('NodeRepairBlocked')[0]?.message ?? '', /4 of 4/)
})

test('a pool that is gone leaves its nodes blocked without an event', async (t) => {
  const stage = await open(t)
  await ward(stage, 2, 2, 'pooled')
  stage.world.cluster.server.local.delete(karpenterKinds.nodePool, undefined, 'default', {
    propagationPolicy: 'Orphan',
  })
  await stage.pass(20 * minutes)
  assert.equal(await repairs(stage), 0)
  assert.deepEqual(stage.events('NodeRepairBlocked'), [])
})

test('LIF-141 neither budgets nor do-not-disrupt nor a grace period hold a repair up', async (t) => {
  const stage = await open(t, {
    pool: { disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '0' }] } },
  })
  const held = { annotations: { [annotations.doNotDisrupt]: 'true' } }
  await stage.ready('a', { terminationGracePeriod: '1h' }, held)
  stage.patch(kinds.node, 'node-a', { metadata: held })
  await stage.pod('p', 'node-a', { ...held, spec: { tolerations, terminationGracePeriodSeconds: 600 } })
  await turn(stage, 'node-a', failing)
  await stage.pass(10 * minutes + 5 * seconds)
  assert.ok(isLeaving(stage, 'a'))
  assert.equal(stage.podNow('p')?.metadata.deletionGracePeriodSeconds, 1)
  await stage.pass(2 * minutes)
  assert.deepEqual([stage.claimNow('a'), stage.nodeNow('node-a')], [undefined, undefined])
})

test('LIF-142 a heartbeat alone does not make a node be looked at', async (t) => {
  const stage = await open(t)
  await ward(stage, 5, 2, 'pooled')
  await stage.pass(10 * minutes + seconds)
  assert.ok(stage.events('NodeRepairBlocked').length > 0)
  await turn(stage, 'node-n1', { type: 'Ready', status: 'True' })
  const [condition] = stage.nodeNow('node-n0')?.status?.conditions ?? []
  assert.ok(condition !== undefined)
  await turn(stage, 'node-n0', { ...condition, lastHeartbeatTime: rfc3339(stage.now) })
  await stage.pass(minutes)
  assert.equal(await repairs(stage), 0)
  await turn(stage, 'node-n0', condition, { type: 'DiskPressure', status: 'False' })
  assert.equal(await repairs(stage), 1)
})

test('LIF-143 a claim that is being deleted loses the rest of its time, and is not counted', async (t) => {
  const stage = await open(t)
  await stage.ready('a', { terminationGracePeriod: '2h' })
  await stage.pod('p', 'node-a', {
    annotations: { [annotations.doNotDisrupt]: 'true' },
    spec: { tolerations },
  })
  await stage.deleteClaim('a')
  await stage.pass(seconds)
  assert.ok(Date.parse(deadlineOf(stage, 'a') ?? '') > stage.now + 110 * minutes)
  await turn(stage, 'node-a', failing)
  await stage.pass(10 * minutes + 2 * seconds)
  assert.ok(Date.parse(deadlineOf(stage, 'a') ?? '') <= stage.now)
  await stage.pass(2 * minutes)
  assert.equal(stage.claimNow('a'), undefined)
  assert.equal(await repairs(stage), 0)
  assert.equal(await stage.metric('nodeclaims_unhealthy_disrupted_total'), 0)
})
