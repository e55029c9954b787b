import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { karpenterKinds, kinds } from '@tenon/api'
import { defaultSettings, type JournalEntry } from '@tenon/operator'
import type { Transport } from '@tenon/runtime'
import { openDisruption, tainted } from '../disruption/disruption-stage.test-support.ts'
import { running } from '../disruption/replacing-stage.test-support.ts'
import { aType, createPool, madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import { hours, minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { aKwokPool } from '../world.ts'
import { launch, remove } from './other-autoscaler.test-support.ts'

const small = aType('small', 2)
const large = aType('large', 8)

/** What the operator has sent to the API server that is no reading. */
function recorder() {
  const writes: string[] = []
  const apiPath = (inner: Transport): Transport => ({
    send: (request, signal) => {
      if (request.method !== 'GET') writes.push(`${request.method} ${request.path}`)
      return inner.send(request, signal)
    },
  })
  return { writes, apiPath }
}

async function anObserver(t: TestContext) {
  const { writes, apiPath } = recorder()
  const stage = await openDisruption(t, { types: [small, large], apiPath, settings: { observeOnly: true } })
  return { stage, writes }
}

const journalOf = (stage: Stage): readonly JournalEntry[] => [...stage.operator.operator.journal.entries()]

/** Without a grace period. */
function deletePod(stage: Stage, name: string): void {
  stage.world.cluster.server.local.delete(kinds.pod, 'default', name, { gracePeriodSeconds: 0 })
}

test('EXP-28 beside another autoscaler, a day passes without a write, and the journal has the moves', async (t) => {
  const { stage, writes } = await anObserver(t)
  launch(stage, 'steady', large)
  await running(stage, 'always', 'node-steady')
  for (let hour = 0; hour < 24; hour++) {
    const pods = [`burst-${hour}-a`, `burst-${hour}-b`]
    for (const pod of pods) waitingPod(stage, pod, { cpu: '4' })
    await stage.pass(2 * minutes)
    launch(stage, `burst-${hour}`, large)
    for (const pod of pods) {
      deletePod(stage, pod)
      await running(stage, `${pod}-runs`, `node-burst-${hour}`, '4')
    }
    await stage.pass(40 * minutes)
    for (const pod of pods) deletePod(stage, `${pod}-runs`)
    remove(stage, `burst-${hour}`)
    await stage.pass(18 * minutes)
  }
  assert.deepEqual(writes, [])
  assert.deepEqual([stage.cloud.count('create'), stage.cloud.count('delete')], [0, 0])
  assert.deepEqual(tainted(stage), [])
  const entries = journalOf(stage)
  assert.ok(entries.every(({ kind, observed }) => observed === true || kind === 'seen' || kind === 'spend'))
  const [move, ...others] = entries.filter(
    ({ kind, nodes }) => kind === 'move' && nodes.includes('node-steady'),
  )
  assert.deepEqual(move?.pricePerHour, { before: 0.4, after: 0.1 })
  assert.equal(move.message, 'replace: [node-steady] -> [1 replacement]')
  // One entry a plan, however often it is decided.
  assert.equal(others.length, 0)
  const launches = entries.filter(({ kind }) => kind === 'launch')
  assert.deepEqual(
    launches.map(({ pods }) => pods?.count),
    // The other pod of each burst fits on node-steady.
    Array.from({ length: 24 }, () => 1),
  )
})

test('EXP-28 a plan ends when its node changes, and the pods that wait are told what would be launched', async (t) => {
  const { stage } = await anObserver(t)
  launch(stage, 'steady', large)
  await running(stage, 'always', 'node-steady')
  waitingPod(stage, 'big', { cpu: '8' })
  await stage.pass(5 * minutes)
  const failure = () => {
    const uid = stage.podNow('big')?.metadata.uid ?? ''
    return stage.operator.operator.state.podDecisions.get(uid).failure
  }
  assert.equal(failure(), 'NodePool default would launch a node for it (large), but is only observed')
  deletePod(stage, 'big')
  waitingPod(stage, 'fits', { cpu: '2' })
  await stage.pass(30 * seconds)
  await running(stage, 'second', 'node-steady')
  await stage.pass(minutes)
  const end = journalOf(stage).find(({ reason }) => reason === 'PlanEnded')
  const move = journalOf(stage).find(({ kind }) => kind === 'move')
  assert.equal(end?.decision, move?.decision)
  assert.match(end?.message ?? '', /does not stand any more: other pods run on node node-steady/)
})

test('EXP-28 a NodePool with tenon.sh/mode: observe launches and loses nothing, and the others go on', async (t) => {
  const stage = await openDisruption(t, { types: [small, large] })
  const disruption = { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] }
  const onlyThere = { metadata: { labels: { team: 'watched' } } }
  const watched = aKwokPool('watched', { disruption })
  createPool(stage, {
    ...watched,
    metadata: { name: 'watched', annotations: { 'tenon.sh/mode': 'observe' } },
    spec: { ...watched.spec, template: { ...watched.spec.template, ...onlyThere } },
  })
  await stage.pass(5 * seconds)
  waitingPod(stage, 'watched', {
    spec: { nodeSelector: { team: 'watched' }, schedulerName: 'by-hand', containers: [app] },
  })
  waitingPod(stage, 'served')
  await stage.pass(30 * seconds)
  assert.deepEqual(
    madeClaims(stage).map(({ metadata }) => metadata.labels?.['karpenter.sh/nodepool']),
    ['default'],
  )
  const told = stage.events('FailedScheduling').find(({ object }) => object === 'Pod/watched')
  assert.match(
    told?.message ?? '',
    /NodePool watched launches nothing: it is only observed \(annotation tenon\.sh\/mode: observe\)/,
  )
  const uid = stage.podNow('watched')?.metadata.uid ?? ''
  assert.match(
    stage.operator.operator.state.podDecisions.get(uid).failure ?? '',
    /^NodePool watched would launch a node for it \(small, large\), but is only observed$/,
  )
  await stage.pass(hours)
  const observed = journalOf(stage).filter((entry) => entry.observed === true)
  assert.deepEqual(
    observed.map(({ kind }) => kind),
    ['decision', 'launch'],
  )
})

test('a mode that is misspelt keeps a NodePool from launching, and is told', async (t) => {
  const stage = await openDisruption(t, { types: [small] })
  stage.patch(karpenterKinds.nodePool, 'default', {
    metadata: { annotations: { 'tenon.sh/mode': 'Observe' } },
  })
  waitingPod(stage, 'p')
  await stage.pass(minutes)
  assert.deepEqual(madeClaims(stage), [])
  const valid = stage.poolNow()?.status?.conditions?.find(({ type }) => type === 'ValidationSucceeded')
  assert.equal(
    valid?.message,
    'metadata.annotations["tenon.sh/mode"]: "Observe" is no mode; use "observe", or remove the annotation',
  )
})

test('nobody observes only unless asked to', () => {
  assert.equal(defaultSettings.observeOnly, false)
})

const app = { name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu: '1' } } }
