import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, kinds, labels, unregisteredTaint } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'

test('LIF-15 LIF-17 LIF-18 a node that joins is taken over by its claim', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a', {}, { labels: { team: 'claim' }, annotations: { note: 'claim' } })
  assert.equal(stage.state('a', 'Registered'), 'Unknown/NodeNotFound')
  await stage.join('a', { labels: { team: 'node' }, annotations: { note: 'node' } })
  const node = stage.nodeNow('node-a')
  assert.equal(stage.state('a', 'Registered'), 'True/Registered')
  assert.equal(stage.claimNow('a')?.status?.nodeName, 'node-a')
  assert.equal(node?.metadata.labels?.[labels.registered], 'true')
  assert.ok(!node.spec?.taints?.some(({ key }) => key === 'karpenter.sh/unregistered'))
  assert.deepEqual(node.metadata.finalizers, ['karpenter.sh/termination'])
  const uid = stage.claimNow('a')?.metadata.uid
  assert.deepEqual(node.metadata.ownerReferences, [
    { apiVersion: 'karpenter.sh/v1', kind: 'NodeClaim', name: 'a', uid, blockOwnerDeletion: true },
  ])
  assert.equal(node.metadata.labels['team'], 'claim')
  assert.equal(node.metadata.annotations?.['note'], 'claim')
  assert.equal(await stage.metric('nodes_created_total', { nodepool: 'default', zone: 'zone-1' }), 1)
})

test('LIF-17 an owner reference that is there already is not doubled', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a')
  const uid = stage.claimNow('a')?.metadata.uid ?? ''
  await stage.join('a', {
    ownerReferences: [{ apiVersion: 'karpenter.sh/v1', kind: 'NodeClaim', name: 'a', uid }],
  })
  assert.equal(stage.nodeNow('node-a')?.metadata.ownerReferences?.length, 1)
  assert.equal(stage.state('a', 'Registered'), 'True/Registered')
})

test('LIF-16 a node without the unregistered taint registers all the same, with one event', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a')
  await stage.join('a', { taints: [] })
  await stage.pass(5 * seconds)
  assert.equal(stage.state('a', 'Registered'), 'True/Registered')
  assert.equal(stage.events('UnregisteredTaintMissing').length, 1)
})

test('LIF-19 taints are added; one of the node with the same key and effect keeps its value', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a', {
    taints: [
      { key: 'team', value: 'claim', effect: 'NoSchedule' },
      { key: 'team', value: 'claim', effect: 'NoExecute' },
    ],
    startupTaints: [{ key: 'boot', effect: 'NoSchedule' }],
  })
  await stage.join('a', {
    taints: [
      { key: 'team', value: 'node', effect: 'NoSchedule' },
      { key: 'karpenter.sh/unregistered', effect: 'NoExecute' },
    ],
  })
  const taints = (stage.nodeNow('node-a')?.spec?.taints ?? []).filter(({ key }) => !key.includes('/'))
  assert.deepEqual(
    taints.map(({ key, value = '', effect }) => `${key}=${value}:${effect}`),
    ['team=node:NoSchedule', 'team=claim:NoExecute', 'boot=:NoSchedule'],
  )
})

for (const [value, synced] of [
  ['true', false],
  ['false', true],
] as const) {
  test(`LIF-20 do-not-sync-taints=${value}`, async (t) => {
    const stage = await Stage.open(t)
    await stage.claim('a', { taints: [{ key: 'team', effect: 'NoSchedule' }] })
    await stage.join('a', { labels: { [labels.doNotSyncTaints]: value } })
    const keys = stage.nodeNow('node-a')?.spec?.taints?.map(({ key }) => key) ?? []
    assert.equal(keys.includes('team'), synced)
    assert.ok(!keys.includes('karpenter.sh/unregistered'))
  })
}

test('LIF-21 a startup taint that was taken off does not come back', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a', { startupTaints: [{ key: 'boot', effect: 'NoSchedule' }] })
  await stage.join('a')
  await stage.report('node-a')
  stage.patch(kinds.node, 'node-a', { spec: { taints: null } })
  await stage.pass(minutes)
  assert.deepEqual(stage.nodeNow('node-a')?.spec?.taints ?? [], [])
  assert.equal(stage.state('a', 'Initialized'), 'True/Initialized')
})

