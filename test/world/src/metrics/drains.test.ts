/** What is counted of pods that have to leave their node (operations.md 9.1). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import {
  aNodeOf,
  consolidate,
  openReplacing,
  running,
  small,
  untilBegun,
} from '../disruption/replacing-stage.test-support.ts'
import { seconds, Stage } from '../testing/stage.test-support.ts'

const evictions = 'pods_eviction_requests_total'
const drained = 'pods_drained_total'

test('OPS-28 an eviction that a PDB refuses counts with its status, and the node says what holds it', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'default' },
    spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'web' } } },
  })
  await stage.pass(seconds)
  await stage.pod('web-0', 'node-a', { labels: { app: 'web' } })
  const before = stage.now
  stage.delete(kinds.node, 'node-a')
  while ((await stage.metric(evictions)) === 0 && stage.now < before + 10 * seconds) await stage.pass(5)
  assert.equal(await stage.metric(evictions, { code: '429' }), 1)
  assert.equal(await stage.metric(evictions), 1)
  await stage.pass(10 * seconds)
  const [event] = stage.events('FailedDraining')
  assert.deepEqual([event?.type, event?.object], ['Warning', 'Node/node-a'])
  assert.equal(await stage.metric(drained), 0)
})

test('OPS-29 a pod that is evicted in consolidation counts with that reason', async (t) => {
  const featureGates = { ...defaultSettings.featureGates, globalConsolidation: false }
  const stage = await openReplacing(t, { settings: { featureGates } })
  for (const name of ['a', 'b']) await aNodeOf(stage, name, small)
  for (const pod of ['one', 'two']) await running(stage, pod, 'node-a', '100m')
  await running(stage, 'three', 'node-b', '100m')
  consolidate(stage)
  assert.deepEqual(await untilBegun(stage), ['b'])
  await stage.pass(5 * seconds)
  assert.ok(stage.isLeaving('three'))
  assert.equal(await stage.metric(evictions, { code: '200' }), 1)
  assert.equal(await stage.metric(drained, { reason: 'Underutilized' }), 1)
  assert.equal(await stage.metric(drained), 1)
})

test('OPS-30 pods of a node that a user deletes count as leaving by force', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a')
  stage.delete(kinds.node, 'node-a')
  await stage.pass(5 * seconds)
  assert.ok(stage.isLeaving('p'))
  assert.equal(await stage.metric(drained, { reason: 'Forceful Termination' }), 1)
  assert.equal(await stage.metric(drained), 1)
})
