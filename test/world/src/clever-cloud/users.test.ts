/** What users of Clever Cloud do beside Tenon. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, labels } from '@tenon/api'
import { nodeGroupKind, ownNames } from '@tenon/provider-clever-cloud'
import { aPool, CleverStage, minutes, plenty, seconds } from './stage.test-support.ts'

const steady = aPool(['2XS', 'XS'], { disruption: { consolidateAfter: 'Never' } })

test('a user resizes a group: further nodes are not managed, and an event tells the fix', async (t) => {
  const stage = await CleverStage.open(t, { pool: steady, cleverCloud: { settings: { quota: plenty } } })
  stage.deploy('web', 1)
  assert.ok(await stage.until(() => stage.allRun(1), 5 * minutes))
  const name = stage.groups()[0]?.metadata.name ?? ''
  stage.platform.resize(name, 3)
  assert.ok(await stage.until(() => stage.nodes().length === 3, 3 * minutes))
  await stage.pass(5 * minutes)
  assert.ok(stage.events().includes(`NodeGroupExternallyResized NodeGroup/${name}`))
  const stamped = stage.nodes().filter(({ spec }) => (spec?.providerID ?? '') !== '')
  assert.deepEqual(
    stamped.map(({ metadata }) => metadata.name),
    [`${name}-node0`],
  )
  for (const { metadata } of stage.nodes())
    assert.equal(
      metadata.labels?.[labels.nodePool],
      metadata.name === `${name}-node0` ? 'default' : undefined,
    )
  // Everything else goes on.
  stage.deploy('more', 1, { cpu: '5', memory: '1Gi' })
  assert.ok(await stage.until(() => stage.allRun(2), 5 * minutes))
  assert.equal(stage.world.claims().length, 2)
})

test('a user deletes a group by hand: its pods get another node', async (t) => {
  const stage = await CleverStage.open(t, { pool: steady })
  stage.deploy('web', 1)
  assert.ok(await stage.until(() => stage.allRun(1), 5 * minutes))
  const name = stage.groups()[0]?.metadata.name ?? ''
  stage.world.cluster.server.local.delete(nodeGroupKind, undefined, name)
  const isReplaced = () =>
    stage.allRun(1) && stage.groups().length === 1 && stage.groups()[0]?.metadata.name !== name
  assert.ok(await stage.until(isReplaced, 20 * minutes))
  // The operator asks every five seconds whether the instance of a claim is gone.
  await stage.pass(5 * seconds)
  assert.ok(stage.world.claims().every(({ metadata }) => metadata.name !== name))
})

test('a group that vanishes before its node is there is found out within minutes', async (t) => {
  const stage = await CleverStage.open(t, { pool: steady })
  stage.platform.faults.groups.add({ effect: { kind: 'vanish', afterMs: 10_000 }, times: 1 })
  stage.deploy('web', 1)
  const startMs = stage.world.clock.now()
  assert.ok(await stage.until(() => stage.allRun(1), 15 * minutes))
  assert.ok(stage.world.clock.now() - startMs < 6 * minutes, `${stage.world.clock.now() - startMs} ms`)
  assert.equal(stage.eventCount('NodeGroupVanished'), 1)
})

test("a user's group with our label is neither adopted nor deleted, and an event tells why", async (t) => {
  const stage = await CleverStage.open(t, { pool: steady, cleverCloud: { settings: { quota: plenty } } })
  stage.world.create(nodeGroupKind, {
    apiVersion: 'api.clever-cloud.com/v1',
    kind: 'NodeGroup',
    metadata: { name: 'theirs', labels: { [ownNames.managed]: 'true', team: 'data' } },
    spec: { flavor: 'S', nodeCount: 1 },
  })
  await stage.pass(10 * minutes)
  const theirs = stage.groups().find(({ metadata }) => metadata.name === 'theirs')
  assert.equal(theirs?.metadata.deletionTimestamp, undefined)
  assert.equal(theirs?.spec.nodeCount, 1)
  assert.ok(stage.events().includes('GarbageCollectionRefused NodeGroup/theirs'))
  assert.equal(stage.world.claims().length, 0)
})

test("the platform's own autoscaler beside Tenon loses no pod and no group", async (t) => {
  const stage = await CleverStage.open(t, { pool: steady, cleverCloud: { settings: { quota: plenty } } })
  stage.platform.settings.ownAutoscaler = { periodMs: 60_000, mostNodes: 3 }
  stage.deploy('web', 4, { cpu: '3', memory: '1Gi' })
  assert.ok(await stage.until(() => stage.allRun(4), 10 * minutes))
  await stage.pass(20 * minutes)
  assert.ok(stage.eventCount('NodeGroupExternallyResized') >= 1)
  stage.platform.settings.ownAutoscaler = undefined
  for (const { metadata } of stage.groups()) stage.platform.resize(metadata.name, 1)
  assert.ok(await stage.until(() => stage.allRun(4), 20 * minutes))
  await stage.pass(5 * minutes)
  assert.deepEqual(
    stage
      .groups()
      .map(({ metadata }) => metadata.name)
      .toSorted((a, b) => (a < b ? -1 : 1)),
    stage.world
      .claims()
      .map(({ metadata }) => metadata.name)
      .toSorted((a, b) => (a < b ? -1 : 1)),
  )
})

test('a claim that is deleted by force leaves no group behind', async (t) => {
  const stage = await CleverStage.open(t, { pool: steady })
  stage.deploy('web', 1)
  assert.ok(await stage.until(() => stage.allRun(1), 5 * minutes))
  const name = stage.groups()[0]?.metadata.name ?? ''
  const { local } = stage.world.cluster.server
  local.patch(karpenterKinds.nodeClaim, undefined, name, { metadata: { finalizers: [] } })
  local.delete(karpenterKinds.nodeClaim, undefined, name)
  const isGone = () => stage.groups().every(({ metadata }) => metadata.name !== name)
  assert.ok(await stage.until(() => isGone() && stage.allRun(1), 15 * minutes))
  assert.equal(local.list(kinds.node).length, 1)
  await stage.pass(30 * seconds)
})
