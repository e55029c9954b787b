import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type ResourceType } from '@tenon/api'
import { hours, minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import {
  left,
  openDisruption,
  setBudget,
  setCondition,
  setDisruption,
  setDrifted,
  tainted,
  eventMessages,
} from './disruption-stage.test-support.ts'

const statefulSetKind: ResourceType = {
  group: 'apps',
  version: 'v1',
  kind: 'StatefulSet',
  plural: 'statefulsets',
  namespaced: true,
}
const closed = { disruption: { budgets: [{ nodes: '0' }] } }
const decisions = 'voluntary_disruption_decisions_total'
const emptied = { decision: 'delete', reason: 'empty', consolidation_type: 'empty' }

test('DIS-56 DIS-62 several nodes without pods go in one command, which is counted as such', async (t) => {
  const stage = await openDisruption(t, closed)
  for (const name of ['a', 'b', 'c']) await stage.ready(name)
  setBudget(stage, '100%')
  await stage.pass(40 * seconds)
  assert.deepEqual(left(stage), [])
  assert.equal(await stage.metric(decisions), 1)
  assert.equal(await stage.metric(decisions, emptied), 1)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'empty' }), 3)
})

test('DIS-58 pods that end leave a node empty, but not those of a StatefulSet', async (t) => {
  const stage = await openDisruption(t, closed)
  const { metadata } = stage.world.create(statefulSetKind, {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db', namespace: 'default' },
    spec: {
      replicas: 0,
      serviceName: 'db',
      selector: { matchLabels: { app: 'db' } },
      template: {
        metadata: { labels: { app: 'db' } },
        spec: { containers: [{ name: 'app', image: 'registry.k8s.io/pause' }] },
      },
    },
  } as never)
  const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: metadata.uid ?? '' }
  const spec = { terminationGracePeriodSeconds: 3600 }
  for (const name of ['plain', 'stateful']) await stage.ready(name)
  await stage.pod('plain', 'node-plain', { spec })
  await stage.pod('stateful', 'node-stateful', { spec, ownerReferences: [owner] })
  for (const name of ['plain', 'stateful'])
    stage.world.cluster.server.local.delete(kinds.pod, 'default', name)
  setBudget(stage, '100%')
  await stage.pass(40 * seconds)
  assert.notEqual(stage.podNow('stateful')?.metadata.deletionTimestamp, undefined)
  assert.deepEqual(left(stage), ['stateful'])
  assert.equal(await stage.metric(decisions, emptied), 1)
})

test('RPT-18 DIS-59 a node is not empty while pods run there, whatever moving them costs', async (t) => {
  const stage = await openDisruption(t, {
    disruption: { ...closed.disruption, consolidationPolicy: 'WhenEmpty' },
  })
  for (const name of ['cheap', 'low', 'none']) await stage.ready(name)
  const annotations = { 'controller.kubernetes.io/pod-deletion-cost': '-2147483647' }
  await stage.pod('cheap', 'node-cheap', { annotations })
  await stage.pod('low', 'node-low', { spec: { priority: -100_000_000 } })
  setBudget(stage, '100%')
  await stage.pass(3 * hours)
  assert.deepEqual(left(stage), ['cheap', 'low'])
  assert.equal(await stage.metric(decisions, emptied), 1)
})

test('DIS-60 without condition Consolidatable, or with status False, an empty node stays', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: '1h' } })
  for (const name of ['absent', 'false']) await stage.ready(name)
  setCondition(stage, 'false', 'Consolidatable', 'Consolidatable', 'False')
  await stage.pass(2 * minutes)
  assert.deepEqual(left(stage), ['absent', 'false'])
  assert.equal(stage.state('absent', 'Consolidatable'), 'absent')
})

test('DIS-61 where nothing is consolidated an empty node stays and is told why, unless it has drifted', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: 'Never' } })
  setDrifted(stage, 'drifted')
  await stage.ready('empty')
  await stage.pass(15 * seconds)
  await stage.ready('drifted')
  await stage.pass(minutes)
  assert.deepEqual(left(stage), ['empty'])
  assert.equal(await stage.metric(decisions), 1)
  assert.equal(await stage.metric(decisions, { reason: 'drifted' }), 1)
  for (const object of ['Node/node-empty', 'NodeClaim/empty'])
    assert.deepEqual(eventMessages(stage, 'Unconsolidatable', object), [
      'Consolidation is disabled (NodePool=default)',
    ])
})

test('DIS-63 a node of a static pool stays, whatever its conditions', async (t) => {
  const stage = await openDisruption(t, { pool: { replicas: 1 } })
  await stage.ready('a')
  for (let i = 0; i < 30; i++) {
    setCondition(stage, 'a', 'Consolidatable')
    await stage.pass(seconds)
  }
  assert.deepEqual(left(stage), ['a'])
  assert.deepEqual(tainted(stage), [])
  assert.equal(await stage.metric(decisions), 0)
})

/** Lets a check of empty nodes begin, which lasts for fifteen seconds. */
async function untilChecked(stage: Stage): Promise<void> {
  setBudget(stage, '100%')
  await stage.pass(11 * seconds)
  assert.deepEqual(tainted(stage), [])
}

test('DIS-65 DIS-66 nodes that get a pod while they are checked stay, and are counted', async (t) => {
  const stage = await openDisruption(t, closed)
  for (const name of ['a', 'b', 'c']) await stage.ready(name)
  const failed = () =>
    stage.metric('voluntary_disruption_failed_validations_total', { consolidation_type: 'empty' })
  await untilChecked(stage)
  await stage.pod('on-a', 'node-a')
  await stage.pass(20 * seconds)
  assert.deepEqual([left(stage), await failed()], [['a'], 1])

  setBudget(stage, '0')
  for (const name of ['d', 'e']) await stage.ready(name)
  await stage.pod('on-a-too', 'node-a')
  await untilChecked(stage)
  for (const name of ['d', 'e']) await stage.pod(`on-${name}`, `node-${name}`)
  await stage.pass(16 * seconds)
  assert.deepEqual(tainted(stage), [])
  assert.equal(await stage.metric(decisions, emptied), 1)
  assert.equal(await failed(), 3)
  // Nothing keeps them once they are empty again.
  setDisruption(stage, { consolidationPolicy: 'WhenEmpty' })
  for (const name of ['d', 'e']) await stage.end(`on-${name}`)
  await stage.pass(40 * seconds)
  assert.deepEqual(left(stage), ['a'])
})
