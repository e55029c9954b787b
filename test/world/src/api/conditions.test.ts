/** Conditions of NodePools and claims as the controllers write them (api.md 8). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, karpenterKinds, kinds } from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { rfc3339 } from '@tenon/runtime'
import { minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'
import { setCondition } from '../disruption/disruption-stage.test-support.ts'
import { createPool } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'

function poolState(stage: Stage, type: string, name = 'default'): string {
  const pool = stage.poolNow(name)
  const found = pool && conditionOf(pool, type)
  return found === undefined ? 'absent' : `${found.status}/${found.reason}`
}

test('API-79 every dependent of an edited pool is brought to the new generation', async (t) => {
  const stage = await Stage.open(t)
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { weight: 7 } })
  await stage.pass(seconds)
  const { metadata, status } = stage.poolNow() ?? {}
  assert.equal(metadata?.generation, 2)
  for (const type of ['Ready', 'ValidationSucceeded', 'NodeClassReady']) {
    const { observedGeneration } = status?.conditions?.find((each) => each.type === type) ?? {}
    assert.equal(observedGeneration, 2, type)
  }
  assert.equal(poolState(stage, 'Ready'), 'True/Ready')
})

test('API-82 NodeClassReady tells whether the node class is missing, ending, unknown or not ready', async (t) => {
  const stage = await Stage.open(t)
  const report = async (status: string, reason: string) => {
    const condition = { type: 'Ready', status, reason, message: 'm', lastTransitionTime: rfc3339(stage.now) }
    stage.patch(kwokNodeClassKind, 'default', { status: { conditions: [condition] } }, 'status')
    await stage.pass(seconds)
    return poolState(stage, 'NodeClassReady')
  }
  assert.equal(await report('False', 'NoImage'), 'False/NoImage')
  assert.equal(await report('Unknown', 'Checking'), 'False/NodeClassReadinessUnknown')
  stage.patch(kwokNodeClassKind, 'default', { metadata: { finalizers: ['example.com/hold'] } })
  stage.delete(kwokNodeClassKind, 'default')
  await stage.pass(seconds)
  assert.equal(poolState(stage, 'NodeClassReady'), 'False/NodeClassTerminating')
  stage.patch(kwokNodeClassKind, 'default', { metadata: { finalizers: null } })
  await stage.pass(seconds)
  assert.equal(poolState(stage, 'NodeClassReady'), 'False/NodeClassNotFound')
})

/** A claim whose instance never joins. */
async function fail(stage: Stage, name: string): Promise<void> {
  await stage.claim(name)
  await stage.pass(15 * minutes + seconds)
}

test('API-83 API-85 API-113 two failures make a pool unhealthy but not unready; a new node class starts over', async (t) => {
  const stage = await Stage.open(t)
  const health = () => poolState(stage, 'NodeRegistrationHealthy')
  await fail(stage, 'a')
  assert.equal(health(), 'Unknown/AwaitingReconciliation')
  await fail(stage, 'b')
  assert.equal(health(), 'False/RegistrationFailed')
  assert.equal(poolState(stage, 'Ready'), 'True/Ready')
  stage.patch(kwokNodeClassKind, 'default', { spec: { nodeRegistrationDelay: '1s' } })
  await stage.pass(seconds)
  assert.equal(health(), 'Unknown/AwaitingReconciliation')
  await fail(stage, 'c')
  assert.equal(health(), 'Unknown/AwaitingReconciliation')
  await fail(stage, 'd')
  assert.equal(health(), 'False/RegistrationFailed')
  for (const name of ['e', 'f', 'g']) await stage.ready(name)
  assert.equal(health(), 'True/NodeRegistrationHealthy')
})

test('API-84 a node class of a new generation makes registration health Unknown, and is noted', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  assert.equal(poolState(stage, 'NodeRegistrationHealthy'), 'True/NodeRegistrationHealthy')
  assert.equal(stage.poolNow()?.status?.nodeClassObservedGeneration, 1)
  stage.patch(kwokNodeClassKind, 'default', { spec: { nodeRegistrationDelay: '1s' } })
  await stage.pass(seconds)
  assert.equal(poolState(stage, 'NodeRegistrationHealthy'), 'Unknown/AwaitingReconciliation')
  assert.equal(stage.poolNow()?.status?.nodeClassObservedGeneration, 2)
})

test('API-86 of a launch error of 500 bytes the first 300 are told', async (t) => {
  const told = {
    ['x'.repeat(500)]: `${'x'.repeat(300)}...`,
    // Three bytes each; the last one would not be whole.
    [`x${'語'.repeat(166)}y`]: `x${'語'.repeat(99)}...`,
    [`${'x'.repeat(298)}é`]: `${'x'.repeat(298)}é...`,
    [`${'x'.repeat(297)}é`]: `${'x'.repeat(297)}é`,
  }
  for (const [message, expected] of Object.entries(told)) {
    const stage = await Stage.open(t)
    stage.cloud.onCreate = () => {
      throw new Error(message)
    }
    await stage.claim('a')
    assert.equal(stage.state('a', 'Launched'), 'Unknown/LaunchFailed')
    assert.equal(stage.condition('a', 'Launched')?.message, expected)
  }
})