describe('RPB-20 a startup taint that an agent takes off never comes back', () => {
  const boot = { key: 'boot', effect: 'NoSchedule' } as const

  function takeOff(stage: Stage): void {
    const taints = stage.nodeNow('node-a')?.spec?.taints ?? []
    stage.patch(kinds.node, 'node-a', { spec: { taints: taints.filter(({ key }) => key !== 'boot') } })
  }

  /** The Node appears with the taint. */
  async function appear(stage: Stage): Promise<void> {
    await stage.claim('a', { startupTaints: [boot, { ...boot, key: 'second' }] })
    stage.world.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-a' },
      spec: { providerID: 'fake://a', taints: [boot, unregisteredTaint] },
    })
  }

  const keys = (stage: Stage) => (stage.nodeNow('node-a')?.spec?.taints ?? []).map(({ key }) => key)

  /** One that was never there is put on; the Node is initialized without it. */
  async function becomesInitialized(stage: Stage): Promise<void> {
    await stage.pass(2 * seconds)
    await stage.report('node-a')
    assert.deepEqual(keys(stage), ['second'])
    stage.patch(kinds.node, 'node-a', { spec: { taints: null } })
    await stage.pass(minutes)
    assert.deepEqual([keys(stage), stage.state('a', 'Initialized')], [[], 'True/Initialized'])
  }

  for (const afterMs of [undefined, 0, 1, 100, 5000])
    test(afterMs === undefined ? 'in the same moment' : `${afterMs} ms later`, async (t) => {
      const stage = await Stage.open(t)
      await appear(stage)
      if (afterMs !== undefined) await stage.pass(afterMs)
      takeOff(stage)
      await becomesInitialized(stage)
    })

  for (const at of [1, 2, 3])
    test(`while write ${at} to the Node is on its way`, async (t) => {
      let writes = 0
      let stage: Stage | undefined
      const apiPath = intercepting((method, path) => {
        if (method === 'PATCH' && path.startsWith('/api/v1/nodes/node-a') && ++writes === at && stage)
          takeOff(stage)
        return 'pass'
      })
      stage = await Stage.open(t, { apiPath })
      await appear(stage)
      await stage.pass(2 * seconds)
      await stage.report('node-a')
      if (writes < at) takeOff(stage)
      await becomesInitialized(stage)
    })

  test('while a hook holds registration back, and the process ends', async (t) => {
    const stage = await Stage.open(t)
    let isPending = true
    const check = () =>
      Promise.resolve(isPending ? { kind: 'pending' as const } : { kind: 'passed' as const })
    stage.cloud.registrationHooks = [{ name: 'volumes', check }]
    await appear(stage)
    takeOff(stage)
    await stage.pass(seconds)
    await stage.restart()
    isPending = false
    await stage.report('node-a')
    await stage.pass(minutes)
    assert.deepEqual([keys(stage), stage.state('a', 'Registered')], [['second'], 'True/Registered'])
  })

  test('when the Node loses its owner', async (t) => {
    const stage = await Stage.open(t)
    await appear(stage)
    await stage.pass(seconds)
    takeOff(stage)
    await stage.report('node-a')
    stage.patch(kinds.node, 'node-a', { metadata: { ownerReferences: null, finalizers: null } })
    await stage.pass(minutes)
    assert.deepEqual(keys(stage), ['second'])
  })
})

test('LIF-22 LIF-29 without a node the claim waits 15 min', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a')
  await stage.pass(14 * minutes)
  assert.equal(stage.state('a', 'Registered'), 'Unknown/NodeNotFound')
  await stage.pass(2 * minutes)
  assert.equal(stage.claimNow('a'), undefined)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'registration_timeout' }), 1)
})

test('LIF-23 API-112 with two nodes of one provider ID the claim goes 15 min later', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  await stage.claim('a')
  await stage.join('a', { name: 'one' })
  await stage.join('a', { name: 'two' })
  await stage.start()
  assert.equal(stage.state('a', 'Registered'), 'False/MultipleNodesFound')
  assert.equal(stage.condition('a', 'Ready')?.reason, 'UnhealthyDependents')
  await stage.pass(14 * minutes)
  assert.equal(stage.state('a', 'Registered'), 'False/MultipleNodesFound')
  await stage.pass(2 * minutes)
  assert.equal(stage.claimNow('a'), undefined)
})

test('LIF-24 a conflict on the Node is tried again, Registered waits for it', async (t) => {
  let isRejecting = true
  const apiPath = intercepting((method, path, body) =>
    method === 'PATCH' && path.includes('/nodes/node-a') && body.includes('finalizers') && isRejecting
      ? 'conflict'
      : 'pass',
  )
  const stage = await Stage.open(t, { apiPath })
  await stage.claim('a')
  await stage.join('a')
  assert.equal(stage.state('a', 'Registered'), 'Unknown/NodeNotFound')
  isRejecting = false
  await stage.pass(3 * seconds)
  assert.equal(stage.state('a', 'Registered'), 'True/Registered')
})

test('LIF-30 the transition time of Registered decides, not the age of the claim', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  await stage.claim('a')
  const condition = {
    type: 'Registered',
    status: 'Unknown',
    reason: 'NodeNotFound',
    message: '',
    lastTransitionTime: rfc3339(stage.now + 10 * minutes),
  }
  stage.patch(karpenterKinds.nodeClaim, 'a', { status: { conditions: [condition] } }, 'status')
  await stage.start()
  await stage.pass(24 * minutes)
  assert.equal(stage.state('a', 'Registered'), 'Unknown/NodeNotFound')
  await stage.pass(2 * minutes)
  assert.equal(stage.claimNow('a'), undefined)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'registration_timeout' }), 1)
})

test('LIF-31 a node that appears late, before anybody looked, still registers', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a')
  await stage.world.bury(stage.operator)
  await stage.pass(20 * minutes)
  await stage.join('a')
  await stage.start()
  assert.equal(stage.state('a', 'Registered'), 'True/Registered')
})

test('LIF-31 a conflict while it registers is no reason to give up the claim', async (t) => {
  let refusals = 1
  const apiPath = intercepting((method, path, body) =>
    method === 'PATCH' && path.includes('/nodes/node-a') && body.includes('finalizers') && refusals-- > 0
      ? 'conflict'
      : 'pass',
  )
  const stage = await Stage.open(t, { apiPath, idle: true })
  await stage.start()
  await stage.claim('a')
  await stage.world.bury(stage.operator)
  await stage.pass(20 * minutes)
  await stage.join('a')
  await stage.start()
  assert.equal(stage.state('a', 'Registered'), 'True/Registered')
})
