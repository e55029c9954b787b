import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ExoscaleFixture } from './exoscale.test-support.ts'

const poolId = 'b0010000-0000-4000-8000-000000000001'
const nodepoolId = 'b0020000-0000-4000-8000-000000000002'

function aWorld(): ExoscaleFixture {
  const world = new ExoscaleFixture({
    seed: {
      instancePools: [{ id: poolId, name: 'batch', type: 'gpua30.small', size: 2, joins: true }],
      nodepools: [
        {
          id: nodepoolId,
          name: 'workers',
          type: 'standard.medium',
          size: 2,
          joins: true,
          labels: { team: 'a' },
          taints: { dedicated: { value: 'b', effect: 'NoSchedule' } },
        },
      ],
    },
  })
  world.announce()
  return world
}

test('members of pools that join have the labels and taints of their nodepool, and of pools none', async () => {
  const world = aWorld()
  world.joiner.token = undefined
  await world.clock.advance(10_000)
  const specs = [...world.joiner.kubelets.values()].map(({ spec }) => spec)
  assert.equal(specs.length, 4)
  const [batch, , worker] = specs
  assert.ok(batch)
  assert.equal(worker?.labels['team'], 'a')
  assert.equal(worker.labels['node.exoscale.net/nodepool-id'], nodepoolId)
  assert.deepEqual(worker.taints[0], { key: 'dedicated', value: 'b', effect: 'NoSchedule' })
  assert.equal(batch?.labels['node.exoscale.net/nodepool-id'], undefined)
  assert.equal(batch.capacity['nvidia.com/gpu'], '1')
  const member = world.cloud.instances()[0]
  assert.equal(batch.providerId, `exoscale://${member?.id ?? ''}`)
})

test('an instance that is put into a state loses its node, and boots again when it runs', async () => {
  const world = aWorld()
  world.joiner.token = undefined
  await world.clock.advance(10_000)
  const [member] = world.cloud.instances()
  assert.ok(member)
  world.cloud.interventions.setInstanceState(member.id, 'error')
  assert.deepEqual([world.look(member.id).state, world.look(member.id).nodeName], ['error', undefined])
  world.cloud.interventions.setInstanceState(member.id, 'running')
  await world.clock.advance(10_000)
  assert.equal(world.look(member.id).nodeName, member.name)
})

test('a pool that somebody else resizes or deletes is so at once', async () => {
  const world = aWorld()
  const { interventions } = world.cloud
  interventions.resizePool(poolId, 5)
  assert.equal((await world.ok('GET', `/instance-pool/${poolId}`)).size, 5)
  interventions.resizePool(poolId, 1)
  assert.equal((await world.ok('GET', `/instance-pool/${poolId}`)).instances.length, 1)
  const [cluster] = (await world.ok('GET', '/sks-cluster'))['sks-clusters']
  const workers = cluster.nodepools[0]['instance-pool'].id
  interventions.deletePool(workers)
  assert.equal((await world.call('GET', `/instance-pool/${workers}`)).status, 404)
  assert.equal(world.cloud.instances().length, 1)
  assert.deepEqual((await world.ok('GET', '/sks-cluster'))['sks-clusters'][0].nodepools, [])
})

test('a pool that is suspended takes no changes', async () => {
  const world = aWorld()
  world.cloud.interventions.setPoolState(poolId, 'suspended')
  assert.equal((await world.call('PUT', `/instance-pool/${poolId}:scale`, { size: 3 })).status, 409)
})
