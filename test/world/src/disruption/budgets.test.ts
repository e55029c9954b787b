import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, type Budget, karpenterKinds, labels } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { createPool } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'
import {
  cpu,
  left,
  LoggedErrors,
  openDisruption,
  setBudget,
  setCondition,
  setDisruption,
  setDrifted,
  tainted,
  eventMessages,
} from './disruption-stage.test-support.ts'

const closed = { disruption: { budgets: [{ nodes: '0' }] } }
const held = { annotations: { [annotations.doNotDisrupt]: 'true' } }

/** Nodes `n0` and so on. */
async function nodes(stage: Stage, count: number): Promise<readonly string[]> {
  const names = Array.from({ length: count }, (_, index) => `n${index}`)
  for (const name of names) await stage.ready(name)
  return names
}

async function allowed(stage: Stage, reason: string): Promise<number> {
  return await stage.metric('nodepools_allowed_disruptions', { nodepool: 'default', reason })
}

async function consuming(stage: Stage, reason: string): Promise<number> {
  return await stage.metric('nodepools_nodes_consuming_budgets', { nodepool: 'default', reason })
}

/** Lets time pass until the first nodes are on their way out; how many. */
async function going(stage: Stage): Promise<number> {
  const before = left(stage).length
  await stage.world.clock.advanceUntil(() => left(stage).length < before, minutes)
  await stage.pass(500)
  return before - left(stage).length
}

test('DIS-36 with a budget of 30 % three of ten nodes go, and the gauge says so', async (t) => {
  const stage = await openDisruption(t, closed)
  await nodes(stage, 10)
  setBudget(stage, '30%')
  assert.equal(await going(stage), 3)
  assert.equal(await allowed(stage, 'Empty'), 3)
})

test('DIS-37 all may go or none, of which the NodePool is told', async (t) => {
  const stage = await openDisruption(t, closed)
  await nodes(stage, 4)
  for (const none of ['0', '0%']) {
    setBudget(stage, none)
    await stage.pass(minutes)
    assert.equal(left(stage).length, 4)
    assert.equal(await allowed(stage, 'Empty'), 0)
  }
  const [text] = eventMessages(stage, 'DisruptionBlocked', 'NodePool/default')
  assert.match(text ?? '', /reason Empty/)
  setBudget(stage, '100%')
  assert.equal(await going(stage), 4)
})

test('DIS-38 each of ten pools has a budget of its own', async (t) => {
  const stage = await openDisruption(t, closed)
  const pools = Array.from({ length: 10 }, (_, index) => `pool-${index}`)
  const disruption = (amount: string) => ({ consolidateAfter: '0s', budgets: [{ nodes: amount }] })
  for (const pool of pools) {
    createPool(stage, aKwokPool(pool, { disruption: disruption('0') }))
    const tags = { labels: { [labels.nodePool]: pool } }
    for (const index of [1, 2, 3]) {
      stage.world.create(karpenterKinds.nodeClaim, stage.aClaim(`${pool}-${index}`, {}, tags))
    }
  }
  await stage.pass(2 * seconds)
  for (const name of left(stage)) {
    await stage.join(name)
    await stage.report(`node-${name}`)
  }
  for (const pool of pools) setDisruption(stage, disruption('2'), pool)
  assert.equal(await going(stage), 20)
  for (const pool of pools)
    assert.equal(left(stage).filter((name) => name.startsWith(`${pool}-`)).length, 1, pool)
})

test('RPB-42 a Node that drains uses the budget up although its claim is lost', async (t) => {
  const stage = await openDisruption(t, { disruption: { ...closed.disruption, consolidateAfter: 'Never' } })
  const [lost = '', ...others] = await nodes(stage, 4)
  await stage.pod('held', `node-${lost}`, held)
  await stage.deleteClaim(lost)
  await stage.pass(minutes)
  stage.world.cluster.server.local.patch(karpenterKinds.nodeClaim, undefined, lost, {
    metadata: { finalizers: null },
  })
  setBudget(stage, '1')
  setDrifted(stage, ...others)
  await stage.pass(6 * minutes)
  assert.deepEqual(left(stage).toSorted(), others.toSorted())
  assert.deepEqual(tainted(stage), [lost])
  assert.equal(await consuming(stage, 'Drifted'), 1)
})

