/** Nodes that turn out to be useless are counted, whatever the cause, and nothing is held without proof (reports-2.md 1). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { PodExplainer, simulate, Study } from '@tenon/ask'
import { isConditionTrue, karpenterKinds, kinds, type Pod } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { aPool } from '../exoscale/manifests.test-support.ts'
import { WrongViews } from '../simulation/faults/wrong-views.ts'
import { snapshotOf } from '../testing/snapshot.test-support.ts'
import type { WorldOptions } from '../world.ts'
import { EvidenceStage, hours, minutes } from './evidence-stage.test-support.ts'

const onePerNode = { cpu: '1500m', memory: '1Gi' }

async function aStage(t: TestContext, options: Partial<WorldOptions> = {}): Promise<EvidenceStage> {
  const stage = await EvidenceStage.open(t, options)
  const disruption = {
    consolidationPolicy: 'WhenEmpty' as const,
    consolidateAfter: '0s',
    budgets: [{ nodes: '100%' }],
  }
  stage.world.create(karpenterKinds.nodePool, aPool('standard', ['standard.medium'], { disruption }))
  return stage
}

for (const lateSeconds of [30, 130, 300])
  test(`RPB-1 pods that are shown ${lateSeconds} s late get a node each, and no verdict`, async (t) => {
    const views = new WrongViews()
    const stage = await aStage(t, { apiPath: views.path })
    await stage.start()
    views.late('pods', lateSeconds * 1000)
    for (let i = 0; i < 9; i++) stage.aPod(`web-${i}`, onePerNode)
    await stage.pass(15 * minutes + 3 * lateSeconds * 1000)
    const nodes = new Set(stage.world.pods().map(({ spec }) => spec.nodeName))
    assert.equal(nodes.size, 9)
    assert.ok(!nodes.has(undefined))
    assert.equal(stage.launched.size, 9)
    assert.deepEqual([stage.events('NodeRefused'), stage.events('NodeUnused')], [[], []])
  })

test('RPB-2 words that a slow scheduler formed before the nodes opened, and that come after, are no verdict', async (t) => {
  let isRefused = false
  const scheduler = {
    extraFilter: () => (isRefused ? 'node(s) have no licence left' : undefined),
    initialBackoffMs: 400_000,
    maxBackoffMs: 400_000,
    unschedulableFlushMs: 800_000,
  }
  const stage = await aStage(t, { cluster: { scheduler } })
  stage.aPod('first', { cpu: '100m', memory: '100Mi' })
  await stage.start()
  await stage.until(() => (stage.pod('first')?.spec.nodeName ?? '') !== '', 10 * minutes)
  isRefused = true
  const names = Array.from({ length: 8 }, (_, i) => `web-${i}`)
  for (const name of names) stage.aPod(name, onePerNode)
  await stage.pass(2000)
  isRefused = false
  const conditionsOf = (name: string) => stage.pod(name)?.status?.conditions ?? []
  const words = new Map(names.map((name) => [name, conditionsOf(name)]))
  assert.match(JSON.stringify(words.get('web-0')), /no licence left/)
  await stage.until(() => stage.world.nodes().length === 8, 3 * minutes)
  for (let i = 0; i < 25; i++) {
    await stage.pass(10_000)
    for (const [name, conditions] of words)
      if ((stage.pod(name)?.spec.nodeName ?? '') === '')
        stage.world.cluster.server.local.patch(
          kinds.pod,
          'default',
          name,
          {
            status: {
              conditions: conditions.map((each) => ({
                ...each,
                lastProbeTime: rfc3339(stage.world.clock.now()),
              })),
            },
          },
          'status',
        )
  }
  await stage.pass(10 * minutes)
  assert.ok(names.every((name) => (stage.pod(name)?.spec.nodeName ?? '') !== ''))
  assert.equal(stage.launched.size, 8)
  assert.deepEqual([stage.events('NodeRefused'), stage.events('NodeUnused')], [[], []])
})

test('RPB-3 a scheduler that refuses for a reason of its own gets few nodes, and the pods run once it allows them', async (t) => {
  let isRefused = true
  const extraFilter = (pod: Pod) =>
    isRefused && pod.metadata.labels?.['licence'] === 'needed' ? 'node(s) have no licence left' : undefined
  const stage = await aStage(t, { cluster: { scheduler: { extraFilter } } })
  for (let i = 0; i < 3; i++)
    stage.aPod(`licensed-${i}`, { cpu: '1', memory: '1Gi' }, { labels: { licence: 'needed' } })
  await stage.start()
  await stage.pass(hours)
  assert.ok(stage.launched.size <= 2 * 3, `${stage.launched.size} nodes in an hour`)
  const [told] = stage.events('NodeRefused', 'Warning')
  assert.match(told ?? '', /no licence left/)
  isRefused = false
  await stage.pass(90 * minutes)
  assert.ok(stage.world.pods().every(({ spec }) => (spec.nodeName ?? '') !== ''))
})

test('RPB-5 nodes that end unused for a cause that nobody knows: two in the first hour', async (t) => {
  // Whatever is launched goes away as soon as it takes pods; the scheduler never gets to it.
  const stage = await aStage(t, {
    cluster: { scheduler: { extraFilter: () => 'node(s) said no' } },
  })
  stage.world.cluster.server.local.subscribe(karpenterKinds.nodeClaim, {
    updated: (claim) => {
      const { name, deletionTimestamp } = claim.metadata
      if (isConditionTrue(claim, 'Initialized') && deletionTimestamp === undefined)
        queueMicrotask(() =>
          stage.world.cluster.server.local.delete(karpenterKinds.nodeClaim, undefined, name),
        )
    },
  })
  stage.aPod('web', onePerNode)
  await stage.start()
  await stage.pass(20 * minutes)
  assert.match(
    stage.events('NodeUnused', 'Warning')[0] ?? '',
    /^Pod\/web: Node .* ended without having run it/,
  )
  await stage.pass(39 * minutes)
  assert.equal(stage.launched.size, 2)
})

test('RPB-46 instances that go before they join, for a cause that nobody knows: ten, then with growing pauses', async (t) => {
  const stage = await aStage(t)
  stage.world.cluster.server.local.subscribe(karpenterKinds.nodeClaim, {
    updated: (claim) => {
      const { name, deletionTimestamp } = claim.metadata
      if (isConditionTrue(claim, 'Launched') && deletionTimestamp === undefined)
        queueMicrotask(() =>
          stage.world.cluster.server.local.delete(karpenterKinds.nodeClaim, undefined, name),
        )
    },
  })
  stage.aPod('web', onePerNode)
  await stage.start()
  await stage.pass(hours)
  assert.ok(stage.launched.size >= 10 && stage.launched.size <= 17, `${stage.launched.size} launches`)
  assert.match(
    stage.events('LaunchesPaused', 'Warning')[0] ?? '',
    /^NodePool\/standard: Many instances .* were gone before they took pods; the next one is launched in \d+ min/,
  )
})

test('RPB-7 a hold is told alike by event, condition, metric, explain and simulate, with its reason and its end', async (t) => {
  const stage = await aStage(t, {
    cluster: { scheduler: { extraFilter: () => 'node(s) have no licence left' } },
  })
  stage.aPod('web', onePerNode)
  await stage.start()
  await stage.pass(30 * minutes)
  const [event = ''] = stage.events('NodeRefused', 'Warning')
  const [end = ''] = /before [\d-]+T[\d:]+Z/.exec(event) ?? []
  assert.notEqual(end, '')
  const isTold = (where: string, text: string) => {
    assert.ok(text.includes(end), `${where}: ${text}`)
    assert.match(text, /no licence left/, where)
  }
  isTold('event', event)
  const pool = stage.world.cluster.server.local.get(karpenterKinds.nodePool, undefined, 'standard')
  isTold('condition', pool?.status?.conditions?.map(({ message }) => message).join('; ') ?? '')
  const series = stage.operator.operator.metrics.heldWorkloads
  assert.deepEqual((await series.get()).values, [{ labels: { nodepool: 'standard' }, value: 1 }])
  const snapshot = await snapshotOf(stage)
  const study = await Study.open(snapshot)
  t.after(() => study.close())
  const pod = stage.pod('web') ?? assert.fail()
  isTold('explain', JSON.stringify(await new PodExplainer(study).explain(pod, { missesMs: 0 })))
  const report = await simulate(snapshot, snapshot)
  assert.equal(report.podsStillWaiting, 1)
})

test('RPB-6 one pod of many is refused: it is told, and nothing is held', async (t) => {
  const extraFilter = (pod: Pod) => (pod.metadata.name === 'web-9' ? 'node(s) said no' : undefined)
  const stage = await aStage(t, { cluster: { scheduler: { extraFilter } } })
  const alike = { generateName: 'web-' }
  for (let i = 0; i < 10; i++) stage.aPod(`web-${i}`, onePerNode, alike)
  await stage.start()
  await stage.pass(30 * minutes)
  assert.match(stage.events('NodeRefused', 'Warning').join('\n'), /Pod\/web-9: .*node\(s\) said no/)
  const launched = stage.launched.size
  stage.aPod('web-10', onePerNode, alike)
  await stage.pass(5 * minutes)
  assert.ok(
    (stage.pod('web-10')?.spec.nodeName ?? '') !== '',
    `${launched} nodes before, and none for another pod`,
  )
})
