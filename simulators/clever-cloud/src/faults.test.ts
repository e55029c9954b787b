/** What goes wrong on the platform, one thing at a time. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { kinds } from '@tenon/api'
import { readText } from '@tenon/runtime'
import { CleverCloudFixture } from './clever-cloud.test-support.ts'
import type { GroupEffect } from './faults.ts'

/** A world with a group `a` that is struck. */
async function struck(t: TestContext, ...effects: readonly GroupEffect[]): Promise<CleverCloudFixture> {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  for (const effect of effects) world.cloud.faults.groups.add({ times: 1, effect })
  world.create('a')
  return world
}

test('a refusal for another reason than the quota', async (t) => {
  const world = await struck(t, { kind: 'refuse', reason: 'FlavorUnavailable', message: 'no host' })
  await world.seconds(60)
  assert.equal(world.brief('a'), 'Failed FlavorUnavailable')
  assert.deepEqual(world.nodes(), [])
})

test('a rejection by quota that only the phase tells', async (t) => {
  const world = await struck(t, { kind: 'rejectByQuota', tells: 'phase' })
  await world.seconds(1)
  assert.equal(world.brief('a'), 'QuotaExceeded')
})

test('a refusal after an acceptance takes the node away', async (t) => {
  const world = await struck(t, { kind: 'rejectByQuota', tells: 'phaseAndCondition', afterMs: 40_000 })
  await world.seconds(40)
  assert.deepEqual([world.brief('a'), world.nodes()], ['Creating ReconcileInProgress', ['a-node0']])
  await world.seconds(2)
  assert.deepEqual([world.brief('a'), world.nodes()], ['QuotaExceeded QuotaExceeded', []])
  assert.deepEqual(world.cloud.quota().used, { cpu: 24, memoryGb: 24 })
})

test('an error upstream delays the group until it ends', async (t) => {
  const world = await struck(t, { kind: 'upstreamError', from: 'answer', forMs: 3_600_000 })
  await world.seconds(3_500)
  assert.equal(world.brief('a'), 'Creating ReconcileInProgress UpstreamError')
  assert.deepEqual(world.nodes(), [])
  await world.seconds(200)
  assert.deepEqual([world.brief('a'), world.nodes()], ['Synced Ready', ['a-node0']])
})

test('an error upstream of a ready group leaves it ready', async (t) => {
  const world = await struck(t, { kind: 'upstreamError', from: 'ready', forMs: 60_000 })
  await world.seconds(50)
  assert.equal(world.brief('a'), 'Synced Ready UpstreamError')
  await world.seconds(60)
  assert.equal(world.brief('a'), 'Synced Ready')
})

test('the phase of a rejection together with readiness', async (t) => {
  const world = await struck(t, { kind: 'quotaPhaseWhenReady' })
  await world.seconds(60)
  assert.equal(world.brief('a'), 'QuotaExceeded Ready')
})

test('a platform that never answers, and still deletes', async (t) => {
  const world = await struck(t, { kind: 'silent' })
  await world.seconds(3_600)
  assert.equal(world.brief('a'), 'no phase')
  world.delete('a')
  await world.seconds(2)
  assert.equal(world.brief('a'), 'gone')
})

test('a platform that answers late', async (t) => {
  const world = await struck(t, { kind: 'silent', forMs: 20_000 })
  await world.seconds(19.9)
  assert.equal(world.brief('a'), 'no phase')
  await world.seconds(60)
  assert.equal(world.brief('a'), 'Synced Ready')
})

test('an accepted group vanishes without an event', async (t) => {
  const world = await struck(t, { kind: 'vanish', afterMs: 5_000 })
  await world.seconds(5.9)
  assert.equal(world.brief('a'), 'Creating ReconcileInProgress')
  await world.seconds(0.2)
  assert.equal(world.brief('a'), 'gone')
  assert.deepEqual(world.cloud.instances(), [])
  assert.deepEqual(
    world.api.list(kinds.event).filter(({ metadata }) => metadata.name.startsWith('a.')),
    [],
  )
  await world.seconds(60)
  assert.deepEqual(world.nodes(), [])
})

test('a group vanishes with the Node that its kubelet has registered under another name', async (t) => {
  const world = await struck(t)
  await world.seconds(60)
  const { metadata: { labels = {} } = {} } = world.node('a-node0') ?? {}
  world.api.create(kinds.node, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'again', labels } })
  await world.seconds(60)
  assert.deepEqual(world.nodes().toSorted(), ['a-node0', 'again'])
  world.cloud.vanish('a')
  await world.seconds(1)
  assert.deepEqual(world.nodes(), [])
})

test('a ready group vanishes with its node', async (t) => {
  const world = await struck(t)
  await world.seconds(60)
  world.cloud.vanish('a')
  world.cloud.vanish('a')
  await world.seconds(0.1)
  assert.deepEqual([world.brief('a'), world.nodes()], ['gone', []])
})

test('a group that is ready only after six minutes', async (t) => {
  const world = await struck(t, { kind: 'slow', syncMs: 390_000 })
  await world.seconds(385)
  assert.deepEqual([world.brief('a'), world.nodes()], ['Creating ReconcileInProgress', ['a-node0']])
  await world.seconds(10)
  assert.equal(world.brief('a'), 'Synced Ready')
})

