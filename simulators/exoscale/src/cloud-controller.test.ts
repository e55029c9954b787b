import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Node } from '@tenon/api'
import { ExoscaleFixture, nobody } from './exoscale.test-support.ts'

const uninitialized = {
  key: 'node.cloudprovider.kubernetes.io/uninitialized',
  value: 'true',
  effect: 'NoSchedule' as const,
}
const other = { key: 'example.com/x', value: 'y', effect: 'NoSchedule' as const }

function addNode(world: ExoscaleFixture, spec: NonNullable<Node['spec']>, status: Node['status'] = {}): void {
  const metadata = { name: 'node-a' }
  const node: Node = { apiVersion: 'v1', kind: 'Node', metadata, spec }
  world.api.create(kinds.node, node)
  world.api.patch(kinds.node, undefined, 'node-a', { status }, 'status')
}

/** Keys of a node's taints, without the one that admission adds. */
const taintKeys = (world: ExoscaleFixture) =>
  (nodeOf(world)?.spec?.taints ?? [])
    .map(({ key }) => key)
    .filter((key) => key !== 'node.kubernetes.io/not-ready')

const nodeOf = (world: ExoscaleFixture) => world.api.get(kinds.node, undefined, 'node-a')

const ready = (status: 'True' | 'False' | 'Unknown') => ({ conditions: [{ type: 'Ready', status }] })

test('a node that waits for its cloud is told provider ID, labels and addresses', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance()
  addNode(world, { taints: [uninitialized, other] }, { nodeInfo: { systemUUID: id.toUpperCase() } })
  await world.clock.advance(1)
  const node = nodeOf(world)
  assert.equal(node?.spec?.providerID, `exoscale://${id}`)
  assert.deepEqual(taintKeys(world), [other.key])
  assert.equal(node.metadata.labels?.['topology.kubernetes.io/zone'], 'ch-gva-2')
  assert.equal(node.metadata.labels['topology.kubernetes.io/region'], 'ch-gva-2')
  assert.equal(node.metadata.labels['node.kubernetes.io/instance-type'], 'standard.medium')
  assert.deepEqual(
    node.status?.addresses?.map(({ type }) => type),
    ['Hostname', 'ExternalIP', 'InternalIP'],
  )
})

test('a node made before its instance joined keeps its labels, and gets addresses only', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance()
  addNode(world, { providerID: `exoscale://${id}`, taints: [other] })
  await world.clock.advance(1)
  const node = nodeOf(world)
  assert.equal(node?.metadata.labels?.['topology.kubernetes.io/zone'], undefined)
  assert.deepEqual(taintKeys(world), [other.key])
  assert.equal(node?.status?.addresses?.length, 3)
})

test('a node is deleted once it is not ready and its instance is gone', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance()
  addNode(world, { providerID: `exoscale://${id}` }, ready('True'))
  await world.done('DELETE', `/instance/${id}`)
  await world.clock.advance(30_000)
  assert.ok(nodeOf(world), 'a ready node stays')
  world.api.patch(kinds.node, undefined, 'node-a', { status: ready('Unknown') }, 'status')
  await world.clock.advance(10_000)
  assert.equal(nodeOf(world), undefined)
})

test('a node that is not ready stays while its instance exists', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance()
  addNode(world, { providerID: `exoscale://${id}` }, ready('Unknown'))
  await world.done('PUT', `/instance/${id}:stop`)
  await world.clock.advance(60_000)
  assert.ok(nodeOf(world))
})

for (const [what, spec, nodeInfo] of [
  ['of another cloud', { providerID: 'kwok://node-a' }, { systemUUID: nobody }],
  ['without any identity', {}, {}],
  ['whose provider ID is malformed', { providerID: 'exoscale://x' }, {}],
] as const) {
  test(`a node ${what} is left alone`, async () => {
    const world = new ExoscaleFixture()
    addNode(world, { ...spec, taints: [uninitialized] }, { nodeInfo, ...ready('False') })
    await world.clock.advance(60_000)
    assert.deepEqual(taintKeys(world), [uninitialized.key])
  })
}

test('a node without provider ID that waits for no cloud is left alone', async () => {
  const world = new ExoscaleFixture()
  addNode(world, { taints: [other] }, { nodeInfo: { systemUUID: nobody }, ...ready('False') })
  await world.clock.advance(60_000)
  assert.deepEqual(taintKeys(world), [other.key])
})

test('a stopped cloud looks at no node any more', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance()
  world.cloud.stop()
  addNode(world, { providerID: `exoscale://${id}`, taints: [uninitialized] })
  await world.clock.advance(60_000)
  assert.deepEqual(taintKeys(world), [uninitialized.key])
})
