import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalEntry } from '@tenon/operator'
import {
  anOversizedNode,
  consolidate,
  joinReplacements,
  untilBegun,
} from '../disruption/replacing-stage.test-support.ts'
import { aType, waitingPod } from '../testing/pools.test-support.ts'
import { hours, minutes, seconds, Stage } from '../testing/stage.test-support.ts'

/** A pod without an owner is its own workload. */
const onePod = {
  count: 1,
  names: ['default/p'],
  workloads: [{ namespace: 'default', workload: 'pod/p', pods: 1 }],
}

function journalOf(stage: Stage): readonly JournalEntry[] {
  return [...stage.operator.operator.journal.entries()]
}

test('EXP-7 the journal tells of a node replaced an hour ago, why, by what, and at which prices', async (t) => {
  const stage = await anOversizedNode(t)
  consolidate(stage)
  await untilBegun(stage)
  await stage.pass(10 * seconds)
  await joinReplacements(stage)
  await stage.pass(hours)
  const entries = journalOf(stage).filter(
    ({ nodeClaims, kind }) => nodeClaims.includes('a') && kind !== 'launched' && kind !== 'failure',
  )
  const move = entries.find(({ kind }) => kind === 'move')
  assert.equal(move?.reason, 'Underutilized')
  assert.equal(move.message, 'replace: [node-a] -> [1 replacement]')
  assert.deepEqual([move.nodePool, move.nodes, move.nodeClaims], ['default', ['node-a'], ['a']])
  assert.deepEqual(move.pricePerHour, { before: 0.4, after: 0.1 })
  assert.deepEqual(move.pods, onePod)
  const [successor = ''] = move.replacements ?? []
  assert.deepEqual(
    journalOf(stage)
      .flatMap(({ kind, nodeClaims }) => (nodeClaims.includes(successor) ? [kind] : []))
      .slice(0, 4),
    ['launch', 'launched', 'registered', 'initialized'],
  )
  const removal = entries.find(({ kind }) => kind === 'removal')
  assert.deepEqual([removal?.reason, removal?.pricePerHour], ['Underutilized', { before: 0.4, after: 0 }])
})

test('EXP-7 the journal tells of pods that a node was launched for', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.instanceTypes = [aType('small', 2)]
  waitingPod(stage, 'p')
  await stage.pass(minutes)
  const decision = journalOf(stage).find(({ kind }) => kind === 'decision')
  const launch = journalOf(stage).find(({ kind }) => kind === 'launch')
  assert.deepEqual(decision?.pods, onePod)
  assert.equal(launch?.decision, decision.id)
  assert.deepEqual(launch?.pods, onePod)
  assert.deepEqual(launch?.pricePerHour, { before: 0, after: 0.1 })
})

test('PGE-4 the journal notes every hour what instances cost, and for whom', async (t) => {
  const stage = await anOversizedNode(t)
  await stage.pass(2 * hours + minutes)
  const noted = journalOf(stage).filter(({ kind }) => kind === 'spend')
  const times = noted.map(({ at }) => Date.parse(at))
  assert.ok(times.length >= 3)
  assert.ok(times.slice(1).every((ms, at) => ms - (times[at] ?? 0) <= hours))
  const [spend] = noted.at(-1)?.spend ?? []
  assert.deepEqual([spend?.nodePool, spend?.pricePerHour, spend?.unpriced], ['default', 0.4, 0])
  const [share] = spend?.shares ?? []
  assert.deepEqual([share?.namespace, share?.workload], ['default', 'pod/p'])
  assert.ok((share?.pricePerHour ?? 0) > 0 && (share?.pricePerHour ?? 1) < 0.4)
})

test('PGE-4 with the compatibility mode nothing is noted of what instances cost', async (t) => {
  const stage = await Stage.open(t, { settings: { compatibility: 'karpenter' } })
  await stage.pass(2 * hours)
  assert.deepEqual(
    journalOf(stage).filter(({ kind }) => kind === 'spend'),
    [],
  )
})
