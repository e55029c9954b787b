import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clusterId, ExoscaleFixture, nobody, userData } from '../exoscale.test-support.ts'
import type { NodepoolSeed } from '../zone/world.ts'

const poolId = 'b0010000-0000-4000-8000-000000000001'
const nodepoolId = 'b0020000-0000-4000-8000-000000000002'
const nodepoolPath = `/sks-cluster/${clusterId}/nodepool/${nodepoolId}`

function worldWithPools(nodepool: Partial<NodepoolSeed> = {}): ExoscaleFixture {
  const pool = { id: poolId, name: 'batch', type: 'standard.small', size: 2, prefix: 'batch' }
  const workers = { id: nodepoolId, name: 'workers', type: 'standard.medium', size: 2, userData: userData() }
  return new ExoscaleFixture({ seed: { instancePools: [pool], nodepools: [{ ...workers, ...nodepool }] } })
}

test('members of pools run from the start; those with user data join', async () => {
  const world = worldWithPools()
  await world.clock.advance(10_000)
  const { instances } = world.cloud.snapshot()
  assert.deepEqual(
    instances.map(({ type, state, nodeName }) => [type, state, nodeName !== undefined]),
    [
      ['standard.small', 'running', false],
      ['standard.small', 'running', false],
      ['standard.medium', 'running', true],
      ['standard.medium', 'running', true],
    ],
  )
})

test('from instance to pool to nodepool to cluster', async () => {
  const world = worldWithPools()
  const { instances } = await world.ok('GET', '/instance?manager-type=instance-pool')
  const member = instances.at(-1)
  assert.equal(member.manager.type, 'instance-pool')
  const pool = await world.ok('GET', `/instance-pool/${member.manager.id}`)
  assert.deepEqual(pool.manager, { id: nodepoolId, type: 'sks-nodepool' })
  assert.ok(pool.instances.some(({ id }: { id: string }) => id === member.id))
  const [cluster] = (await world.ok('GET', '/sks-cluster'))['sks-clusters']
  assert.equal(cluster.nodepools[0].id, nodepoolId)
  const found = await world.ok('GET', `/instance?manager-id=${poolId}&manager-type=instance-pool`)
  assert.equal(found.instances.length, 2)
})

test('a nodepool scales up and down through its pool', async () => {
  const world = worldWithPools()
  await world.ok('PUT', `${nodepoolPath}:scale`, { size: 4 })
  const during = await world.ok('GET', nodepoolPath)
  assert.deepEqual([during.state, during.size], ['scaling', 4])
  assert.equal((await world.call('PUT', `${nodepoolPath}:scale`, { size: 5 })).status, 409)
  await world.clock.advance(1_000)
  const after = await world.ok('GET', nodepoolPath)
  assert.deepEqual([after.state, after.size], ['running', 4])
  assert.equal(world.cloud.instances().length, 6)
  await world.done('PUT', `${nodepoolPath}:scale`, { size: 1 })
  assert.equal(world.cloud.instances().length, 3)
  assert.equal((await world.call('PUT', `${nodepoolPath}:scale`, { size: -1 })).status, 400)
})

test('named members of a nodepool are evicted, strangers are not', async () => {
  const world = worldWithPools()
  await world.clock.advance(10_000)
  const nodepool = await world.ok('GET', nodepoolPath)
  const { instances } = await world.ok('GET', `/instance-pool/${nodepool['instance-pool'].id}`)
  const evict = (ids: readonly string[]) => world.call('PUT', `${nodepoolPath}:evict`, { instances: ids })
  assert.equal((await evict([nobody])).status, 400)
  assert.equal((await evict([])).status, 400)
  await world.done('PUT', `${nodepoolPath}:evict`, { instances: [instances[0].id] })
  assert.equal((await world.ok('GET', nodepoolPath)).size, 1)
  assert.equal((await world.call('GET', `/instance/${instances[0].id}`)).status, 404)
  const running = [...world.joiner.kubelets.values()].filter((kubelet) => kubelet.isRunning)
  assert.equal(running.length, 1)
})

test('a plain pool scales and evicts', async () => {
  const world = worldWithPools()
  await world.done('PUT', `/instance-pool/${poolId}:scale`, { size: 3 })
  const pool = await world.ok('GET', `/instance-pool/${poolId}`)
  assert.equal(pool.instances.length, 3)
  await world.done('PUT', `/instance-pool/${poolId}:evict`, { instances: [pool.instances[1].id] })
  assert.equal((await world.ok('GET', `/instance-pool/${poolId}`)).size, 2)
  assert.equal((await world.ok('GET', '/instance-pool'))['instance-pools'].length, 2)
  assert.equal((await world.call('GET', `/instance-pool/${nobody}`)).status, 404)
  assert.equal((await world.call('GET', `/sks-cluster/${clusterId}/nodepool/${nobody}`)).status, 404)
})

test('a pool keeps what there was room for', async () => {
  const world = worldWithPools()
  world.cloud.settings.capacity = { 'standard.medium': 3 }
  const ended = await world.done('PUT', `${nodepoolPath}:scale`, { size: 5 })
  assert.deepEqual([ended.state, ended.reason], ['failure', 'unavailable'])
  const after = await world.ok('GET', nodepoolPath)
  assert.deepEqual([after.state, after.size], ['running', 3])
})

test('a quota refuses the growth of a pool', async () => {
  const world = worldWithPools()
  world.cloud.settings.quotas = { instance: 5 }
  assert.equal((await world.call('PUT', `${nodepoolPath}:scale`, { size: 4 })).status, 403)
  assert.equal((await world.ok('GET', nodepoolPath)).state, 'running')
})

test('a pool grows no further than its anti-affinity group', async () => {
  const group = { id: nobody, name: 'spread' }
  const world = new ExoscaleFixture({
    seed: {
      antiAffinityGroups: [group],
      instancePools: [
        { id: poolId, name: 'p', type: 'standard.small', size: 7, antiAffinityGroupIds: [nobody] },
      ],
    },
  })
  const ended = await world.done('PUT', `/instance-pool/${poolId}:scale`, { size: 10 })
  assert.deepEqual([ended.state, ended.reason], ['failure', 'conflict'])
  assert.equal((await world.ok('GET', `/instance-pool/${poolId}`)).size, 8)
})

test('a member deleted on its own makes its pool smaller', async () => {
  const world = worldWithPools()
  const pool = await world.ok('GET', `/instance-pool/${poolId}`)
  await world.done('DELETE', `/instance/${pool.instances[0].id}`)
  assert.equal((await world.ok('GET', `/instance-pool/${poolId}`)).size, 1)
})

test('a seed with an unknown type is refused', () => {
  assert.throws(
    () => worldWithPools({ type: 'standard.enormous' }),
    /unknown instance type standard.enormous/,
  )
})
