import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, kinds, labels } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { aType, createPool } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'
import { tainted, eventMessages } from './disruption-stage.test-support.ts'
import {
  aNodeOf,
  consolidate,
  large,
  openReplacing,
  running,
  small,
  untilBegun,
} from './replacing-stage.test-support.ts'

const { featureGates } = defaultSettings
const balanced = {
  disruption: { consolidationPolicy: 'Balanced' as const },
  settings: { featureGates: { ...featureGates, globalConsolidation: false } },
}

const moves = async (stage: Stage, decision: string, nodepool = 'default') =>
  await stage.metric('consolidation_moves_total', { decision, nodepool, policy: 'Balanced' })
const scores = async (stage: Stage, decision: string, nodepool = 'default') =>
  await stage.metric('consolidation_score', { decision, nodepool, policy: 'Balanced' })

/** Keeps a node from being a candidate. */
function keep(stage: Stage, node: string): void {
  stage.patch(kinds.node, node, { metadata: { annotations: { [annotations.doNotDisrupt]: 'true' } } })
}

test('DIS-134 a move that is worth its disruption is told of on Node and NodeClaim, and counted', async (t) => {
  const stage = await openReplacing(t, balanced)
  await aNodeOf(stage, 'a', large)
  await running(stage, 'p', 'node-a')
  consolidate(stage)
  assert.deepEqual(await untilBegun(stage), ['a'])
  for (const object of ['Node/node-a', 'NodeClaim/a'])
    assert.deepEqual(eventMessages(stage, 'ConsolidationApproved', object), [
      "Score 0.75 reaches the threshold 0.50 (k=2): saves 75.0% of the NodePool's price for 100.0% of its disruption cost",
    ])
  assert.deepEqual([await moves(stage, 'approved'), await moves(stage, 'rejected')], [1, 0])
  assert.deepEqual([await scores(stage, 'approved'), await scores(stage, 'rejected')], [1, 0])
})

test('DIS-134 a move that is not worth its disruption is only counted', async (t) => {
  const stage = await openReplacing(t, { ...balanced, types: [aType('almost', 7), large] })
  await aNodeOf(stage, 'a', large)
  await running(stage, 'p', 'node-a')
  consolidate(stage)
  await stage.pass(minutes)
  assert.deepEqual([tainted(stage), stage.events('ConsolidationApproved')], [[], []])
  assert.deepEqual([await moves(stage, 'approved'), await moves(stage, 'rejected')], [0, 1])
  assert.deepEqual([await scores(stage, 'approved'), await scores(stage, 'rejected')], [0, 1])
})

test('DIS-135 nodes that may not go count in the disruption that a move is weighed against', async (t) => {
  const stage = await openReplacing(t, balanced)
  for (const name of ['a', 'host']) await aNodeOf(stage, name, large)
  keep(stage, 'node-host')
  await running(stage, 'p', 'node-a')
  for (const name of ['q', 'r']) await running(stage, name, 'node-host')
  const ownerReferences = [await stage.daemonSet('agent')]
  await running(stage, 'agent', 'node-host', '100m', { ownerReferences })
  consolidate(stage)
  assert.deepEqual(await untilBegun(stage), ['a'])
  // Two of five: each node counts one, and each pod that has to be moved another.
  for (const text of eventMessages(stage, 'ConsolidationApproved', 'Node/node-a'))
    assert.match(text, /saves 50\.0% .* for 40\.0% /)
  assert.equal(eventMessages(stage, 'ConsolidationApproved', 'Node/node-a').length, 1)
})

test('DIS-169 a set of nodes that one of two pools rejects is counted for both, and the other pool is told', async (t) => {
  const huge = aType('huge', 16)
  const stage = await openReplacing(t, { ...balanced, types: [small, large, huge] })
  const disruption = { consolidateAfter: '0s', budgets: [{ nodes: '100%' }], ...balanced.disruption }
  createPool(stage, aKwokPool('other', { disruption }))
  await stage.pass(2 * seconds)
  const ofOther = { labels: { [labels.nodePool]: 'other' } }
  await aNodeOf(stage, 'a', large)
  await running(stage, 'p', 'node-a', '100m')
  await aNodeOf(stage, 'rest', huge, {}, ofOther)
  await running(stage, 'q', 'node-rest', '15900m')
  keep(stage, 'node-rest')
  const pods = Array.from({ length: 9 }, (_, index) => `r-${index}`)
  await aNodeOf(stage, 'b', large, {}, ofOther)
  for (const pod of pods) await running(stage, pod, 'node-b', '100m')
  consolidate(stage)
  await stage.pass(12 * seconds)
  assert.deepEqual([await moves(stage, 'rejected'), await moves(stage, 'rejected', 'other')], [1, 1])
  assert.equal(await scores(stage, 'rejected', 'other'), 1)
  assert.deepEqual([await scores(stage, 'rejected'), await scores(stage, 'approved', 'other')], [0, 0])
  assert.ok((await scores(stage, 'approved')) >= 1)
  assert.equal(eventMessages(stage, 'ConsolidationApproved', 'NodePool/default').length, 1)
  assert.deepEqual(eventMessages(stage, 'ConsolidationApproved', 'NodePool/other'), [])
})
