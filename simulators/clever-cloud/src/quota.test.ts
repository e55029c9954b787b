/** The quota of the organisation. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf } from '@tenon/api'
import { CleverCloudFixture } from './clever-cloud.test-support.ts'
import { outside } from './control-plane.ts'

/** The quota of a new organisation has room for 16 vCPU and 16 GB beside the control plane. */
const apart = async (world: CleverCloudFixture, names: readonly string[]) => {
  for (const name of names) {
    world.create(name)
    await world.seconds(2)
  }
}

test('an XL is beyond the quota of a new organisation, and says so within a second and without words', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  world.create('a', { flavor: 'XL' })
  await world.seconds(1)
  const group = world.group('a')
  assert.equal(world.brief('a'), 'QuotaExceeded QuotaExceeded')
  assert.equal(group && conditionOf(group, 'ReconcileFailed')?.message, '')
  await world.seconds(300)
  assert.deepEqual([world.nodes(), world.cloud.instances()], [[], []])
  world.delete('a')
  await world.seconds(2)
  assert.equal(world.brief('a'), 'gone')
})

test('groups count their vCPUs and nominal memory until their instances have ended', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  await apart(world, ['a', 'b', 'c', 'd', 'e'])
  assert.deepEqual(
    ['d', 'e'].map((name) => world.brief(name)),
    ['Creating ReconcileInProgress', 'QuotaExceeded QuotaExceeded'],
  )
  assert.deepEqual(world.cloud.quota(), {
    used: { cpu: 40, memoryGb: 40 },
    limit: { cpu: 40, memoryGb: 40 },
  })
  await world.seconds(60)
  world.delete('a')
  await world.seconds(30)
  await apart(world, ['f'])
  assert.equal(world.brief('f'), 'QuotaExceeded QuotaExceeded', 'the instance still runs')
  await world.seconds(6)
  await apart(world, ['g'])
  assert.equal(world.brief('g'), 'Creating ReconcileInProgress')
})

test('an older platform says why it rejects', async (t) => {
  const world = await CleverCloudFixture.start({ settings: { quotaMessage: 'organisation quota reached' } })
  t.after(() => world.stop())
  world.create('a', { flavor: 'XL' })
  await world.seconds(1)
  const group = world.group('a')
  assert.equal(group && conditionOf(group, 'ReconcileFailed')?.message, 'organisation quota reached')
})

test('groups that come together are rejected together, though some of them would fit', async (t) => {
  const together = await CleverCloudFixture.start()
  const alone = await CleverCloudFixture.start({ settings: { evaluatesTogether: false } })
  t.after(() => {
    together.stop()
    alone.stop()
  })
  const phases = async (world: CleverCloudFixture) => {
    const names = ['a', 'b', 'c', 'd', 'e']
    for (const name of names) world.create(name)
    await world.seconds(2)
    return names.map((name) => world.group(name)?.status?.phase)
  }
  assert.deepEqual(
    await phases(together),
    Array.from({ length: 5 }, () => 'QuotaExceeded'),
  )
  const [accepted, rejected] = [Array.from({ length: 4 }, () => 'Creating'), ['QuotaExceeded']]
  assert.deepEqual(await phases(alone), [...accepted, ...rejected])
})

test('a resize beyond the quota leaves the group ready, with the phase of a rejection', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  world.create('a')
  await world.seconds(60)
  world.cloud.resize('a', 5)
  await world.seconds(60)
  assert.equal(world.brief('a'), 'QuotaExceeded Ready QuotaExceeded')
  assert.deepEqual(world.nodes(), ['a-node0'])
  world.cloud.resize('a', 2)
  await world.seconds(60)
  assert.equal(world.brief('a'), 'Synced Ready')
  assert.deepEqual(world.nodes(), ['a-node0', 'a-node1'])
})

test('a group deleted in its first pass may go on counting for minutes', async (t) => {
  const world = await CleverCloudFixture.start({
    controlPlane: { ...outside, counts: { cpu: 0, memoryGb: 0 } },
  })
  t.after(() => world.stop())
  world.cloud.faults.groups.add({ group: 'leaks', effect: { kind: 'leak' } })
  world.create('leaks', { flavor: 'M' })
  world.create('not', { flavor: 'M' })
  await world.seconds(0.5)
  world.delete('leaks')
  world.delete('not')
  await world.seconds(5)
  assert.deepEqual([world.brief('leaks'), world.brief('not')], ['gone', 'gone'])
  assert.deepEqual(world.cloud.quota().used, { cpu: 10, memoryGb: 16 })
  await world.seconds(120)
  assert.deepEqual(world.cloud.quota().used, { cpu: 0, memoryGb: 0 })
})
