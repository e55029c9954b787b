import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unboundedGroupSize } from '@tenon/provider'
import { nobody } from '@tenon/simulator-exoscale/fixture'
import {
  aNode,
  aStage,
  batchPoolId,
  nodepoolId,
  scalerKey,
  sksRole,
  type Stage,
  unmanagedRole,
} from './node-groups.test-support.ts'

const quota20 = { settings: { quotas: { instance: 20 } } }

async function firstGroup(stage: Stage, poolId: string) {
  const [node] = stage.nodesOf(poolId)
  assert.ok(node)
  return await stage.groups.groupOf(node, stage.signal)
}

test('CAS-3 a node of a plain pool is in the group of the pool, from 1 to the limit of the quota', async () => {
  const stage = aStage(quota20)
  assert.deepEqual(await firstGroup(stage, batchPoolId), { kind: 'group', groupId: batchPoolId })
  assert.deepEqual(stage.groups.list(), [
    { id: batchPoolId, name: 'batch', minSize: 1, maxSize: 20, targetSize: 2 },
  ])
})

test('CAS-4 a node of an SKS nodepool is in the group of its Instance Pool', async () => {
  const stage = aStage(quota20)
  const { workersId } = stage
  assert.deepEqual(await firstGroup(stage, workersId), { kind: 'group', groupId: workersId })
  assert.deepEqual(stage.groups.group(workersId), {
    id: workersId,
    name: 'workers',
    minSize: 1,
    maxSize: 20,
    targetSize: 2,
  })
})

test('CAS-5 a node of an instance of its own is in no group', async () => {
  const { world, groups, signal } = aStage()
  const created = await world.call('POST', '/instance', world.body(), scalerKey)
  const id: string = created.body.reference.id
  assert.deepEqual(await groups.groupOf(aNode('alone', `exoscale://${id}`), signal), { kind: 'none' })
  assert.deepEqual(groups.list(), [])
})

test('CAS-6 a control plane without provider ID is in no group, any other node cannot be told', async () => {
  const { groups, signal } = aStage()
  const answers = await Promise.all(
    [
      aNode('old', '', 'node-role.kubernetes.io/master'),
      aNode('new', undefined, 'node-role.kubernetes.io/control-plane'),
      aNode('worker'),
    ].map((node) => groups.groupOf(node, signal)),
  )
  assert.deepEqual(answers, [
    { kind: 'none' },
    { kind: 'none' },
    { kind: 'unresolved', reason: 'node worker has no provider ID' },
  ])
})

test('CAS-7 nodes of two pools make two groups, and asking again makes no more', async () => {
  const stage = aStage()
  await stage.discover()
  await stage.groups.refresh(stage.signal)
  await stage.discover()
  assert.deepEqual(
    stage.groups
      .list()
      .map(({ name }) => name)
      .toSorted(),
    ['batch', 'workers'],
  )
})

test('CAS-8 limits of --nodes hold, and the quota is not read', async () => {
  const stage = aStage({ specs: ['2:5:workers'] })
  await firstGroup(stage, stage.workersId)
  const group = stage.groups.group(stage.workersId)
  assert.deepEqual([group?.minSize, group?.maxSize], [2, 5])
  assert.ok(!stage.called().includes('get-quota'))
})

test('--nodes also takes the ids of nodepool and Instance Pool', async () => {
  const { workersId } = aStage()
  const stage = aStage({ specs: [`1:4:${nodepoolId}`, `1:6:${batchPoolId}`] })
  await stage.discover()
  assert.deepEqual([stage.groups.group(workersId)?.maxSize, stage.groups.group(batchPoolId)?.maxSize], [4, 6])
})

test('CAS-11 a malformed value leaves its group out, says why, and others scale', async () => {
  const stage = aStage({ specs: ['0:5:batch', '1:5:workers'] })
  const problem = '--nodes=0:5:batch: the minimum size is 0; it must be at least 1'
  assert.deepEqual(await firstGroup(stage, batchPoolId), {
    kind: 'unresolved',
    groupId: batchPoolId,
    reason: problem,
  })
  await stage.discover()
  assert.deepEqual(
    stage.groups.list().map(({ name }) => name),
    ['workers'],
  )
  assert.deepEqual(await stage.groups.refresh(stage.signal), [{ groupId: batchPoolId, reason: problem }])
  assert.equal(stage.log.filter((line) => line.includes('0:5:batch')).length, 1)
  await assert.rejects(
    stage.groups.increaseSize(batchPoolId, 1, stage.signal),
    /is not known: --nodes=0:5:batch/,
  )
})

test('CAS-12 a pool that is deleted is dropped; one that answers 500 is told and kept, the other goes on', async () => {
  const stage = aStage()
  await stage.discover()
  const { workersId } = stage
  const lift = stage.world.cloud.faults.add({
    operation: 'get-instance-pool',
    rate: 1,
    effect: { kind: 'refuse', status: 500 },
  })
  await assert.rejects(stage.settle(stage.groups.refresh(stage.signal)), {
    name: 'NodeGroupError',
    message: /^no node group can be read: get-instance-pool failed: .*500/,
  })
  assert.equal(stage.groups.list().length, 2)
  lift()
  stage.world.cloud.interventions.deletePool(batchPoolId)
  assert.deepEqual(await stage.settle(stage.groups.refresh(stage.signal)), [])
  assert.deepEqual(
    stage.groups.list().map(({ id }) => id),
    [workersId],
  )
  assert.equal(stage.groups.group(batchPoolId), undefined)
})

