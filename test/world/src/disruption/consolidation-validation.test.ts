import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { annotations, kinds } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { waitingPod } from '../testing/pools.test-support.ts'
import { left, setBudget, setDisruption, tainted, eventMessages } from './disruption-stage.test-support.ts'
import {
  anOversizedNode,
  aNodeOf,
  consolidate,
  joinReplacements,
  large,
  openReplacing,
  running,
  small,
} from './replacing-stage.test-support.ts'

const { featureGates } = defaultSettings
/** The methods of the reference alone. */
const oneByOne = { settings: { featureGates: { ...featureGates, globalConsolidation: false } } }

/** Lets time pass until a move is found, so that it waits to be looked at again. */
async function untilFound(stage: Stage): Promise<void> {
  const found = () => stage.events('ConsolidationCandidate').length > 0
  await stage.world.clock.advanceUntil(found, 30 * seconds)
  assert.ok(found())
  await stage.pass(3 * seconds)
}

const failed = async (stage: Stage, type: string) =>
  await stage.metric('voluntary_disruption_failed_validations_total', { consolidation_type: type })

const rejections = (stage: Stage, node = 'node-a') =>
  eventMessages(stage, 'ConsolidationRejected', `Node/${node}`).map((text) =>
    text.replace(/^.*rejected: /, ''),
  )

/** An oversized node for which a replacement is found, and whatever then happens to it. */
async function afterFound(
  t: TestContext,
  happens: (stage: Stage) => unknown,
  waitMs = 15 * seconds,
): Promise<Stage> {
  const stage = await anOversizedNode(t, oneByOne)
  consolidate(stage)
  await untilFound(stage)
  await happens(stage)
  await stage.pass(waitMs - 1 * seconds)
  assert.deepEqual(tainted(stage), [])
  assert.deepEqual(left(stage), ['a'])
  return stage
}

test('DIS-120 a new pod that needs other types than those found calls the move off', async (t) => {
  const stage = await afterFound(t, (each) => running(each, 'more', 'node-a', '1500m'))
  assert.deepEqual(rejections(stage), ['scheduling'])
  assert.equal(await failed(stage, 'single'), 0)
})

test('DIS-120 where nodes must be quiet for a while, a new pod is what calls the move off', async (t) => {
  const stage = await anOversizedNode(t, oneByOne)
  setDisruption(stage, { consolidateAfter: '20s' })
  await untilFound(stage)
  await running(stage, 'more', 'node-a', '1500m')
  await stage.pass(14 * seconds)
  assert.deepEqual(rejections(stage), ['churn'])
  assert.equal(await failed(stage, 'single'), 1)
})

test('DIS-121 a pod that must not be disrupted calls the move off', async (t) => {
  const pinned = { annotations: { [annotations.doNotDisrupt]: 'true' } }
  const stage = await afterFound(t, (each) => running(each, 'pinned', 'node-a', '100m', pinned))
  assert.deepEqual(rejections(stage), ['churn'])
  assert.equal(await failed(stage, 'single'), 1)
})

test('DIS-121 a PDB that allows nothing calls the move off, and counts every node', async (t) => {
  const stage = await openReplacing(t, oneByOne)
  for (const name of ['a', 'b']) {
    await aNodeOf(stage, name, large)
    await running(stage, `on-${name}`, `node-${name}`, '500m', { labels: { app: 'web' } })
  }
  consolidate(stage)
  await untilFound(stage)
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'default' },
    spec: { minAvailable: 2, selector: { matchLabels: { app: 'web' } } },
  })
  await stage.pass(14 * seconds)
  assert.equal(await failed(stage, 'multi'), 2)
  assert.deepEqual([...rejections(stage), ...rejections(stage, 'node-b')], ['churn', 'churn'])
  await stage.pass(2 * minutes)
  assert.deepEqual(left(stage), ['a', 'b'])
})

test('DIS-122 a budget that closes calls the move off', async (t) => {
  const stage = await afterFound(t, (each) => setBudget(each, '0'))
  assert.deepEqual(rejections(stage), ['budget'])
  assert.equal(await failed(stage, 'single'), 1)
})

test('DIS-122 a node that is kept for a waiting pod calls the move off', async (t) => {
  const stage = await afterFound(t, (each) => waitingPod(each, 'waits', { cpu: '500m' }))
  assert.deepEqual(rejections(stage), ['churn'])
  assert.equal(await failed(stage, 'single'), 1)
})

test('DIS-118 after a set of nodes is called off, one of them may go in the same pass', async (t) => {
  const stage = await openReplacing(t, oneByOne)
  for (const name of ['a', 'b']) {
    await aNodeOf(stage, name, large)
    await running(stage, `on-${name}`, `node-${name}`, '500m')
  }
  consolidate(stage)
  await untilFound(stage)
  const pinned = { annotations: { [annotations.doNotDisrupt]: 'true' } }
  await running(stage, 'pinned', 'node-b', '7', pinned)
  // Fifteen seconds for the set, fifteen for the one: no pause between them.
  await stage.pass(28 * seconds)
  assert.equal(await failed(stage, 'multi'), 1 + 1)
  assert.deepEqual(tainted(stage), ['a'])
  await stage.pass(5 * seconds)
  await joinReplacements(stage)
  await stage.pass(5 * seconds)
  const started = { reason: 'underutilized', consolidation_type: 'single' }
  assert.equal(await stage.metric('voluntary_disruption_decisions_total', started), 1)
})

test('a replacement that has become as dear as the node is called off', async (t) => {
  const offerings = small.offerings.map((offering) => ({ ...offering, pricePerHour: 0.4 }))
  const stage = await afterFound(t, (each) => {
    each.cloud.instanceTypes = [{ ...small, offerings }, large]
  })
  assert.deepEqual(rejections(stage), ['price'])
})

test('a replacement that is no longer sold is called off', async (t) => {
  const stage = await afterFound(t, (each) => {
    each.cloud.instanceTypes = [large]
  })
  assert.deepEqual(rejections(stage), ['scheduling'])
})
