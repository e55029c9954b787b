/** MachineDeployments on a hub of their own, whose Machines join another cluster. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { createTestApiServer } from '@tenon/devcluster/test-api'
import { SeededRandom, VirtualClock } from '@tenon/runtime'
import { ClusterApiFixture } from './cluster-api.test-support.ts'

test('Machines and all about them are on the hub, Nodes in the workload cluster', async (t) => {
  const clock = new VirtualClock()
  const hub = createTestApiServer({ clock, random: new SeededRandom('hub') })
  const world = await ClusterApiFixture.start({ clock, hub })
  t.after(() => {
    world.stop()
    hub.stop()
  })
  world.createDeployment('small', { replicas: 2 })
  await world.seconds(60)
  assert.deepEqual(world.phases(), { Running: 2 })
  assert.deepEqual(
    world.nodes().map(({ metadata }) => metadata.name),
    world.machines().map(({ metadata }) => metadata.name),
  )
  assert.deepEqual(hub.local.list(kinds.node), [])
  const served = world.api.definitions().filter(({ group }) => group === 'cluster.x-k8s.io')
  assert.deepEqual(served, [])
  world.scale('small', 0)
  await world.seconds(20)
  assert.deepEqual([world.machines(), world.nodes()], [[], []])
})