test('trap 3: nodes whose instance is gone or foreign are in no group and say why', async () => {
  const { groups, signal } = aStage()
  const answer = (providerId: string) => groups.groupOf(aNode('n', providerId), signal)
  assert.deepEqual(await answer(`exoscale://${nobody}`), {
    kind: 'none',
    reason: `node n: there is no instance ${nobody} in this zone`,
  })
  assert.deepEqual(await answer('aws:///eu-west-1a/i-0'), {
    kind: 'none',
    reason: 'node n: provider ID "aws:///eu-west-1a/i-0" is none of Exoscale',
  })
})

test('a provider ID without the prefix is an instance id, and members keep it', async () => {
  const stage = aStage()
  const [id = ''] = stage.members(batchPoolId)
  assert.equal((await stage.groups.groupOf(aNode('n', id), stage.signal)).kind, 'group')
  const instances = await stage.groups.instances(batchPoolId, stage.signal)
  assert.deepEqual(
    instances.map(({ providerId }) => providerId.startsWith('exoscale://')),
    [false, true],
  )
})

test('trap 4: an unlimited quota bounds no group', async () => {
  const stage = aStage({ settings: { quotas: { instance: -1 } } })
  await firstGroup(stage, batchPoolId)
  assert.equal(stage.groups.list()[0]?.maxSize, unboundedGroupSize)
})

test('a missing right names the operation and does not stop groups that do not need it', async () => {
  const stage = aStage({ operations: unmanagedRole })
  assert.equal((await firstGroup(stage, batchPoolId)).kind, 'group')
  const { workersId } = stage
  const answer = await firstGroup(stage, workersId)
  assert.equal(answer.kind, 'unresolved')
  assert.equal(answer.kind === 'unresolved' && answer.groupId, workersId)
  assert.match(
    answer.kind === 'unresolved' ? answer.reason : '',
    /^list-sks-clusters failed: .*403.*; allow list-sks-clusters in the IAM role of EXOSCALE_API_KEY$/,
  )
})

test('a key that is no longer valid is told with the operation that failed', async () => {
  const stage = aStage({ settings: { expiredKeys: ['EXOscaler'] } })
  const answer = await firstGroup(stage, batchPoolId)
  assert.match(
    answer.kind === 'unresolved' ? answer.reason : '',
    /get-instance failed: .*401.*check EXOSCALE_API_KEY and EXOSCALE_API_SECRET.*allows get-instance$/,
  )
})

test('a loop asks once for each pool, and for no instance that a pool lists', async () => {
  const stage = aStage({ operations: sksRole, seed: manyWorkers })
  await Promise.all(stage.nodesOf(stage.workersId).map((node) => stage.groups.groupOf(node, stage.signal)))
  const first = stage.called()
  assert.ok(first.filter((operation) => operation === 'get-instance').length <= 8)
  await stage.groups.refresh(stage.signal)
  await Promise.all(stage.nodesOf(stage.workersId).map((node) => stage.groups.groupOf(node, stage.signal)))
  assert.deepEqual(stage.called().toSorted(), ['get-instance-pool', 'get-quota', 'list-sks-clusters'])
})

const manyWorkers = {
  nodepools: [{ id: nodepoolId, name: 'workers', type: 'standard.medium', size: 60 }],
}

test('trap 9: a refresh sees the size that somebody else gave a pool', async () => {
  const stage = aStage()
  await stage.discover()
  for (const id of [batchPoolId, stage.workersId]) stage.world.cloud.interventions.resizePool(id, 4)
  assert.deepEqual(await stage.groups.refresh(stage.signal), [])
  assert.deepEqual(
    stage.groups.list().map(({ targetSize }) => targetSize),
    [4, 4],
  )
})

test('a pool that is suspended is told and cannot be scaled', async () => {
  const stage = aStage()
  await stage.discover()
  stage.world.cloud.interventions.setPoolState(batchPoolId, 'suspended')
  assert.deepEqual(await stage.groups.refresh(stage.signal), [
    { groupId: batchPoolId, reason: `instance pool ${batchPoolId} is suspended` },
  ])
})

test('a nodepool that no cluster of the zone has leaves its group out', async () => {
  const stage = aStage()
  const { workersId } = stage
  const [node] = stage.nodesOf(workersId)
  assert.ok(node)
  const lift = stage.world.cloud.faults.add({
    operation: 'list-sks-clusters',
    effect: { kind: 'refuse', status: 200, body: { 'sks-clusters': [] } },
  })
  assert.deepEqual(await stage.groups.groupOf(node, stage.signal), {
    kind: 'unresolved',
    groupId: workersId,
    reason: `nodepool ${nodepoolId} is in no SKS cluster of zone ch-gva-2`,
  })
  lift()
  await stage.groups.refresh(stage.signal)
  assert.equal((await stage.groups.groupOf(node, stage.signal)).kind, 'group')
})
