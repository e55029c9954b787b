import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  annotations,
  conditionOf,
  disruptedTaint,
  karpenterKinds,
  kinds,
  labels,
  type NodePool,
  sameTaint,
} from '@tenon/api'
import { minutes, intercepting, seconds, type Stage } from '../testing/stage.test-support.ts'
import { createPool } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'
import { joinAll, openStatic, resize, stayingNames } from './static-stage.test-support.ts'

type Options = Parameters<typeof openStatic>[2]

/** Changes how many nodes of a pool may be disrupted, and lets the next pass happen. */
async function allow(stage: Stage, nodes: string, pool = 'default'): Promise<void> {
  stage.patch(karpenterKinds.nodePool, pool, { spec: { disruption: { budgets: [{ nodes }] } } })
  await stage.pass(11 * seconds)
}

/** A pool whose nodes have all drifted, and may not be disrupted yet; their names. */
async function openDrifted(
  t: TestContext,
  replicas: number,
  options: Options = {},
): Promise<{ readonly stage: Stage; readonly old: readonly string[] }> {
  const disruption = { budgets: [{ nodes: '0' }] }
  const stage = await openStatic(t, replicas, { ...options, pool: { disruption, ...options.pool } })
  const old = await joinAll(stage)
  await drift(stage, old)
  return { stage, old }
}

async function drift(stage: Stage, old: readonly string[]): Promise<void> {
  stage.cloud.onIsDrifted = ({ metadata }) => (old.includes(metadata.name) ? 'ImageChanged' : undefined)
  await stage.pass(6 * minutes)
  for (const name of old) assert.equal(stage.state(name, 'Drifted'), 'True/ImageChanged')
}

/** Numbers of active and deleting claims, and of those whose successor is being created. */
function counts(stage: Stage, pool = 'default'): readonly number[] {
  const { active, deleting, pendingDisruption } = stage.operator.operator.state.poolClaims.of(pool)
  return [active.length, deleting.length, pendingDisruption.length]
}

/** Names of the claims whose nodes are kept free of new pods. */
function tainted(stage: Stage, names: readonly string[]): readonly string[] {
  return names.filter((name) =>
    (stage.nodeNow(`node-${name}`)?.spec?.taints ?? []).some((taint) => sameTaint(taint, disruptedTaint)),
  )
}

test('STA-85 DIS-79 with a budget of two of five, two nodes go once their successors are there', async (t) => {
  const { stage, old } = await openDrifted(t, 5)
  await allow(stage, '2')
  assert.deepEqual(counts(stage), [5, 2, 0])
  const going = tainted(stage, old)
  assert.equal(going.length, 2)
  for (const name of going) {
    assert.equal(stage.state(name, 'DisruptionReason'), 'True/Drifted')
    assert.equal(stage.claimNow(name)?.metadata.deletionTimestamp, undefined)
  }
  assert.equal(stage.events('DisruptionLaunching').length, 2)
  assert.equal(stage.events('DisruptionWaitingReadiness').length, 2)
  await allow(stage, '0')
  await stage.pass(5 * minutes)
  assert.deepEqual(counts(stage), [5, 2, 0])

  await joinAll(stage)
  await stage.pass(10 * seconds)
  assert.deepEqual(counts(stage), [5, 0, 0])
  for (const name of going) assert.equal(stage.claimNow(name), undefined)
  assert.equal(stayingNames(stage).filter((name) => !old.includes(name)).length, 2)
  assert.deepEqual(
    stage
      .events('DisruptionTerminating')
      .map(({ object }) => object)
      .toSorted(),
    going.flatMap((name) => [`Node/node-${name}`, `NodeClaim/${name}`]).toSorted(),
  )
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'drifted' }), 2)
  assert.equal(await stage.metric('nodeclaims_created_total', { reason: 'drifted' }), 2)
})

