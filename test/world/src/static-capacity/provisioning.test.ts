import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, conditionOf, karpenterKinds, labels, nodePoolHash } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { createPool, madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'
import {
  isOn,
  joinAll,
  openStatic,
  reportReady,
  resize,
  staying,
  stayingNames,
} from './static-stage.test-support.ts'

test('STA-72 a pool of two gets two claims that say what its template says and nothing of types', async (t) => {
  const stage = await openStatic(t, 2)
  const claims = staying(stage)
  assert.equal(claims.length, 2)
  const pool = stage.poolNow()
  if (pool === undefined) throw new Error('no pool')
  for (const { metadata, spec } of claims) {
    assert.equal(metadata.generateName, 'default-')
    assert.match(metadata.name, /^default-[a-z0-9]{5}$/)
    assert.deepEqual(metadata.annotations?.[annotations.nodePoolHash], nodePoolHash(pool))
    assert.equal(metadata.annotations?.[annotations.nodePoolHashVersion], 'v3')
    assert.equal(metadata.annotations?.[annotations.minValuesRelaxed], undefined)
    assert.deepEqual(metadata.ownerReferences, [
      {
        apiVersion: 'karpenter.sh/v1',
        kind: 'NodePool',
        name: 'default',
        uid: pool.metadata.uid,
        blockOwnerDeletion: true,
      },
    ])
    assert.equal(spec.resources, undefined)
    assert.deepEqual(
      spec.requirements.map(({ key, operator, values }) => [key, operator, values]),
      [
        ['karpenter.kwok.sh/kwoknodeclass', 'In', ['default']],
        [labels.capacityType, 'In', ['on-demand']],
        [labels.nodePool, 'In', ['default']],
        [labels.os, 'In', ['linux']],
      ],
    )
  }
  assert.equal(stage.events('Nominated').length, 0)
  const series = { reason: 'provisioned', nodepool: 'default', min_values_relaxed: 'false' }
  assert.equal(await stage.metric('nodeclaims_created_total', series), 2)
})

test('STA-73 what is missing is made once, however often the pool is looked at', async (t) => {
  const stage = await openStatic(t, 1)
  const [first] = await joinAll(stage)
  await resize(stage, 3)
  assert.equal(staying(stage).length, 3)
  assert.ok(stayingNames(stage).includes(first ?? ''))
  await joinAll(stage)
  const before = stayingNames(stage)
  await reportReady(stage, 'False')
  await reportReady(stage, 'True')
  await stage.pass(10 * minutes)
  assert.deepEqual(stayingNames(stage), before)
  assert.equal(madeClaims(stage).length, 3)
  assert.equal(stage.poolNow()?.status?.nodes, 3)
})

test('STA-74 at the limit nothing is made, and the pool is looked at again after 30 seconds', async (t) => {
  const stage = await openStatic(t, 1, { pool: { limits: { nodes: '1' } } })
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { replicas: 3 } })
  await stage.pass(10)
  assert.equal(staying(stage).length, 1)
  // The limit alone wakes nobody.
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { limits: { nodes: '3' } } })
  await stage.pass(29 * seconds)
  assert.equal(staying(stage).length, 1)
  await stage.pass(2 * seconds)
  assert.equal(staying(stage).length, 3)
})

test('STA-75 a pool of fifteen with a limit of ten has ten nodes', async (t) => {
  const stage = await openStatic(t, 2, { pool: { limits: { nodes: '10' } } })
  await resize(stage, 15)
  await stage.pass(5 * minutes)
  assert.equal(madeClaims(stage).length, 10)
})

test('a node that is going away counts against the limit until it is gone', async (t) => {
  const stage = await openStatic(t, 2, { pool: { limits: { nodes: '2' } } })
  const [first = ''] = await joinAll(stage)
  await stage.pod('kept', `node-${first}`, { annotations: { [annotations.doNotDisrupt]: 'true' } })
  await stage.deleteClaim(first)
  await stage.pass(2 * minutes)
  assert.deepEqual([madeClaims(stage).length, staying(stage).length], [2, 1])
  await stage.end('kept')
  await stage.pass(30 * seconds)
  assert.equal(stage.claimNow(first), undefined)
  assert.equal(staying(stage).length, 2)
})

test('while the cloud has no instances it is asked less and less often, and again at once when it had one', async (t) => {
  const stage = await openStatic(t, 3, { idle: true })
  let isSoldOut = true
  stage.cloud.onCreate = () => {
    if (isSoldOut) throw new ProviderError('insufficientCapacity', 'no instances left')
  }
  await stage.start()
  await stage.pass(2 * minutes)
  assert.equal(stage.cloud.count('create'), 2)
  // After 3 and 9 minutes, with one claim each.
  await stage.pass(8 * minutes)
  assert.equal(stage.cloud.count('create'), 2 + 2)
  isSoldOut = false
  await stage.pass(12 * minutes)
  assert.equal(stage.cloud.instances.length, 3)
  assert.equal(staying(stage).length, 3)
})

test('RPT-27 a static pool without capacity for two hours makes a claim a back-off, and is full within one', async (t) => {
  const stage = await openStatic(t, 3, { idle: true })
  let isSoldOut = true
  stage.cloud.onCreate = () => {
    if (isSoldOut) throw new ProviderError('insufficientCapacity', 'no instances left')
  }
  await stage.start()
  await stage.pass(10 * minutes)
  const before = stage.cloud.count('create')
  await stage.pass(110 * minutes)
  const asked = stage.cloud.count('create') - before
  assert.ok(asked >= 3 && asked <= 5, `asked ${asked} times in 110 min`)
  isSoldOut = false
  await stage.pass(31 * minutes)
  assert.equal(stage.cloud.instances.length, 3)
  assert.equal(staying(stage).length, 3)
})

