import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, disruptedTaint, kinds, labels } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { minutes, intercepting, seconds, type Stage } from '../testing/stage.test-support.ts'
import { createPool } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'
import {
  cpu,
  left,
  LoggedErrors,
  looks,
  openDisruption,
  setBudget,
  setDrifted,
  setTaint,
  tainted,
} from './disruption-stage.test-support.ts'

const { featureGates } = defaultSettings
/** The methods of the reference alone. */
const oneByOne = { settings: { featureGates: { ...featureGates, globalConsolidation: false } } }
const isOpen = { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] }
/** Nobody may go in the first four minutes, and anybody after that; nothing changes then but the time. */
const closedAtFirst = { budgets: [{ nodes: '0', schedule: '0 0 1 1 *', duration: '4m' }] }

/** Lets time pass until the clock shows so long since the world began. */
async function until(stage: Stage, sinceStartMs: number): Promise<void> {
  await stage.pass(Date.parse('2026-01-01T00:00:00Z') + sinceStartMs - stage.now)
}

/** Two nodes so full that neither can take the other's pods, each with two pods. */
async function twoFullNodes(stage: Stage): Promise<void> {
  for (const name of ['a', 'b']) {
    await stage.ready(name)
    for (const pod of [1, 2]) await stage.pod(`${name}${pod}`, `node-${name}`, cpu('1500m'))
  }
}

test('DIS-1 while a claim is not launched nothing is changed, and there is a look every second', async (t) => {
  const stage = await openDisruption(t, { disruption: { budgets: [{ nodes: '0' }] } })
  await stage.ready('a')
  let isOut = true
  stage.cloud.onCreate = () => {
    if (isOut) throw new Error('not now')
  }
  await stage.claim('late')
  setTaint(stage, 'node-a')
  const before = await looks(stage, 'empty')
  await stage.pass(20 * seconds)
  assert.deepEqual(tainted(stage), ['a'])
  assert.equal(await looks(stage, 'empty'), before)
  isOut = false
  await stage.world.clock.advanceUntil(() => stage.state('late', 'Launched') === 'True/Launched', minutes)
  await stage.pass(1100)
  assert.deepEqual(tainted(stage), [])
})

test('DIS-3 a tainted Node that is being deleted keeps its taint', async (t) => {
  const stage = await openDisruption(t, { disruption: { budgets: [{ nodes: '0' }] } })
  await stage.ready('a')
  await stage.pod('held', 'node-a', { annotations: { [annotations.doNotDisrupt]: 'true' } })
  setTaint(stage, 'node-a')
  stage.delete(kinds.node, 'node-a')
  await stage.pass(30 * seconds)
  assert.notEqual(stage.nodeNow('node-a')?.metadata.deletionTimestamp, undefined)
  assert.deepEqual(tainted(stage), ['a'])
})

test('DIS-4 the taint of a node that nobody manages is not touched', async (t) => {
  const stage = await openDisruption(t)
  await stage.join('own', { name: 'own', taints: [disruptedTaint] })
  await stage.report('own')
  await stage.pass(30 * seconds)
  assert.deepEqual(tainted(stage), ['own'])
})

test('DIS-5 of an empty and a drifted node only the empty one goes at first, and the other at once after it', async (t) => {
  const stage = await openDisruption(t, { disruption: { budgets: [{ nodes: '0' }] } })
  setDrifted(stage, 'drifted')
  for (const name of ['drifted', 'empty']) await stage.ready(name)
  await stage.pod('p', 'node-drifted', cpu('3'))
  await stage.pass(minutes)
  assert.equal(stage.state('drifted', 'Drifted'), 'True/ImageChanged')
  setBudget(stage, '100%')
  await stage.world.clock.advanceUntil(() => tainted(stage).length > 0, minutes)
  assert.deepEqual(tainted(stage), ['empty'])
  assert.equal(await stage.metric('voluntary_disruption_decisions_total', { reason: 'drifted' }), 0)
  await stage.pass(seconds)
  assert.equal(await stage.metric('voluntary_disruption_decisions_total', { reason: 'empty' }), 1)
  assert.equal(await stage.metric('voluntary_disruption_decisions_total', { reason: 'drifted' }), 1)
})