test('STA-86 DIS-80 nodes are only replaced while the limit has room for a successor', async (t) => {
  const { stage, old } = await openDrifted(t, 3, { pool: { limits: { nodes: '3' } } })
  await allow(stage, '100%')
  await stage.pass(2 * minutes)
  assert.deepEqual([counts(stage), stayingNames(stage)], [[3, 0, 0], old])
  assert.deepEqual(tainted(stage, old), [])

  stage.patch(karpenterKinds.nodePool, 'default', { spec: { limits: { nodes: '4' } } })
  for (let replaced = 0; replaced < 3; replaced++) {
    await stage.pass(30 * seconds)
    assert.deepEqual(counts(stage), [3, 1, 0], `after ${replaced}`)
    assert.equal(stage.world.claims().length, 4)
    await joinAll(stage)
  }
  await stage.pass(30 * seconds)
  assert.deepEqual(counts(stage), [3, 0, 0])
  assert.ok(!stayingNames(stage).some((name) => old.includes(name)))
})

test('RPB-22 drift that limits.nodes forbids is told on the pool, its nodes and claims, with the way out', async (t) => {
  const { stage, old } = await openDrifted(t, 3, { pool: { limits: { nodes: '3' } } })
  await allow(stage, '100%')
  await stage.pass(2 * minutes)
  const rollout = () => conditionOf(stage.poolNow('default') as NodePool, 'RolloutHealthy')
  assert.equal(rollout()?.reason, 'LimitReached')
  assert.match(
    rollout()?.message ?? '',
    /limits\.nodes is 3, and replicas is 3; raise limits\.nodes by one or more/,
  )
  const [event] = stage.events('LimitReached')
  assert.match(event?.message ?? '', /limits\.nodes is 3, and replicas is 3; raise spec\.limits/)
  const told = stage
    .events('DisruptionBlocked')
    .filter(({ message }) => message?.includes('limits.nodes is 3'))
  assert.equal(told.length, 6)
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { limits: { nodes: '4' } } })
  await stage.pass(30 * seconds)
  assert.equal(rollout()?.status, 'True')
  assert.deepEqual(counts(stage), [3, 1, 0])
  assert.equal(old.length, 3)
})

test('DIS-80 DIS-81 so many at a time as the limit has room for, without a limit as the budget allows', async (t) => {
  const limited = await openDrifted(t, 4, { pool: { limits: { nodes: '6' } } })
  await allow(limited.stage, '3')
  assert.deepEqual(counts(limited.stage), [4, 2, 0])
  const free = await openDrifted(t, 4)
  await allow(free.stage, '3')
  assert.deepEqual(counts(free.stage), [4, 3, 0])
})

test('STA-87 DIS-82 while a pool has nodes too many none is replaced', async (t) => {
  let isRejecting = false
  const apiPath = intercepting((method, path) =>
    isRejecting && method === 'DELETE' && path.includes('/nodeclaims/') ? 'error' : 'pass',
  )
  const { stage, old } = await openDrifted(t, 3, { apiPath })
  isRejecting = true
  for (const replicas of [2, 0]) {
    await resize(stage, replicas)
    await allow(stage, '1')
    await stage.pass(2 * minutes)
    assert.deepEqual([counts(stage), tainted(stage, old)], [[3, 0, 0], []], `of ${replicas}`)
  }
  await resize(stage, 2)
  isRejecting = false
  await stage.pass(5 * minutes)
  assert.deepEqual(counts(stage), [2, 1, 0])
  assert.equal(await stage.metric('nodeclaims_created_total', { reason: 'drifted' }), 1)
})

test('STA-88 DIS-84 each pool has its own budget, in the same pass', async (t) => {
  const { stage } = await openDrifted(t, 3)
  createPool(stage, aKwokPool('other', { replicas: 3, disruption: { budgets: [{ nodes: '0' }] } }))
  await stage.pass(2 * seconds)
  const old = await joinAll(stage)
  assert.equal(old.length, 6)
  await drift(stage, old)
  const budget = (nodes: string) => ({ spec: { disruption: { budgets: [{ nodes }] } } })
  stage.patch(karpenterKinds.nodePool, 'other', budget('2'))
  await allow(stage, '1')
  assert.deepEqual(counts(stage), [3, 1, 0])
  assert.deepEqual(counts(stage, 'other'), [3, 2, 0])
  const made = stage.world.claims().filter(({ metadata }) => !old.includes(metadata.name))
  const pools = made.map(({ metadata }) => metadata.labels?.[labels.nodePool] ?? '')
  assert.deepEqual(pools.toSorted(), ['default', 'other', 'other'])
  assert.equal(new Set(made.map(({ metadata }) => metadata.creationTimestamp)).size, 1)
})

