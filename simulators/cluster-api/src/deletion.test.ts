/** How the simulated Cluster API ends Machines. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { budget, ClusterApiFixture } from './cluster-api.test-support.ts'

async function withOneMachine(): Promise<{ readonly world: ClusterApiFixture; readonly name: string }> {
  const world = await ClusterApiFixture.start()
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(60)
  return { world, name: world.onlyMachine().metadata.name }
}

test('a deleted Machine has its Node cordoned and drained, then its machine ended, then its Node deleted', async (t) => {
  const { world, name } = await withOneMachine()
  t.after(() => world.stop())
  world.createPod('app', name)
  await world.seconds(5)
  assert.equal(world.pod('app')?.status?.phase, 'Running')
  world.scale('small', 0)
  await world.seconds(0.5)
  assert.equal(world.node(name)?.spec?.unschedulable, true)
  assert.notEqual(world.pod('app')?.metadata.deletionTimestamp, undefined)
  await world.seconds(3)
  assert.equal(world.pod('app'), undefined)
  assert.notEqual(world.node(name), undefined)
  assert.notEqual(world.machine(name), undefined)
  await world.seconds(6)
  assert.deepEqual([world.machine(name), world.node(name)], [undefined, undefined])
  assert.deepEqual(world.cluster.kubelets.running(), [])
})

test('a budget holds the drain, and the annotation that excludes the Node ends it', async (t) => {
  const { world, name } = await withOneMachine()
  t.after(() => world.stop())
  world.createPod('app', name)
  world.api.create(kinds.podDisruptionBudget, budget('app', 1) as never)
  await world.seconds(5)
  world.scale('small', 0)
  await world.seconds(120)
  assert.equal(world.pod('app')?.metadata.deletionTimestamp, undefined)
  assert.equal(world.machine(name)?.status?.phase, 'Deleting')
  world.annotate(name, { 'machine.cluster.x-k8s.io/exclude-node-draining': '' })
  await world.seconds(10)
  assert.equal(world.machine(name), undefined)
})

test('a drain that takes longer than its timeout is over', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  world.patch('small', { spec: { template: { spec: { deletion: { nodeDrainTimeoutSeconds: 30 } } } } })
  await world.seconds(60)
  const { name } = world.onlyMachine().metadata
  world.createPod('app', name)
  world.api.create(kinds.podDisruptionBudget, budget('app', 1) as never)
  await world.seconds(5)
  world.scale('small', 0)
  await world.seconds(25)
  assert.notEqual(world.machine(name), undefined)
  await world.seconds(15)
  assert.equal(world.machine(name), undefined)
})

test('a Node that others hold outlives its Machine, being deleted', async (t) => {
  const { world, name } = await withOneMachine()
  t.after(() => world.stop())
  world.api.patch(kinds.node, undefined, name, { metadata: { finalizers: ['example.com/held'] } })
  world.scale('small', 0)
  await world.seconds(15)
  assert.equal(world.machine(name), undefined)
  assert.notEqual(world.node(name)?.metadata.deletionTimestamp, undefined)
})

test('a Machine without a provider ID goes without a drain', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(3)
  world.scale('small', 0)
  await world.seconds(8)
  assert.deepEqual(world.machines(), [])
  await world.seconds(60)
  assert.deepEqual(world.nodes(), [])
})

test('a Machine whose finalizer people take away takes machine and Node with it', async (t) => {
  const { world, name } = await withOneMachine()
  t.after(() => world.stop())
  world.scale('small', 0)
  world.deleteMachine(name)
  world.hub.patch(world.kinds.machine, 'default', name, { metadata: { finalizers: null } })
  await world.seconds(1)
  assert.deepEqual([world.machine(name), world.node(name)], [undefined, undefined])
  assert.deepEqual(world.cloud.instances(), [])
})
