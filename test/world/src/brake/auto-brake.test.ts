/** When voluntary disruption pauses by itself, and when not (ask.md 8). */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { karpenterKinds, kinds, type ConfigMap } from '@tenon/api'
import { openDisruption, setDrifted, eventMessages } from '../disruption/disruption-stage.test-support.ts'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'

const still = { disruption: { consolidateAfter: 'Never' } }

function brakeOf(stage: Stage): ConfigMap | undefined {
  return stage.world.cluster.server.local.get(kinds.configMap, 'kube-system', 'tenon-brake')
}

/** What ConfigMap and NodePool say that the controller has paused, with the times left out. */
function automatic(stage: Stage): readonly string[] {
  const texts = [
    brakeOf(stage)?.data?.['auto-brake'],
    stage.poolNow()?.metadata.annotations?.['tenon.sh/auto-brake'],
  ]
  return texts.flatMap((text) =>
    text === undefined ? [] : [(JSON.parse(text) as { reason: string }).reason],
  )
}

/** As many nodes, `n0` and so on, with claims of the same names. */
async function fleet(
  t: TestContext,
  count: number,
  options: Parameters<typeof openDisruption>[1] = still,
): Promise<Stage> {
  const stage = await openDisruption(t, options)
  for (let i = 0; i < count; i++) await stage.ready(`n${i}`)
  return stage
}

async function lose(stage: Stage, ...names: readonly string[]): Promise<void> {
  for (const name of names) await stage.report(`node-${name}`, 'Unknown')
}

test('EXP-22 three replacements in a row that fail pause their NodePool for half an hour, once', async (t) => {
  const stage = await openDisruption(t, still)
  stage.cloud.onCreate = ({ metadata }) => {
    if (metadata.name !== 'old') throw new Error('quota exceeded')
  }
  setDrifted(stage, 'old')
  await stage.ready('old')
  await stage.pod('app', 'node-old', {
    spec: { containers: [{ name: 'app', image: 'x', resources: { requests: { cpu: '3' } } }] },
  })
  await stage.world.clock.advanceUntil(() => automatic(stage).length > 0, 180 * minutes)
  assert.deepEqual(automatic(stage), ['3 replacements in a row did not become nodes'])
  const [message] = eventMessages(stage, 'AutoBrake', 'NodePool/default')
  assert.match(message ?? '', /3 replacements in a row .*"tenon resume nodepool\/default"/)
  const tried = stage.cloud.calls.filter(({ call }) => call.startsWith('create')).length
  await stage.restart()
  await stage.pass(20 * minutes)
  const later = stage.cloud.calls.filter(({ call }) => call.startsWith('create')).length
  assert.equal(later, tried, 'nothing is replaced meanwhile')
  assert.equal(eventMessages(stage, 'AutoBrake', 'NodePool/default').length, 1)
})

test('EXP-22 more than a fifth of the Ready nodes lost at once pauses the whole cluster', async (t) => {
  const stage = await fleet(t, 10)
  await lose(stage, 'n0', 'n1')
  await stage.pass(10 * seconds)
  assert.deepEqual(automatic(stage), [])
  await lose(stage, 'n2')
  await stage.pass(31 * seconds)
  assert.deepEqual(automatic(stage), [
    '3 of 10 Ready nodes were lost within 5 min (node-n0, node-n1, node-n2)',
  ])
  setDrifted(stage, 'n9')
  await stage.pass(28 * minutes)
  assert.equal(stage.claimNow('n9')?.metadata.deletionTimestamp, undefined)
  await stage.pass(8 * minutes)
  assert.equal(stage.claimNow('n9'), undefined)
})

test('EXP-22 what was lost once pauses nothing again after somebody has resumed, also in the next process', async (t) => {
  const stage = await fleet(t, 10)
  await lose(stage, 'n0', 'n1', 'n2')
  await stage.pass(31 * seconds)
  const text = brakeOf(stage)?.data?.['auto-brake'] ?? '{}'
  const ended = { ...(JSON.parse(text) as object), until: '2020-01-01T00:00:00Z' }
  stage.patch(
    kinds.configMap,
    'tenon-brake',
    { data: { 'auto-brake': JSON.stringify(ended) } },
    undefined,
    'kube-system',
  )
  await stage.restart()
  await stage.pass(2 * minutes)
  assert.match(brakeOf(stage)?.data?.['auto-brake'] ?? '', /2020-01-01/)
})

test('EXP-22 a process that starts just after the loss counts what its predecessor saw, and more', async (t) => {
  const stage = await fleet(t, 10)
  await lose(stage, 'n0', 'n1')
  await stage.restart()
  await lose(stage, 'n2')
  await stage.pass(31 * seconds)
  assert.equal(automatic(stage).length, 1)
})

test('EXP-22 nodes that stop before their removal is seen are not lost', async (t) => {
  const stage = await fleet(t, 10)
  await lose(stage, 'n0', 'n1', 'n2')
  await stage.pass(5 * seconds)
  for (const name of ['n0', 'n1', 'n2']) stage.delete(karpenterKinds.nodeClaim, name)
  await stage.pass(2 * minutes)
  assert.deepEqual(automatic(stage), [])
})

test('EXP-22 nodes that come back, and losses that lie apart, pause nothing', async (t) => {
  const stage = await fleet(t, 10)
  for (const name of ['n0', 'n1', 'n2', 'n3']) {
    await lose(stage, name)
    await stage.report(`node-${name}`)
  }
  for (const name of ['n5', 'n6', 'n7', 'n8']) {
    await lose(stage, name)
    await stage.pass(4 * minutes)
  }
  assert.deepEqual(automatic(stage), [])
})

test('EXP-22 a person who deletes claims and nodes, or drains, pauses nothing', async (t) => {
  const stage = await fleet(t, 12)
  for (const name of ['n0', 'n1', 'n2']) stage.delete(karpenterKinds.nodeClaim, name)
  for (const name of ['n3', 'n4', 'n5']) stage.delete(kinds.node, `node-${name}`)
  for (const name of ['n6', 'n7', 'n8']) {
    stage.patch(kinds.node, `node-${name}`, { spec: { unschedulable: true } })
  }
  await stage.pass(500)
  for (let i = 0; i < 9; i++) {
    if (stage.nodeNow(`node-n${i}`) !== undefined) await lose(stage, `n${i}`)
  }
  await stage.pass(1 * minutes)
  assert.deepEqual(automatic(stage), [])
})

test('EXP-22 nodes that Tenon removes pause nothing', async (t) => {
  const stage = await fleet(t, 10)
  setDrifted(stage, 'n0', 'n1', 'n2', 'n3', 'n4')
  await stage.pass(10 * minutes)
  assert.ok(stage.world.nodes().length <= 5)
  assert.deepEqual(automatic(stage), [])
})

test('EXP-22 a cluster of nine nodes pauses nothing', async (t) => {
  const stage = await fleet(t, 9)
  await lose(stage, 'n0', 'n1', 'n2', 'n3')
  await stage.pass(1 * minutes)
  assert.deepEqual(automatic(stage), [])
})

for (const settings of [{ autoBrake: false }, { compatibility: 'karpenter' }] as const) {
  test(`EXP-22 nothing pauses by itself with ${JSON.stringify(settings)}`, async (t) => {
    const stage = await fleet(t, 10, { ...still, settings })
    await lose(stage, 'n0', 'n1', 'n2', 'n3')
    await stage.pass(1 * minutes)
    assert.deepEqual(automatic(stage), [])
  })
}
