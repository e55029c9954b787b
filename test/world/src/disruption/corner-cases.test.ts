import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, labels } from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { type Logger, silentLogger } from '@tenon/runtime'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { createPool, madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import { reportReady } from '../static-capacity/static-stage.test-support.ts'
import { aKwokPool } from '../world.ts'
import {
  left,
  setBudget,
  setCondition,
  setDisruption,
  setTaint,
  tainted,
} from './disruption-stage.test-support.ts'
import {
  aNodeOf,
  anOversizedNode,
  consolidate,
  joinReplacements,
  large,
  openReplacing,
  running,
  small,
  untilBegun,
} from './replacing-stage.test-support.ts'

/** What keeps claim `slow` from being launched. */
function refuseToLaunch(stage: Stage, name: string): () => void {
  const { onCreate } = stage.cloud
  stage.cloud.onCreate = (claim) => {
    if (claim.metadata.name === name) throw new Error('the cloud takes its time')
    onCreate(claim)
  }
  return () => {
    stage.cloud.onCreate = onCreate
  }
}

describe('while a claim is being launched', () => {
  test('DIS-154 no marks are taken off; a second later than it is there they are', async (t) => {
    const stage = await openReplacing(t)
    await aNodeOf(stage, 'a', small)
    const launch = refuseToLaunch(stage, 'slow')
    await stage.claim('slow')
    setTaint(stage, 'node-a')
    await stage.pass(15 * seconds)
    assert.deepEqual(tainted(stage), ['a'])
    launch()
    await stage.world.clock.advanceUntil(() => stage.state('slow', 'Launched') === 'True/Launched', minutes)
    await stage.pass(1500)
    assert.deepEqual(tainted(stage), [])
  })

  test('DIS-154 a command that was begun before goes on', async (t) => {
    const stage = await anOversizedNode(t)
    consolidate(stage)
    await untilBegun(stage)
    refuseToLaunch(stage, 'slow')
    await stage.claim('slow')
    await joinReplacements(stage)
    await stage.pass(3 * seconds)
    assert.ok(!left(stage).includes('a'))
  })
})

describe('what is remembered of a search that found nothing', () => {
  test('DIS-155 a node that may be removed as empty by then is, on the next pass', async (t) => {
    const stage = await openReplacing(t, { types: [small], disruption: { consolidateAfter: '3m' } })
    await aNodeOf(stage, 'a', small)
    await running(stage, 'p', 'node-a', '1500m')
    await stage.pass(minutes)
    await aNodeOf(stage, 'b', small)
    await stage.pass(2.5 * minutes)
    assert.ok(stage.events('Unconsolidatable').length > 0, 'nothing was looked for')
    assert.equal(stage.state('b', 'Consolidatable'), 'absent')
    await stage.world.clock.advanceUntil(() => stage.state('b', 'Consolidatable') !== 'absent', 5 * minutes)
    await stage.pass(27 * seconds)
    assert.deepEqual(left(stage), ['a'])
  })

  test('DIS-156 nothing, without candidates: the first one is looked at on the next pass', async (t) => {
    const stage = await openReplacing(t, { types: [small], disruption: { consolidateAfter: '2m' } })
    await aNodeOf(stage, 'a', small)
    await running(stage, 'p', 'node-a', '1500m')
    await stage.world.clock.advanceUntil(() => stage.state('a', 'Consolidatable') !== 'absent', 5 * minutes)
    assert.deepEqual(stage.events('Unconsolidatable'), [])
    await stage.pass(11 * seconds)
    assert.ok(stage.events('Unconsolidatable').some(({ object }) => object === 'Node/node-a'))
  })
})

describe('NodePools that launch nothing', () => {
  for (const what of ['is not ready', 'is being deleted'])
    test(`DIS-160 the nodes of one that ${what} are candidates, and get replacements of another one`, async (t) => {
      const stage = await anOversizedNode(t)
      const { apiVersion, kind } = { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass' }
      stage.world.create(kwokNodeClassKind, { apiVersion, kind, metadata: { name: 'spare' }, spec: {} })
      const pool = aKwokPool('spare', { disruption: { consolidateAfter: 'Never' } })
      const nodeClassRef = { ...pool.spec.template.spec.nodeClassRef, name: 'spare' }
      const template = { spec: { ...pool.spec.template.spec, nodeClassRef } }
      createPool(stage, { ...pool, spec: { ...pool.spec, template } })
      consolidate(stage)
      if (what === 'is not ready') await reportReady(stage, 'False')
      else {
        stage.patch(karpenterKinds.nodePool, 'default', { metadata: { finalizers: ['example.com/hold'] } })
        stage.delete(karpenterKinds.nodePool, 'default')
      }
      assert.deepEqual(await untilBegun(stage), ['a'])
      assert.deepEqual(
        madeClaims(stage).map(({ metadata }) => metadata.labels?.[labels.nodePool]),
        ['spare'],
      )
    })

  test('DIS-161 with none that is ready an empty node goes, and the pass ends at the drifted one', async (t) => {
    const told: string[] = []
    const errors: string[] = []
    const logger: Logger = {
      ...silentLogger,
      with: () => logger,
      info: (message) => void told.push(message),
      error: (message, fields) => void errors.push(`${message} ${String(fields?.['error'])}`),
    }
    const stage = await openReplacing(t, { logger })
    for (const name of ['drifted', 'empty', 'oversized']) await aNodeOf(stage, name, large)
    await running(stage, 'on-drifted', 'node-drifted', '5')
    await running(stage, 'on-oversized', 'node-oversized', '1')
    setCondition(stage, 'drifted', 'Drifted')
    stage.cloud.onIsDrifted = ({ metadata }) => (metadata.name === 'drifted' ? 'ImageChanged' : undefined)
    setBudget(stage, '100%')
    await reportReady(stage, 'False')
    consolidate(stage)
    await stage.pass(30 * seconds)
    assert.deepEqual(left(stage), ['drifted', 'oversized'])
    assert.ok(
      told.some((each) => each.includes('no nodepool is ready')),
      told.join(),
    )
    assert.deepEqual(errors, [], 'it is no error')
    assert.deepEqual(stage.events('ConsolidationCandidate'), [])
    assert.ok(!stage.events('Unconsolidatable').some(({ message }) => message.includes('schedule')))
  })
})

test('DIS-162 a drifted node whose pods fit elsewhere does not wait for a node of a pending pod', async (t) => {
  // The provisioner takes its time, so that drift sees the pod first.
  const settings = { batchIdleMs: 5 * minutes, batchMaxMs: 5 * minutes }
  const stage = await openReplacing(t, {
    types: [large],
    settings,
    disruption: { budgets: [{ nodes: '0' }] },
  })
  for (const name of ['a', 'b']) {
    await aNodeOf(stage, name, large)
    await running(stage, `on-${name}`, `node-${name}`)
  }
  stage.cloud.onIsDrifted = ({ metadata }) => (metadata.name === 'a' ? 'ImageChanged' : undefined)
  await stage.pass(6 * minutes)
  waitingPod(stage, 'pending', { cpu: '8' })
  setBudget(stage, '1')
  assert.deepEqual(await untilBegun(stage), ['a'])
  await stage.pass(5 * seconds)
  assert.deepEqual(left(stage), ['b'])
  assert.deepEqual(madeClaims(stage), [])
})

test('DIS-163 a node whose reason for drift changes keeps its place in the order', async (t) => {
  const stage = await openReplacing(t, { types: [small], disruption: { budgets: [{ nodes: '0' }] } })
  const reasons: Record<string, string> = { b: 'One' }
  stage.cloud.onIsDrifted = ({ metadata }) => reasons[metadata.name]
  for (const name of ['b', 'a']) {
    await aNodeOf(stage, name, small)
    await running(stage, `on-${name}`, `node-${name}`, '1500m')
  }
  await stage.pass(6 * minutes)
  reasons['a'] = 'One'
  await stage.pass(6 * minutes)
  reasons['b'] = 'Two'
  await stage.pass(6 * minutes)
  assert.deepEqual([stage.state('a', 'Drifted'), stage.state('b', 'Drifted')], ['True/One', 'True/Two'])
  setBudget(stage, '1')
  assert.deepEqual(await untilBegun(stage), ['b'])
})

test('DIS-174 nodes of a NodePool that is gone, or that another provider serves, are never disrupted', async (t) => {
  const stage = await openReplacing(t)
  const foreign = aKwokPool('foreign', {
    disruption: { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] },
  })
  const nodeClassRef = { group: 'example.com', kind: 'OtherNodeClass', name: 'default' }
  const template = { spec: { ...foreign.spec.template.spec, nodeClassRef } }
  stage.world.create(karpenterKinds.nodePool, { ...foreign, spec: { ...foreign.spec, template } })
  for (const nodePool of ['gone', 'foreign']) {
    await stage.claim(nodePool, {}, { labels: { [labels.nodePool]: nodePool } })
    await stage.join(nodePool)
    await stage.report(`node-${nodePool}`)
    for (const type of ['Consolidatable', 'Drifted']) setCondition(stage, nodePool, type)
  }
  setDisruption(stage, { consolidateAfter: '0s' })
  await stage.pass(2 * minutes)
  assert.deepEqual(left(stage), ['foreign', 'gone'])
  assert.deepEqual(tainted(stage), [])
})