test('API-87 a claim says what it waits for: startup taints, then ephemeral ones, then resources', async (t) => {
  const stage = await Stage.open(t)
  const boot = { key: 'boot', effect: 'NoSchedule' } as const
  const readiness = { key: 'readiness.k8s.io/foo', effect: 'NoSchedule' } as const
  await stage.claim('a', { startupTaints: [boot], resources: { requests: { 'nvidia.com/gpu': '1' } } })
  await stage.join('a')
  stage.patch(kinds.node, 'node-a', { spec: { taints: [boot, readiness] } })
  await stage.report('node-a', 'True', { 'nvidia.com/gpu': '0' })
  assert.equal(stage.state('a', 'Initialized'), 'Unknown/StartupTaintsExist')
  stage.patch(kinds.node, 'node-a', { spec: { taints: [readiness] } })
  await stage.pass(seconds)
  assert.equal(stage.state('a', 'Initialized'), 'Unknown/KnownEphemeralTaintsExist')
  stage.patch(kinds.node, 'node-a', { spec: { taints: null } })
  await stage.pass(seconds)
  assert.equal(stage.state('a', 'Initialized'), 'Unknown/ResourceNotRegistered')
})

test('API-89 a status write that meets a conflict starts from the stored conditions and keeps them all', async (t) => {
  let refusals = 0
  const apiPath = intercepting((method, path) => {
    if (method !== 'PATCH' || !path.includes('/nodepools/default/status') || refusals === 0) return 'pass'
    refusals--
    const at = rfc3339(stage.now)
    const others = stage.poolNow()?.status?.conditions ?? []
    const mine = { type: 'Mine', status: 'True', reason: 'Mine', message: '', lastTransitionTime: at }
    const conditions = [mine, ...others.filter(({ type }) => type !== 'Mine')]
    stage.patch(karpenterKinds.nodePool, 'default', { status: { conditions } }, 'status')
    return 'conflict'
  })
  const stage: Stage = await Stage.open(t, { apiPath })
  refusals = 2
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { weight: 7 } })
  await stage.pass(30 * seconds)
  assert.equal(refusals, 0)
  const types = (stage.poolNow()?.status?.conditions ?? []).map(({ type }) => type).toSorted()
  assert.deepEqual(types, [
    'Mine',
    'NodeClassReady',
    'NodeRegistrationHealthy',
    'Ready',
    'RolloutComplete',
    'ValidationSucceeded',
  ])
  assert.equal(poolState(stage, 'Ready'), 'True/Ready')
  assert.equal(
    stage.poolNow()?.status?.conditions?.find(({ type }) => type === 'Ready')?.observedGeneration,
    2,
  )
})

test('API-90 setting one condition of a claim that is deleted brings all to its generation', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a')
  setCondition(stage, 'a', 'Drifted')
  await stage.deleteClaim('a')
  await stage.pass(seconds)
  const { metadata, status } = stage.claimNow('a') ?? {}
  assert.equal(stage.state('a', 'Drained'), 'Unknown/Draining')
  assert.ok((metadata?.generation ?? 0) > 1)
  for (const { type, observedGeneration } of status?.conditions ?? [])
    assert.equal(observedGeneration, metadata?.generation, type)
})

test('API-95 API-105 a pool counts what is not marked for deletion, and always the five resources', async (t) => {
  const stage = await Stage.open(t)
  await stage.pass(6 * seconds)
  const always = ['cpu', 'memory', 'pods', 'ephemeral-storage', 'nodes']
  const resources = () => stage.poolNow()?.status?.resources ?? {}
  assert.deepEqual(Object.keys(resources()).toSorted(), always.toSorted())
  for (const name of ['a', 'b']) await stage.ready(name)
  await stage.report('node-b', 'True', { cpu: '6' })
  await stage.pass(6 * seconds)
  assert.deepEqual([stage.poolNow()?.status?.nodes, resources()['cpu']], [2, '10'])
  await stage.pod('p', 'node-a')
  await stage.deleteClaim('a')
  await stage.pass(6 * seconds)
  assert.notEqual(stage.claimNow('a'), undefined)
  assert.equal(stage.poolNow()?.status?.nodes, 1)
  assert.deepEqual(
    always.map((name) => resources()[name]),
    ['6', '8Gi', '110', '0', '1'],
  )
})

test('API-76 a pool without its node class names NodeClassReady as the cause', async (t) => {
  const stage = await Stage.open(t)
  const { template } = aKwokPool().spec
  const nodeClassRef = { ...template.spec.nodeClassRef, name: 'missing' }
  createPool(
    stage,
    aKwokPool('bare', { template: { ...template, spec: { ...template.spec, nodeClassRef } } }),
  )
  await stage.pass(2 * seconds)
  const pool = stage.poolNow('bare')
  const ready = pool && conditionOf(pool, 'Ready')
  assert.deepEqual([ready?.status, ready?.reason], ['False', 'UnhealthyDependents'])
  assert.equal(ready?.message, 'NodeClassReady=False')
})

test('claims and pools as older schemas stored them are served: conditions without reason, endless durations', async (t) => {
  const expireAfter = '9999999999h'
  const { template } = aKwokPool().spec
  const pool = { template: { ...template, spec: { ...template.spec, expireAfter } } }
  const stage = await Stage.open(t, { idle: true, pool })
  await stage.claim('a', { expireAfter })
  const bare = (type: string) => ({ type, status: 'Unknown', lastTransitionTime: rfc3339(stage.now) })
  const conditions = ['Launched', 'Registered', 'Initialized', 'Ready'].map(bare)
  stage.patch(karpenterKinds.nodeClaim, 'a', { status: { conditions } }, 'status')
  await stage.start()
  await stage.join('a')
  await stage.report('node-a')
  assert.equal(stage.state('a', 'Ready'), 'True/Ready')
  await stage.pass(60 * minutes)
  assert.equal(stage.claimNow('a')?.metadata.deletionTimestamp, undefined)
})
