/** The process ends at any moment, and the next one goes on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CleverCloudFixture } from './clever-cloud.test-support.ts'
import { inside } from './control-plane.ts'

test('nodes go on after a restart, those that were to come still come, and those that were to go still go', async (t) => {
  const before = await CleverCloudFixture.start({ controlPlane: inside })
  before.create('ready')
  await before.seconds(60)
  before.create('going')
  await before.seconds(60)
  before.create('rejected', { flavor: 'XL' })
  await before.seconds(2)
  before.create('coming')
  before.delete('going')
  await before.seconds(0.5)
  before.create('fresh')
  before.cloud.faults.groups.add({ effect: { kind: 'refuse', reason: 'Never' } })
  await before.seconds(0.7)
  const uuid = before.node('ready-node0')?.status?.nodeInfo?.['systemUUID']
  const after = await before.killedAfter(before.revision)
  t.after(() => after.stop())
  const running = () => after.cluster.kubelets.running()
  await after.seconds(0.1)
  const controlPlane = ['control-plane-node0', 'control-plane-node1', 'control-plane-node2']
  assert.deepEqual(running(), [...controlPlane, 'going-node0', 'ready-node0'])
  assert.equal(after.node('ready-node0')?.status?.nodeInfo?.['systemUUID'], uuid)
  await after.seconds(60)
  assert.deepEqual(running(), ['coming-node0', ...controlPlane, 'fresh-node0', 'ready-node0'])
  assert.deepEqual(after.nodes(), running())
  assert.deepEqual(
    ['ready', 'coming', 'fresh', 'going', 'rejected'].map((name) => after.brief(name)),
    ['Synced Ready', 'Synced Ready', 'Synced Ready', 'gone', 'QuotaExceeded QuotaExceeded'],
  )
})

test('a node whose group vanished at the very end of the last run is deleted', async (t) => {
  const before = await CleverCloudFixture.start()
  before.create('a')
  await before.seconds(60)
  const { revision } = before
  before.cloud.vanish('a')
  // The finalizer goes with the first write, the group with the second, and then its Node.
  const after = await before.killedAfter(revision + 2)
  t.after(() => after.stop())
  assert.deepEqual([after.brief('a'), after.nodes()], ['gone', []])
})
