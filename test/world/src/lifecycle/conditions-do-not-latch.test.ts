/** What a condition of a claim says is looked at again when its Node changes (reports.md 4). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  conditionOf,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type Taint,
  terminationFinalizer,
  unregisteredTaint,
} from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { aType, madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

const boot: Taint = { key: 'example.com/boot', effect: 'NoSchedule' }
const dedicated: Taint = { key: 'example.com/dedicated', effect: 'NoSchedule' }

/** The Node object vanishes without a drain, as when its finalizer is removed by hand. */
async function loseNode(stage: Stage, name: string): Promise<void> {
  stage.patch(kinds.node, name, { metadata: { finalizers: null } })
  stage.delete(kinds.node, name)
  await stage.pass(2 * seconds)
}

function marks(node: Node | undefined): object {
  const metadata: Partial<Node['metadata']> = node?.metadata ?? {}
  return {
    registered: metadata.labels?.[labels.registered],
    initialized: metadata.labels?.[labels.initialized],
    pool: metadata.labels?.[labels.nodePool],
    finalizers: metadata.finalizers,
    owners: (metadata.ownerReferences ?? []).map(({ name }) => name),
    taints: (node?.spec?.taints ?? []).map(({ key }) => key).filter((key) => key.startsWith('example.com')),
  }
}

describe('RPT-19 a Node that was deleted and registers again', () => {
  test('is taken over anew, and its claim tells the truth meanwhile', async (t) => {
    const stage = await Stage.open(t)
    await stage.ready('a', { taints: [dedicated] })
    const before = marks(stage.nodeNow('node-a'))
    await loseNode(stage, 'node-a')
    assert.equal(stage.state('a', 'Registered'), 'Unknown/NodeNotFound')
    assert.equal(stage.condition('a', 'Initialized')?.status, 'Unknown')
    assert.notEqual(stage.condition('a', 'Ready')?.status, 'True')
    await stage.join('a', { taints: [] })
    assert.notEqual(stage.condition('a', 'Ready')?.status, 'True', 'the node is not Ready yet')
    await stage.report('node-a')
    assert.deepEqual(marks(stage.nodeNow('node-a')), before)
    assert.deepEqual(marks(stage.nodeNow('node-a')), {
      registered: 'true',
      initialized: 'true',
      pool: 'default',
      finalizers: [terminationFinalizer],
      owners: ['a'],
      taints: [dedicated.key],
    })
    assert.equal(stage.state('a', 'Ready'), 'True/Ready')
    assert.equal(await stage.metric('nodes_created_total'), 1)
  })

  test('the same while no operator runs', async (t) => {
    const stage = await Stage.open(t)
    await stage.ready('a')
    await stage.world.bury(stage.operator)
    stage.patch(kinds.node, 'node-a', { metadata: { finalizers: null } })
    stage.delete(kinds.node, 'node-a')
    await stage.join('a', { taints: [] })
    await stage.report('node-a')
    await stage.start()
    await stage.pass(10 * seconds)
    assert.deepEqual(stage.nodeNow('node-a')?.metadata.finalizers, [terminationFinalizer])
    assert.equal(stage.state('a', 'Ready'), 'True/Ready')
  })

  test('deleting its claim drains what runs there, whether or not it was taken over', async (t) => {
    const stage = await Stage.open(t)
    await stage.ready('a')
    await loseNode(stage, 'node-a')
    stage.world.create(kinds.podDisruptionBudget, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'hold', namespace: 'default' },
      spec: { selector: { matchLabels: { app: 'web' } }, maxUnavailable: 0 },
    })
    stage.world.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-a' },
      spec: { providerID: 'fake://a' },
    })
    stage.delete(karpenterKinds.nodeClaim, 'a')
    await stage.pod('web', 'node-a', { labels: { app: 'web' } })
    await stage.pass(10 * minutes)
    assert.equal(stage.isLeaving('web'), false)
    assert.notEqual(stage.claimNow('a'), undefined)
    assert.equal(stage.cloud.instances.length, 1)
    stage.world.cluster.server.local.delete(kinds.podDisruptionBudget, 'default', 'hold')
    await stage.pass(30 * seconds)
    assert.equal(stage.isLeaving('web'), true)
    await stage.end('web')
    await stage.pass(minutes)
    assert.equal(stage.claimNow('a'), undefined)
  })

  test('a Node that never comes back ends its claim within the registration time-out', async (t) => {
    const stage = await Stage.open(t)
    await stage.ready('a')
    await loseNode(stage, 'node-a')
    await stage.pass(14 * minutes)
    assert.notEqual(stage.claimNow('a'), undefined)
    await stage.pass(2 * minutes)
    assert.equal(stage.claimNow('a'), undefined)
  })

  test('a Node of the same name that is another instance ends the claim', async (t) => {
    const stage = await Stage.open(t)
    await stage.ready('a')
    await loseNode(stage, 'node-a')
    stage.world.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-a' },
      spec: { providerID: 'fake://other' },
    })
    await stage.pass(minutes)
    assert.equal(stage.claimNow('a'), undefined)
    assert.notEqual(stage.nodeNow('node-a'), undefined)
    assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'node_replaced' }), 1)
  })

  for (const [what, patch] of Object.entries({
    finalizer: { metadata: { finalizers: null } },
    'registered label': { metadata: { labels: { [labels.registered]: null } } },
    'initialized label': { metadata: { labels: { [labels.initialized]: null } } },
  }))
    test(`what is taken off a Node comes back: its ${what}`, async (t) => {
      const stage = await Stage.open(t)
      await stage.ready('a')
      const before = marks(stage.nodeNow('node-a'))
      stage.patch(kinds.node, 'node-a', patch)
      await stage.pass(10 * seconds)
      assert.deepEqual(marks(stage.nodeNow('node-a')), before)
      assert.equal(stage.state('a', 'Ready'), 'True/Ready')
    })

  test('a second Node with the provider ID stands in the way only as long as it is there', async (t) => {
    const stage = await Stage.open(t)
    await stage.claim('a')
    await stage.join('a', { name: 'one', taints: [unregisteredTaint] })
    const claim = () => stage.claimNow('a')
    await stage.claim('b')
    stage.world.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'b-one' },
      spec: { providerID: 'fake://b', taints: [unregisteredTaint] },
    })
    stage.world.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'b-two' },
      spec: { providerID: 'fake://b', taints: [unregisteredTaint] },
    })
    await stage.pass(2 * seconds)
    assert.ok(claim())
    const found = stage.claimNow('b')
    assert.equal(found && conditionOf(found, 'Registered')?.reason, 'MultipleNodesFound')
    stage.delete(kinds.node, 'b-two')
    await stage.pass(5 * seconds)
    assert.equal(stage.state('b', 'Registered'), 'True/Registered')
  })
})