test('instances that never come, and nodes that never get ready', async (t) => {
  const world = await struck(t, { kind: 'neverBoots' })
  await world.seconds(1)
  world.cloud.faults.groups.add({ group: 'b', effect: { kind: 'neverReady' } })
  world.create('b')
  await world.seconds(3_600)
  assert.deepEqual(world.nodes(), ['b-node0'])
  for (const name of ['a', 'b']) assert.equal(world.brief(name), 'Creating ReconcileInProgress')
  for (const name of ['a', 'b']) world.delete(name)
  await world.seconds(60)
  assert.deepEqual([world.brief('a'), world.brief('b'), world.nodes()], ['gone', 'gone', []])
})

test('someone resizes a group', async (t) => {
  const world = await struck(t, { kind: 'resize', afterMs: 60_000, nodeCount: 3 })
  await world.seconds(120)
  assert.equal(world.group('a')?.spec.nodeCount, 3)
  assert.deepEqual(world.nodes(), ['a-node0', 'a-node1', 'a-node2'])
})

test('the own autoscaler of the platform resizes groups as long as it is on', async (t) => {
  const world = await CleverCloudFixture.start({ settings: { quota: { cpu: 1000, memoryGb: 1000 } } })
  t.after(() => world.stop())
  world.create('a')
  await world.seconds(600)
  assert.equal(world.group('a')?.metadata.generation, 1)
  world.cloud.settings.ownAutoscaler = { periodMs: 60_000, mostNodes: 4 }
  await world.seconds(1_200)
  assert.ok((world.group('a')?.metadata.generation ?? 0) > 2)
})

test('a deletion that takes long', async (t) => {
  const world = await struck(t, { kind: 'slowDeletion', moreMs: 600_000 })
  await world.seconds(60)
  world.delete('a')
  await world.seconds(600)
  assert.equal(world.brief('a'), 'Synced Ready Terminating')
  await world.seconds(60)
  assert.equal(world.brief('a'), 'gone')
})

test('a fault strikes the flavor, the group and as often as it says', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  const { groups } = world.cloud.faults
  const lift = groups.add({ flavor: 'XS', times: 1, effect: { kind: 'refuse', reason: 'First' } })
  groups.add({ group: 'b', rate: 1, effect: { kind: 'refuse', reason: 'Second' } })
  groups.add({ rate: 0, effect: { kind: 'refuse', reason: 'Never' } })
  world.create('a')
  world.create('b')
  world.create('c', { flavor: 'XS' })
  await world.seconds(2)
  const seen = () => ['a', 'b', 'c'].map((name) => world.brief(name))
  assert.deepEqual(seen(), ['Creating ReconcileInProgress', 'Failed Second', 'Failed First'])
  lift()
  world.cloud.faults.clear()
  for (const name of ['a', 'b', 'c']) world.delete(name)
  await world.seconds(60)
  world.create('b')
  await world.seconds(2)
  assert.equal(world.brief('b'), 'Creating ReconcileInProgress')
})

test('requests about NodeGroups fail, lose their answers, and are recorded', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  const { cloud, cluster } = world
  const through = cloud.through(cluster.transport)
  const path = '/apis/api.clever-cloud.com/v1/nodegroups'
  const send = async (method: string, suffix = '', body?: object) => {
    const headers = { 'content-type': 'application/json', accept: 'application/json' }
    const request = { method, path: `${path}${suffix}`, headers }
    try {
      const response = await through.send(body ? { ...request, body: JSON.stringify(body) } : request)
      const { reason } = JSON.parse(await readText(response.body)) as { readonly reason?: string }
      return `${response.status} ${reason ?? ''}`.trim()
    } catch {
      return 'lost'
    }
  }
  const aGroup = (name: string) => ({ metadata: { name }, spec: { flavor: '2XS', nodeCount: 1 } })
  cloud.faults.api.add({
    verb: 'create',
    times: 1,
    effect: { kind: 'refuse', status: 500, reason: 'InternalError', message: 'etcd is away' },
  })
  assert.equal(await send('POST', '', aGroup('a')), '500 InternalError')
  assert.equal(await send('GET', '/a'), '404 NotFound')
  cloud.faults.api.add({ verb: 'create', times: 1, effect: { kind: 'lostReply' } })
  assert.equal(await send('POST', '', aGroup('a')), 'lost')
  assert.equal(await send('GET', '/a'), '200')
  cloud.faults.api.add({ verb: 'delete', times: 1, effect: { kind: 'lostRequest' } })
  assert.equal(await send('DELETE', '/a'), 'lost')
  assert.equal(await send('GET'), '200')
  assert.deepEqual(
    cloud.calls().map(({ verb, name, status }) => [verb, name, status]),
    [
      ['create', '', 500],
      ['get', 'a', 404],
      ['create', '', undefined],
      ['get', 'a', 200],
      ['delete', 'a', undefined],
      ['list', '', 200],
    ],
  )
})