test('a claim that is deleted is replaced at once, and one that is torn out too', async (t) => {
  const stage = await openStatic(t, 2)
  const [first = '', second = ''] = await joinAll(stage)
  await stage.deleteClaim(first)
  assert.equal(staying(stage).length, 2)
  stage.cloud.lose(`fake://${second}`)
  stage.patch(karpenterKinds.nodeClaim, second, { metadata: { finalizers: null } })
  stage.delete(karpenterKinds.nodeClaim, second)
  await stage.pass(500)
  assert.equal(staying(stage).length, 2)
  assert.ok(!stayingNames(stage).includes(first) && !stayingNames(stage).includes(second))
})

test('STA-77 a pool that is not ready gets no nodes until it is, and gives nodes up all the same', async (t) => {
  const stage = await openStatic(t, 3)
  await joinAll(stage)
  await reportReady(stage, 'False')
  await resize(stage, 5)
  await stage.pass(5 * minutes)
  assert.equal(madeClaims(stage).length, 3)
  await resize(stage, 2)
  assert.equal(staying(stage).length, 2)
  await resize(stage, 4)
  await stage.pass(5 * minutes)
  assert.equal(staying(stage).length, 2)
  await reportReady(stage, 'True')
  assert.equal(staying(stage).length, 4)
})

test('STA-78 a pool that is being deleted gets no nodes and gives none up', async (t) => {
  const stage = await openStatic(t, 3)
  await joinAll(stage)
  stage.patch(karpenterKinds.nodePool, 'default', { metadata: { finalizers: ['example.com/hold'] } })
  stage.delete(karpenterKinds.nodePool, 'default')
  await stage.pass(seconds)
  assert.notEqual(stage.poolNow()?.metadata.deletionTimestamp, undefined)
  await resize(stage, 5)
  await stage.pass(2 * minutes)
  assert.equal(staying(stage).length, 3)
  await resize(stage, 1)
  await stage.pass(2 * minutes)
  assert.equal(staying(stage).length, 3)
})

test('STA-79 claims that an earlier process left must be launched first; later ones hold nothing up', async (t) => {
  const stage = await openStatic(t, 2, { idle: true })
  createPool(stage, aKwokPool('dynamic', { disruption: { consolidateAfter: 'Never' } }))
  let isOut = true
  stage.cloud.onCreate = ({ metadata }) => {
    if (isOut && metadata.name.startsWith('stuck')) throw new Error('try again')
  }
  const elsewhere = { labels: { [labels.nodePool]: 'dynamic' } }
  await stage.claim('stuck-early', {}, elsewhere)
  await stage.start()
  await stage.pass(20 * seconds)
  assert.equal(madeClaims(stage).length, 0)
  isOut = false
  while (stage.state('stuck-early', 'Launched') !== 'True/Launched') await stage.pass(100)
  await stage.pass(1100)
  assert.equal(madeClaims(stage).length, 2)
  isOut = true
  await stage.claim('stuck-late', {}, elsewhere)
  await resize(stage, 3)
  assert.equal(madeClaims(stage).length, 3)
})

test('a static pool makes no node for a pod, and its template is no choice for one', async (t) => {
  const stage = await openStatic(t, 1)
  await joinAll(stage)
  waitingPod(stage, 'hungry', { cpu: '100' })
  await stage.pass(minutes)
  assert.equal(madeClaims(stage).length, 1)
})

test('without the feature gate replicas mean nothing', async (t) => {
  const stage = await Stage.open(t, { pool: { replicas: 2 } })
  await stage.claim('a')
  await stage.pass(5 * minutes)
  assert.deepEqual(
    stage.world.claims().map(({ metadata }) => metadata.name),
    ['a'],
  )
})

test('pools of foreign node classes and dynamic pools get nothing', async (t) => {
  const stage = await Stage.open(t, { settings: isOn })
  const pool = aKwokPool('foreign', { replicas: 2 })
  const { template } = pool.spec
  const nodeClassRef = { group: 'other.io', kind: 'Other', name: 'x' }
  createPool(stage, {
    ...pool,
    spec: { ...pool.spec, template: { ...template, spec: { ...template.spec, nodeClassRef } } },
  })
  await stage.pass(2 * minutes)
  assert.equal(conditionOf(stage.poolNow() ?? pool, 'Ready')?.status, 'True')
  assert.deepEqual(stage.world.claims(), [])
})

test('RPB-13 while nothing that it allows can be launched a static pool makes a claim a pause, and all of them after', async (t) => {
  let isSoldOut = true
  const stage = await openStatic(t, 5, { idle: true })
  stage.cloud.onCreate = () => {
    if (!isSoldOut) return
    throw new ProviderError('insufficientCapacity', 'sold out', {
      offerings: [{ instanceType: 'medium', zone: 'zone-1', capacityType: 'on-demand' }],
    })
  }
  await stage.start()
  await stage.pass(10 * minutes)
  const created = async () => await stage.metric('nodeclaims_created_total', { nodepool: 'default' })
  // The first five were made before anything was known.
  assert.ok((await created()) <= 7, `${await created()} claims in 10 min`)
  await stage.pass(110 * minutes)
  assert.ok((await created()) <= 12, `${await created()} claims in two hours`)
  assert.ok(stage.events('LaunchFailed').some(({ object }) => object === 'NodePool/default'))
  isSoldOut = false
  await stage.pass(31 * minutes)
  assert.equal(stage.cloud.instances.length, 5)
})