test('DIS-39 DIS-40 nodes that go, are about to or are not Ready use the budget up', async (t) => {
  const stage = await openDisruption(t, { disruption: { ...closed.disruption, consolidateAfter: 'Never' } })
  const [deleting = '', marked = '', ...others] = await nodes(stage, 10)
  for (const name of [deleting, marked]) await stage.pod(`on-${name}`, `node-${name}`, held)
  await stage.deleteClaim(deleting)
  stage.operator.operator.state.mark(`fake://${marked}`)
  setDrifted(stage, ...others)
  await stage.pass(6 * minutes)
  setBudget(stage, '100%')
  await stage.world.clock.advanceUntil(() => tainted(stage).length > 1, minutes)
  assert.deepEqual([await allowed(stage, 'Drifted'), await consuming(stage, 'Drifted')], [10, 2])

  const unready = await openDisruption(t, closed)
  const names = await nodes(unready, 10)
  for (const name of names.slice(8)) {
    await unready.pod(`on-${name}`, `node-${name}`, held)
    await unready.report(`node-${name}`, 'False')
  }
  setBudget(unready, '10')
  assert.equal(await going(unready), 8)
  assert.deepEqual([await allowed(unready, 'Empty'), await consuming(unready, 'Empty')], [10, 2])
})

test('DIS-41 more nodes that go than may go leave nothing, and nothing below that', async (t) => {
  const stage = await openDisruption(t, closed)
  const names = await nodes(stage, 3)
  for (const name of names) {
    await stage.pod(`on-${name}`, `node-${name}`, held)
    await stage.deleteClaim(name)
  }
  await stage.ready('late')
  setBudget(stage, '10%')
  await stage.pass(minutes)
  assert.deepEqual(left(stage), ['late'])
  assert.deepEqual([await allowed(stage, 'Empty'), await consuming(stage, 'Empty')], [1, 3])
})

test('DIS-42 nodes that are not managed, that start, or whose instance ends do not count', async (t) => {
  const stage = await openDisruption(t, closed)
  await nodes(stage, 2)
  await stage.join('own', { name: 'own', taints: [] })
  await stage.report('own')
  await stage.claim('starting')
  await stage.join('starting')
  await stage.ready('ending')
  await stage.pod('on-ending', 'node-ending', held)
  setCondition(stage, 'ending', 'InstanceTerminating')
  setBudget(stage, '100%')
  await stage.world.clock.advanceUntil(() => left(stage).length < 4, minutes)
  assert.deepEqual([await allowed(stage, 'Empty'), await consuming(stage, 'Empty')], [2, 0])
})

test('DIS-52 the API refuses half a window, and amounts and durations of another form', async (t) => {
  const stage = await openDisruption(t)
  const isTaken = (budget: Budget) => {
    try {
      setDisruption(stage, { budgets: [budget] })
      return true
    } catch {
      return false
    }
  }
  const schedule = '@daily'
  assert.equal(isTaken({ nodes: '10', schedule }), false)
  assert.equal(isTaken({ nodes: '10', duration: '1h' }), false)
  assert.equal(isTaken({ nodes: '10', schedule, duration: '30s' }), false)
  for (const amount of ['1000%', '-10']) assert.equal(isTaken({ nodes: amount }), false, amount)
  assert.equal(isTaken({ nodes: '10', schedule, duration: '2h20m' }), true)
})

