import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, karpenterKinds, type NodePool } from '@tenon/api'
import { seconds, type Stage } from '../testing/stage.test-support.ts'
import { madeClaims } from '../testing/pools.test-support.ts'
import { joinAll, openStatic } from '../static-capacity/static-stage.test-support.ts'
import {
  cpu,
  left,
  openDisruption,
  setBudget,
  setDrifted,
  tainted,
  eventMessages,
} from './disruption-stage.test-support.ts'

/** What the metric says of NodePool `default`; undefined while it says nothing. */
async function isPaused(stage: Stage): Promise<number | undefined> {
  const metric = stage.operator.operator.metrics.registry.getSingleMetric('tenon_nodepools_rollout_paused')
  return (await metric?.get())?.values.find(({ labels }) => labels['nodepool'] === 'default')?.value
}

/** Lets time pass; every claim becomes a node at once, and gets a pod that fits nowhere else. */
async function live(stage: Stage, minutes: number): Promise<void> {
  for (let i = 0; i < minutes * 6; i++) {
    await stage.pass(10 * seconds)
    for (const { metadata } of madeClaims(stage)) {
      const node = `node-${metadata.name}`
      if (metadata.deletionTimestamp !== undefined || stage.nodeNow(node) !== undefined) continue
      await stage.join(metadata.name)
      await stage.report(node)
      await stage.pod(`on-${metadata.name}`, node, cpu('3'))
    }
  }
}

/** Names of all claims the pool ever had, in the order in which they were seen. */
function follow(stage: Stage): ReadonlySet<string> {
  const seen = new Set<string>()
  stage.world.cluster.server.local.subscribe(karpenterKinds.nodeClaim, {
    added: ({ metadata }) => {
      seen.add(metadata.name)
    },
  })
  return seen
}

test('RPT-24 when every new node is drifted at birth, at most two are replaced in an hour', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: 'Never' } })
  const seen = follow(stage)
  await stage.ready('old')
  await stage.pod('p', 'node-old', cpu('3'))
  stage.cloud.onIsDrifted = () => 'ImageChanged'
  await live(stage, 60)
  assert.ok(seen.size >= 2 && seen.size <= 3, `${seen.size - 1} replacements in the first hour`)
  assert.match(eventMessages(stage, 'RolloutPaused', 'NodePool/default')[0] ?? '', /was drifted itself/)
  const health = () => conditionOf(stage.poolNow() as NodePool, 'RolloutHealthy')
  assert.deepEqual([health()?.status, health()?.reason], ['False', 'ReplacementDrifted'])
  assert.match(health()?.message ?? '', /replaced again from 20.*Z/)
  assert.equal(conditionOf(stage.poolNow() as NodePool, 'Ready')?.status, 'True')
  assert.equal(await isPaused(stage), 1)
  await live(stage, 60)
  assert.ok(seen.size <= 5, `${seen.size - 1} replacements in two hours`)
  assert.equal(left(stage).length, 1)
})

test('RPT-24 a static pool whose new nodes are drifted at birth pauses as well, until it changes', async (t) => {
  const stage = await openStatic(t, 1, {
    pool: { disruption: { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] } },
  })
  const seen = follow(stage)
  await joinAll(stage)
  stage.cloud.onIsDrifted = () => 'ImageChanged'
  await live(stage, 30)
  const before = seen.size
  assert.ok(before <= 2, `${before} replacements in half an hour`)
  const template = { spec: { expireAfter: '700h' } }
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { template } })
  await live(stage, 10)
  assert.ok(seen.size > before)
})

test('RPT-24 the condition and the metric end with the pause, also in the next process', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: 'Never' } })
  await stage.ready('old')
  await stage.pod('p', 'node-old', cpu('3'))
  stage.cloud.onIsDrifted = () => 'ImageChanged'
  const status = () => conditionOf(stage.poolNow() as NodePool, 'RolloutHealthy')?.status
  for (let i = 0; i < 60 && status() === undefined; i++) await live(stage, 1)
  assert.equal(status(), 'False')
  const before = madeClaims(stage).length
  await stage.restart()
  await live(stage, 10)
  assert.equal(status(), 'False')
  assert.equal(await isPaused(stage), 1)
  assert.equal(madeClaims(stage).length, before)
  stage.cloud.onIsDrifted = () => undefined
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { weight: 7 } })
  await live(stage, 2)
  assert.equal(status(), 'True')
  assert.equal(await isPaused(stage), 0)
})

test('RPT-24 a node that is launched for the pods of drifted ones, and is drifted itself, pauses the rollout as well', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: 'Never' } })
  await stage.ready('old')
  await stage.pod('p', 'node-old', cpu('3'))
  stage.cloud.onIsDrifted = ({ metadata }) =>
    metadata.name === 'late' || metadata.name === 'old' ? 'ImageChanged' : undefined
  for (let i = 0; i < 60 && left(stage).includes('old'); i++) await live(stage, 1)
  assert.equal(await isPaused(stage), 0)
  await stage.claim('late')
  await live(stage, 8)
  assert.equal(await isPaused(stage), 1)
})

for (const compatibility of ['karpenter', 'none'] as const) {
  test(`a drifted node is not kept for pods that only lose theirs (compatibility ${compatibility})`, async (t) => {
    const stage = await openDisruption(t, {
      disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '0' }] },
      settings: { compatibility },
    })
    setDrifted(stage, 'a', 'b', 'c')
    for (const name of ['a', 'b', 'c']) {
      await stage.ready(name)
      await stage.pod(`on-${name}`, `node-${name}`, cpu('1'))
    }
    setBudget(stage, '100%')
    await stage.pass(50 * seconds)
    assert.deepEqual(tainted(stage), ['a', 'b', 'c'])
    const kept = ['a', 'b', 'c'].flatMap((name) =>
      eventMessages(stage, 'DisruptionBlocked', `Node/node-${name}`),
    )
    assert.deepEqual(
      kept.filter((message) => message.includes('kept for a pending pod')),
      [],
    )
  })
}
