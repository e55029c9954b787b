/** What goes wrong in the simulated infrastructure. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf } from '@tenon/api'
import { ClusterApiFixture } from './cluster-api.test-support.ts'
import type { MachineEffect } from './faults.ts'

async function struckBy(effect: MachineEffect): Promise<{ world: ClusterApiFixture; name: string }> {
  const world = await ClusterApiFixture.start()
  world.cloud.faults.add({ times: 1, effect })
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(1)
  return { world, name: world.onlyMachine().metadata.name }
}

test('a Machine never gets a provider ID', async (t) => {
  const { world, name } = await struckBy({ kind: 'neverProvided' })
  t.after(() => world.stop())
  await world.seconds(3_600)
  assert.equal(world.machine(name)?.status?.phase, 'Provisioning')
  assert.deepEqual(world.cloud.instances(), [])
})

test('a Machine gets its provider ID and its Node late', async (t) => {
  const { world, name } = await struckBy({ kind: 'slow', providerIdMs: 600_000, nodeMs: 300_000 })
  t.after(() => world.stop())
  await world.seconds(598)
  assert.equal(world.machine(name)?.spec?.providerID, undefined)
  await world.seconds(4)
  assert.notEqual(world.machine(name)?.spec?.providerID, undefined)
  await world.seconds(295)
  assert.equal(world.node(name), undefined)
  await world.seconds(10)
  assert.notEqual(world.node(name), undefined)
})

for (const version of ['v1beta1', 'v1beta2'] as const)
  test(`the infrastructure of a Machine fails, as ${version} tells it`, async (t) => {
    const world = await ClusterApiFixture.start({ version })
    t.after(() => world.stop())
    const failure = { reason: 'CreateError', message: 'no such image' }
    world.cloud.faults.add({ effect: { kind: 'fails', afterMs: 5_000, ...failure } })
    world.createDeployment('small', { replicas: 1 })
    await world.seconds(60)
    const machine = world.onlyMachine()
    assert.equal(machine.status?.phase, 'Failed')
    assert.equal(machine.spec?.providerID, undefined)
    assert.equal(conditionOf(machine, 'InfrastructureReady')?.message, 'no such image')
    assert.equal(machine.status?.failureReason, version === 'v1beta1' ? 'CreateError' : undefined)
  })

test('the infrastructure has no room for a Machine for a while', async (t) => {
  const { world, name } = await struckBy({ kind: 'noRoom', forMs: 120_000 })
  t.after(() => world.stop())
  await world.seconds(115)
  assert.equal(world.machine(name)?.status?.phase, 'Provisioning')
  await world.seconds(60)
  assert.equal(world.machine(name)?.status?.phase, 'Running')
})

test('beyond the capacity of the infrastructure, Machines wait until there is room', async (t) => {
  const world = await ClusterApiFixture.start({ settings: { mostMachines: 2 } })
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 3 })
  await world.seconds(60)
  assert.deepEqual(world.phases(), { Provisioning: 1, Running: 2 })
  world.deleteMachine(world.machines().find(({ status }) => status?.phase === 'Running')?.metadata.name ?? '')
  await world.seconds(60)
  assert.deepEqual(world.phases(), { Provisioning: 1, Running: 2 })
  world.scale('small', 2)
  await world.seconds(60)
  assert.deepEqual(world.phases(), { Running: 2 })
  world.cloud.settings.mostMachinesOf = new Map([['big', 1]])
  world.cloud.settings.mostMachines = undefined
  world.createDeployment('big', { replicas: 2, template: 'big' })
  await world.seconds(60)
  assert.deepEqual(world.phases('big'), { Provisioning: 1, Running: 1 })
})

test('no Node comes of a machine', async (t) => {
  const { world, name } = await struckBy({ kind: 'neverJoins' })
  t.after(() => world.stop())
  await world.seconds(3_600)
  assert.equal(world.machine(name)?.status?.phase, 'Provisioned')
  assert.deepEqual(world.nodes(), [])
  assert.equal(world.cloud.instances().length, 1)
})

test('a Node never gets ready, and its Machine counts as unhealthy', async (t) => {
  const { world, name } = await struckBy({ kind: 'neverReady' })
  t.after(() => world.stop())
  await world.seconds(600)
  assert.equal(world.machine(name)?.status?.phase, 'Running')
  assert.equal(conditionOf(world.onlyMachine(), 'NodeHealthy')?.status, 'False')
})

test('two Machines get one provider ID', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(60)
  world.cloud.faults.add({ times: 1, effect: { kind: 'duplicateProviderId' } })
  world.scale('small', 2)
  await world.seconds(120)
  const [first, second] = world.machines()
  assert.notEqual(first?.spec?.providerID, undefined)
  assert.equal(first?.spec?.providerID, second?.spec?.providerID)
  assert.equal(world.nodes().length, 2)
})

test('the end of a machine takes longer', async (t) => {
  const { world, name } = await struckBy({ kind: 'slowDeletion', moreMs: 300_000 })
  t.after(() => world.stop())
  await world.seconds(60)
  world.scale('small', 0)
  await world.seconds(300)
  assert.equal(world.machine(name)?.status?.phase, 'Deleting')
  await world.seconds(10)
  assert.equal(world.machine(name), undefined)
})

test('a machine is lost: its Machine fails, its Node is missed, and a new one comes when the Machine goes', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(60)
  const { name } = world.onlyMachine().metadata
  assert.equal(world.cloud.lose('default', 'other'), false)
  assert.equal(world.cloud.lose('default', name), true)
  assert.deepEqual(world.cloud.instances(), [])
  await world.seconds(120)
  assert.equal(world.machine(name)?.status?.phase, 'Failed')
  assert.equal(world.node(name)?.status?.conditions?.find(({ type }) => type === 'Ready')?.status, 'Unknown')
  world.deleteMachine(name)
  await world.seconds(60)
  assert.deepEqual(world.phases(), { Running: 1 })
})