test('DIS-53 a pool without nodes is not told that none may go', async (t) => {
  const stage = await openDisruption(t, closed)
  createPool(stage, aKwokPool('used', { disruption: { consolidateAfter: '0s', budgets: [{ nodes: '0' }] } }))
  await stage.ready('a', {}, { labels: { [labels.nodePool]: 'used' } })
  await stage.pass(minutes)
  assert.equal(eventMessages(stage, 'DisruptionBlocked', 'NodePool/used').length > 0, true)
  assert.deepEqual(eventMessages(stage, 'DisruptionBlocked', 'NodePool/default'), [])
  // Dashboards see every pool.
  assert.equal(await allowed(stage, 'Empty'), 0)
  const series = stage.operator.operator.metrics.registry.getSingleMetric(
    'karpenter_nodepools_allowed_disruptions',
  )
  const pools = ((await series?.get())?.values ?? []).map(({ labels: tags }) => String(tags['nodepool']))
  assert.deepEqual([...new Set(pools)].toSorted(), ['default', 'used'])
})

test('DIS-54 with a budget of three and three commands under way a fourth node waits', async (t) => {
  const stage = await openDisruption(t, {
    disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '0' }] },
  })
  const names = ['n0', 'n1', 'n2', 'n3']
  setDrifted(stage, ...names)
  for (const name of names) {
    await stage.ready(name)
    await stage.pod(`on-${name}`, `node-${name}`, cpu('3'))
  }
  setBudget(stage, '3')
  await stage.pass(3 * minutes)
  assert.deepEqual(tainted(stage), ['n0', 'n1', 'n2'])
  assert.equal(await stage.metric('voluntary_disruption_decisions_total', { reason: 'drifted' }), 3)
  assert.equal(await stage.metric('nodeclaims_created_total', { reason: 'drifted' }), 3)
})

test('DIS-55 nodes expire and are repaired whatever the budget', async (t) => {
  const featureGates = { ...defaultSettings.featureGates, nodeRepair: true }
  const stage = await openDisruption(t, { ...closed, settings: { featureGates }, idle: true })
  stage.cloud.repairPolicies = [{ conditionType: 'Ready', conditionStatus: 'False', tolerationMs: minutes }]
  await stage.start()
  await stage.ready('old', { expireAfter: '2m' })
  await stage.ready('sick')
  await stage.ready('young')
  await stage.report('node-sick', 'False')
  await stage.pass(3 * minutes)
  assert.deepEqual(left(stage), ['young'])
  for (const reason of ['expired', 'unhealthy'])
    assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason }), 1, reason)
})

test('a budget that cannot be read is logged with its NodePool', async (t) => {
  const logger = new LoggedErrors()
  const stage = await openDisruption(t, { ...closed, logger })
  await stage.pass(30 * seconds)
  assert.deepEqual(logger.lines, [])
  const budget = { nodes: '1', schedule: '0 0 * * tue-mon', duration: '1h' }
  setDisruption(stage, { budgets: [budget] })
  await stage.pass(10 * seconds)
  assert.deepEqual(
    logger.lines.map(({ message, fields }) => [message, fields['NodePool'], fields['budget']]),
    [['invalid disruption budget; no node of the nodepool is disrupted', { name: 'default' }, budget]],
  )
})

test('a node that drains uses the budget up when its kubelet comes back under another name', async (t) => {
  const stage = await openDisruption(t, { disruption: { ...closed.disruption, consolidateAfter: 'Never' } })
  const [draining = '', ...others] = await nodes(stage, 3)
  await stage.pod('held', `node-${draining}`, held)
  await stage.deleteClaim(draining)
  await stage.join(draining, { name: 'renamed' })
  await stage.report('renamed')
  await stage.report(`node-${draining}`, 'Unknown')
  setBudget(stage, '1')
  setDrifted(stage, ...others)
  await stage.pass(6 * minutes)
  assert.deepEqual(left(stage).toSorted(), others)
  assert.equal(await consuming(stage, 'Drifted'), 1)
})