test('DIS-83 a node that must not be disrupted is not replaced, whatever its pods', async (t) => {
  const { stage, old } = await openDrifted(t, 3)
  const [kept = '', held = '', free = ''] = old
  const keep = { annotations: { [annotations.doNotDisrupt]: 'true' } }
  stage.patch(kinds.node, `node-${kept}`, { metadata: keep })
  await stage.pod('guard', `node-${held}`, keep)
  await allow(stage, '100%')
  assert.deepEqual(tainted(stage, old), [free])
})

test('the pods of a node that is replaced get no other node than its successor', async (t) => {
  const { stage, old } = await openDrifted(t, 1)
  createPool(stage, aKwokPool('dynamic'))
  const [name = ''] = old
  await stage.pod('app', `node-${name}`, {
    spec: { containers: [{ name: 'app', image: 'i', resources: { requests: { cpu: '3' } } }] },
  })
  await allow(stage, '1')
  await stage.pass(minutes)
  assert.deepEqual(counts(stage), [1, 1, 0])
  assert.equal(stage.world.claims().length, 2)
  await joinAll(stage)
  await stage.pass(10 * seconds)
  assert.ok(stage.isLeaving('app'))
  const series = { nodepool: 'default', reason: 'drifted' }
  assert.equal(await stage.metric('pods_disruption_initiated_total', series), 1)
  await stage.end('app')
  await stage.pass(minutes)
  assert.equal(stage.world.claims().length, 1)
  assert.equal(await stage.metric('nodeclaims_created_total', { nodepool: 'dynamic' }), 0)
})

test('a node stays when its successor does not become one, and the successor goes', async (t) => {
  const { stage, old } = await openDrifted(t, 2)
  await allow(stage, '1')
  const [going = ''] = tainted(stage, old)
  const successor = stayingNames(stage).find((name) => !old.includes(name)) ?? ''
  await allow(stage, '0')
  await stage.pass(9 * minutes)
  assert.deepEqual(tainted(stage, old), [going])
  await stage.pass(minutes)
  assert.deepEqual(tainted(stage, old), [])
  assert.equal(stage.state(going, 'DisruptionReason'), 'absent')
  await stage.pass(minutes)
  assert.deepEqual(stayingNames(stage), old)
  assert.equal(stage.claimNow(successor), undefined)
  assert.deepEqual(counts(stage), [2, 0, 0])
})

test('a node stays when its successor is deleted, which is noticed at once', async (t) => {
  const { stage, old } = await openDrifted(t, 1)
  await allow(stage, '1')
  assert.deepEqual(tainted(stage, old), old)
  await allow(stage, '0')
  const successor = stayingNames(stage).find((name) => !old.includes(name)) ?? ''
  await stage.deleteClaim(successor)
  await stage.pass(10 * seconds)
  assert.deepEqual(tainted(stage, old), [])
  await stage.pass(2 * minutes)
  assert.equal(counts(stage)[1], 0)
  assert.equal(stayingNames(stage).length, 1)
})

test('DIS-172 a node whose successor cannot be created is active again, and no room is lost', async (t) => {
  let isRejecting = false
  let look = (): readonly number[] => []
  const whenRefused: (readonly number[])[] = []
  const apiPath = intercepting((method, path) => {
    if (!isRejecting || method !== 'POST' || !path.endsWith('/nodeclaims')) return 'pass'
    whenRefused.push(look())
    return 'error'
  })
  const { stage, old } = await openDrifted(t, 2, { apiPath, pool: { limits: { nodes: '3' } } })
  isRejecting = true
  look = () => counts(stage)
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { disruption: { budgets: [{ nodes: '1' }] } } })
  await stage.world.clock.advanceUntil(() => whenRefused.length > 0, 11 * seconds)
  assert.deepEqual(whenRefused[0], [1, 0, 1])
  await allow(stage, '0')
  assert.deepEqual(counts(stage), [2, 0, 0])
  assert.deepEqual(tainted(stage, old), [])
  for (const name of old) assert.equal(stage.state(name, 'DisruptionReason'), 'absent')

  // The room is released once the request cannot come true any more.
  isRejecting = false
  await stage.pass(minutes)
  await allow(stage, '1')
  assert.deepEqual(counts(stage), [2, 1, 0])
  await joinAll(stage)
  await allow(stage, '0')
  assert.deepEqual(counts(stage), [2, 0, 0])
})
