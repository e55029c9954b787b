/** The process ends at any moment, and the next one goes on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClusterApiFixture } from './cluster-api.test-support.ts'

test('after a restart Nodes go on, Machines that were to come still come, and those that were to go still go', async (t) => {
  const before = await ClusterApiFixture.start()
  before.createDeployment('ready', { replicas: 2 })
  before.createDeployment('going', { replicas: 1 })
  await before.seconds(60)
  before.createDeployment('coming', { replicas: 1 })
  before.scale('going', 0)
  await before.seconds(3)
  before.createDeployment('fresh', { replicas: 1 })
  const [first] = before.machines('ready').map(({ metadata }) => metadata.name)
  const uuid = before.node(first ?? '')?.status?.nodeInfo?.['systemUUID']
  const names = before.machines('coming').map(({ metadata }) => metadata.name)
  const after = await before.killedAfter(before.revision)
  t.after(() => after.stop())
  await after.seconds(6)
  assert.deepEqual(after.phases('going'), {})
  await after.seconds(60)
  assert.deepEqual(
    [after.phases('ready'), after.phases('coming'), after.phases('fresh')],
    [{ Running: 2 }, { Running: 1 }, { Running: 1 }],
  )
  assert.deepEqual(
    after.machines('coming').map(({ metadata }) => metadata.name),
    names,
  )
  assert.equal(after.node(first ?? '')?.status?.nodeInfo?.['systemUUID'], uuid)
  assert.deepEqual(
    after.cluster.kubelets.running(),
    after.nodes().map(({ metadata }) => metadata.name),
  )
})

test('a Node whose Machine went at the very end of the last run is deleted', async (t) => {
  const before = await ClusterApiFixture.start()
  before.createDeployment('small', { replicas: 0 })
  before.createDeployment('other', { replicas: 1 })
  await before.seconds(60)
  const { name } = before.onlyMachine().metadata
  before.scale('other', 0)
  await before.seconds(1)
  const { revision } = before
  before.hub.patch(before.kinds.machine, 'default', name, { metadata: { finalizers: null } })
  const after = await before.killedAfter(revision + 1)
  t.after(() => after.stop())
  assert.equal(after.machine(name), undefined)
  await after.seconds(1)
  assert.deepEqual(after.nodes(), [])
})
