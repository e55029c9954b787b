import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, karpenterKinds } from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { seconds, Stage } from '../testing/stage.test-support.ts'

const shown = (stage: Stage, type: string) => {
  const pool = stage.poolNow()
  const found = pool && conditionOf(pool, type)
  return `${found?.status}/${found?.reason}`
}

test('STA-113 a pool without its node class is not ready', async (t) => {
  const stage = await Stage.open(t)
  assert.equal(shown(stage, 'Ready'), 'True/Ready')
  stage.patch(kwokNodeClassKind, 'default', { metadata: { finalizers: ['example.com/hold'] } })
  stage.delete(kwokNodeClassKind, 'default')
  await stage.pass(seconds)
  assert.equal(shown(stage, 'NodeClassReady'), 'False/NodeClassTerminating')
  stage.patch(kwokNodeClassKind, 'default', { metadata: { finalizers: null } })
  await stage.pass(seconds)
  assert.equal(shown(stage, 'NodeClassReady'), 'False/NodeClassNotFound')
  assert.equal(shown(stage, 'Ready'), 'False/UnhealthyDependents')
})

test('STA-114 a node class that is unknown or not ready keeps its pool back', async (t) => {
  const stage = await Stage.open(t)
  const report = async (conditions: readonly object[]) => {
    stage.patch(kwokNodeClassKind, 'default', { status: { conditions } }, 'status')
    await stage.pass(seconds)
    return shown(stage, 'NodeClassReady')
  }
  assert.equal(await report([]), 'False/NodeClassReadinessUnknown')
  const condition = {
    type: 'Ready',
    status: 'False',
    reason: 'NoImage',
    message: 'none',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }
  assert.equal(await report([condition]), 'False/NoImage')
})

test('STA-119 a pool that is not valid says why', async (t) => {
  const stage = await Stage.open(t)
  const startupTaints = [{ key: `a/${'b'.repeat(64)}`, effect: 'NoSchedule' }]
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { template: { spec: { startupTaints } } } })
  await stage.pass(seconds)
  assert.equal(shown(stage, 'ValidationSucceeded'), 'False/NodePoolValidationFailed')
  assert.equal(shown(stage, 'Ready'), 'False/UnhealthyDependents')
})

test('STA-116 STA-117 a pool counts its nodes and what they hold', async (t) => {
  const stage = await Stage.open(t)
  await stage.pass(6 * seconds)
  assert.deepEqual(stage.poolNow()?.status?.resources, {
    cpu: '0',
    memory: '0',
    pods: '0',
    'ephemeral-storage': '0',
    nodes: '0',
  })
  assert.equal(stage.poolNow()?.status?.nodes, 0)
  stage.cloud.extras = { capacity: { cpu: '3', memory: '8Gi', pods: '110' } }
  await stage.claim('a')
  await stage.pass(6 * seconds)
  assert.equal(stage.poolNow()?.status?.resources?.['cpu'], '3')
  await stage.join('a')
  await stage.report('node-a')
  await stage.pass(6 * seconds)
  assert.equal(stage.poolNow()?.status?.resources?.['cpu'], '4')
  assert.equal(stage.poolNow()?.status?.nodes, 1)
})

test('STA-115 a pool of a foreign node class is left alone', async (t) => {
  const stage = await Stage.open(t)
  const pool = stage.poolNow()
  if (pool === undefined) throw new Error('no pool')
  const nodeClassRef = { group: 'other.io', kind: 'Other', name: 'x' }
  stage.world.create(karpenterKinds.nodePool, {
    apiVersion: pool.apiVersion,
    kind: pool.kind,
    metadata: { name: 'foreign' },
    spec: {
      ...pool.spec,
      template: { ...pool.spec.template, spec: { ...pool.spec.template.spec, nodeClassRef } },
    },
  })
  await stage.pass(10 * seconds)
  assert.equal(stage.poolNow('foreign')?.metadata.annotations, undefined)
  assert.equal(stage.poolNow('foreign')?.status, undefined)
  assert.equal(stage.poolNow('foreign')?.metadata.generation, 1)
})