test('DIS-6 when there is nothing to do the next pass is in ten seconds', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: '1h' } })
  await stage.ready('a')
  await stage.pass(5 * seconds)
  const before = await looks(stage, 'empty')
  await stage.pass(60 * seconds)
  assert.equal(await looks(stage, 'empty'), before + 6)
})

for (const [gate, types] of [
  ['off', ['multi', 'single']],
  ['on', ['multi']],
] as const)
  test(`DIS-7 when nothing was found consolidation is not tried again for five minutes, global ${gate}`, async (t) => {
    const stage = await openDisruption(t, gate === 'off' ? oneByOne : {})
    await twoFullNodes(stage)
    const bumpedAt = stage.now
    await stage.pass(30 * seconds)
    const all = async () => await Promise.all(types.map((type) => looks(stage, type)))
    const before = await all()
    await stage.pass(bumpedAt + 4 * minutes - stage.now)
    assert.deepEqual(await all(), before)
    await stage.pass(80 * seconds)
    assert.deepEqual(
      await all(),
      before.map((count) => count + 1),
    )
  })

test('DIS-8 the deletion of a pod has the next pass look again', async (t) => {
  const stage = await openDisruption(t, oneByOne)
  await twoFullNodes(stage)
  await stage.pass(30 * seconds)
  const before = await looks(stage, 'single')
  await stage.end('a1')
  await stage.pass(10 * seconds)
  assert.equal(await looks(stage, 'single'), before + 1)
})

test('DIS-9 what only a budget holds back goes when the budget opens, empty or not, of one pool or several', async (t) => {
  for (const pools of [['default'], ['default', 'other']]) {
    const stage = await openDisruption(t, { disruption: closedAtFirst })
    if (pools.length > 1)
      createPool(stage, aKwokPool('other', { disruption: { ...isOpen, ...closedAtFirst } }))
    for (const nodePool of pools) {
      const tags = { labels: { [labels.nodePool]: nodePool } }
      await stage.ready(`${nodePool}-empty`, {}, tags)
      await stage.ready(`${nodePool}-used`, {}, tags)
      await stage.pod(`${nodePool}-pod`, `node-${nodePool}-used`)
    }
    await stage.ready('roomy')
    await stage.pod('stays', 'node-roomy', {
      ...cpu('1500m'),
      annotations: { [annotations.doNotDisrupt]: 'true' },
    })
    const all = left(stage)
    await until(stage, 4 * minutes - seconds)
    assert.deepEqual(left(stage), all)
    // Well before everything is looked at again anyway.
    await until(stage, 4 * minutes + 45 * seconds)
    assert.deepEqual(left(stage), ['roomy'])
  }
})

test('DIS-10 a conflict while taints are taken off is no error, and they are taken off later', async (t) => {
  let refusals = 0
  let isRejecting = false
  const logger = new LoggedErrors()
  const apiPath = intercepting((method, path) => {
    if (!isRejecting || method !== 'PATCH' || !path.endsWith('/nodes/node-a')) return 'pass'
    refusals++
    return 'conflict'
  })
  const stage = await openDisruption(t, { disruption: { budgets: [{ nodes: '0' }] }, apiPath, logger })
  await stage.ready('a')
  isRejecting = true
  setTaint(stage, 'node-a')
  logger.lines.length = 0
  await stage.pass(15 * seconds)
  assert.ok(refusals >= 4, `refused ${refusals} times`)
  assert.deepEqual(tainted(stage), ['a'])
  assert.deepEqual(logger.lines, [])
  isRejecting = false
  await stage.pass(60 * seconds)
  assert.deepEqual(tainted(stage), [])
})