describe('RPT-20 an instance that registers and does not get ready', () => {
  test('ends within the time-out, with an event that tells why, although nothing waits for it', async (t) => {
    const stage = await Stage.open(t)
    await stage.claim('a')
    await stage.join('a')
    await stage.pass(14 * minutes)
    assert.notEqual(stage.claimNow('a'), undefined)
    await stage.pass(2 * minutes)
    assert.equal(stage.claimNow('a'), undefined)
    assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'initialization_timeout' }), 1)
    assert.match(stage.events('InitializationTimeout')[0]?.message ?? '', /node-a .* 900 s .*not Ready/)
  })

  test('the same when its startup taint never goes, or readiness goes before', async (t) => {
    const stage = await Stage.open(t)
    await stage.claim('a', { startupTaints: [boot] })
    await stage.join('a')
    await stage.report('node-a')
    await stage.claim('b', { startupTaints: [boot] })
    await stage.join('b')
    await stage.report('node-b')
    await stage.report('node-b', 'False')
    stage.patch(kinds.node, 'node-b', { spec: { taints: null } })
    await stage.pass(16 * minutes)
    assert.deepEqual([stage.claimNow('a'), stage.claimNow('b')], [undefined, undefined])
  })

  test('the time-out is a setting, and an annotation of the claim', async (t) => {
    const stage = await Stage.open(t, { settings: { initializationTimeoutMs: 5 * minutes } })
    const withTimeout = (value: string) => ({ annotations: { 'tenon.sh/initialization-timeout': value } })
    await stage.claim('a')
    await stage.claim('b', {}, withTimeout('30m'))
    await stage.claim('c', {}, withTimeout('Never'))
    await stage.claim('d', {}, withTimeout('soon'))
    for (const name of ['a', 'b', 'c', 'd']) await stage.join(name)
    const left = () => ['a', 'b', 'c', 'd'].filter((name) => stage.claimNow(name) !== undefined)
    await stage.pass(6 * minutes)
    assert.deepEqual(left(), ['b', 'c'])
    await stage.pass(26 * minutes)
    assert.deepEqual(left(), ['c'])
    await stage.pass(10 * 60 * minutes)
    assert.deepEqual(left(), ['c'])
  })

  for (const PlannedPlacement of [true, false])
    test(`is no room after 5 min for pods that come then, PlannedPlacement ${PlannedPlacement ? 'on' : 'off'}`, async (t) => {
      const stage = await Stage.open(t, {
        settings: { featureGates: { ...defaultSettings.featureGates, plannedPlacement: PlannedPlacement } },
      })
      stage.cloud.instanceTypes = [aType('medium', 4)]
      waitingPod(stage, 'first')
      await stage.pass(15 * seconds)
      const [claim] = madeClaims(stage)
      assert.ok(claim)
      await stage.join(claim.metadata.name, { labels: { [labels.instanceType]: 'medium' } })
      await stage.pass(3 * minutes)
      waitingPod(stage, 'second')
      await stage.pass(15 * seconds)
      assert.equal(madeClaims(stage).length, 1, 'the node may still take it')
      await stage.pass(2 * minutes)
      waitingPod(stage, 'third')
      await stage.pass(15 * seconds)
      assert.equal(madeClaims(stage).length, 2)
      waitingPod(stage, 'fourth')
      await stage.pass(minutes)
      // The first pod stays with its node, which is as slow as it was; the others share the new one.
      assert.equal(madeClaims(stage).length, 2)
    })

  test('pauses launches for its pool, longer each time, until a node takes pods', async (t) => {
    const stage = await Stage.open(t)
    stage.cloud.instanceTypes = [aType('medium', 4)]
    waitingPod(stage, 'pod')
    const joined = new Set<string>()
    const joinAll = async () => {
      for (const { metadata, status } of madeClaims(stage)) {
        if (joined.has(metadata.name) || (status?.providerID ?? '') === '') continue
        joined.add(metadata.name)
        await stage.join(metadata.name, { labels: { [labels.instanceType]: 'medium' } })
      }
    }
    for (let minute = 0; minute < 6 * 60; minute++) {
      await joinAll()
      await stage.pass(minutes)
    }
    // Without a pause they would be 24.
    assert.ok(joined.size >= 4 && joined.size <= 7, String(joined.size))
    assert.match(
      stage.events('LaunchesPaused')[0]?.message ?? '',
      /not run pods: .*not Ready; the next .* min/,
    )
    for (let minute = 0; minute < 135 && madeClaims(stage).length === 0; minute++) await stage.pass(minutes)
    await joinAll()
    const [claim] = madeClaims(stage)
    assert.ok(claim)
    await stage.report(`node-${claim.metadata.name}`)
    waitingPod(stage, 'large', { cpu: '4' })
    await stage.pass(15 * seconds)
    assert.equal(madeClaims(stage).length, 2)
  })

  test('a restart does not begin the time anew', async (t) => {
    const stage = await Stage.open(t)
    await stage.claim('a')
    await stage.join('a')
    await stage.pass(10 * minutes)
    await stage.restart()
    await stage.pass(6 * minutes)
    assert.equal(stage.claimNow('a'), undefined)
  })

  test('a node that has taken pods is left to the repair policies', async (t) => {
    const stage = await Stage.open(t)
    await stage.ready('a')
    await stage.report('node-a', 'False')
    await stage.pass(60 * minutes)
    assert.notEqual(stage.claimNow('a'), undefined)
  })
})

describe('RPT-21 a startup taint that its agent took off before registration', () => {
  test('is not put back', async (t) => {
    const stage = await Stage.open(t)
    let isPassed = false
    stage.cloud.registrationHooks = [
      {
        name: 'network',
        check: () =>
          Promise.resolve(
            isPassed ? { kind: 'passed', labels: {} } : { kind: 'pending', retryAfterMs: 5 * seconds },
          ),
      },
    ]
    await stage.claim('a', { taints: [dedicated], startupTaints: [boot] })
    await stage.join('a')
    const keys = () => (stage.nodeNow('node-a')?.spec?.taints ?? []).map(({ key }) => key)
    assert.ok(keys().includes(boot.key))
    const taints = (stage.nodeNow('node-a')?.spec?.taints ?? []).filter(({ key }) => key !== boot.key)
    stage.patch(kinds.node, 'node-a', { spec: { taints } })
    await stage.pass(20 * seconds)
    assert.equal(stage.condition('a', 'Registered')?.status, 'Unknown')
    isPassed = true
    await stage.pass(20 * seconds)
    assert.equal(stage.state('a', 'Registered'), 'True/Registered')
    assert.ok(keys().includes(dedicated.key))
    assert.equal(keys().includes(boot.key), false)
  })
})
