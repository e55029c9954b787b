import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ExoscaleFixture } from './exoscale.test-support.ts'
import type { FaultEffect } from './faults.ts'

function worldWith(effect: FaultEffect, operation = 'create-instance'): ExoscaleFixture {
  const world = new ExoscaleFixture()
  world.cloud.faults.add({ operation, times: 1, effect })
  return world
}

test('a reply is lost after the call has taken effect', async () => {
  const world = worldWith({ kind: 'lostReply' })
  await assert.rejects(world.call('POST', '/instance', world.body()), /connection reset/)
  await world.clock.advance(1_000)
  assert.equal(world.cloud.instances().length, 1)
  assert.equal(world.cloud.calls().at(-1)?.status, 200)
})

test('a request is lost before anything happened, and is in the log with status 0', async () => {
  const world = worldWith({ kind: 'lostRequest' })
  await assert.rejects(world.call('POST', '/instance', world.body()), /connection reset/)
  assert.equal(world.cloud.instances().length, 0)
  assert.deepEqual(
    world.cloud.calls().map(({ operation, status }) => [operation, status]),
    [['create-instance', 0]],
  )
})

test('a call is refused with the status and headers of the fault', async () => {
  const world = worldWith({ kind: 'refuse', status: 429, headers: { 'retry-after': '2' } })
  const reply = await world.call('POST', '/instance', world.body())
  assert.equal(reply.status, 429)
  assert.equal(reply.headers['retry-after'], '2')
  await world.instance()
})

test('an operation fails with reason and message, and the instance goes', async () => {
  const world = worldWith({ kind: 'failOperation', reason: 'fault', message: 'host is on fire' })
  const ended = await world.done('POST', '/instance', world.body())
  assert.deepEqual([ended.state, ended.reason, ended.message], ['failure', 'fault', 'host is on fire'])
  assert.equal(world.cloud.instances().length, 0)
})

test('a failed creation may leave an instance in error, which can be deleted', async () => {
  const world = worldWith({ kind: 'failOperation', reason: 'fault', message: 'x' })
  world.cloud.settings.failedInstances = 'error'
  const { reference } = await world.done('POST', '/instance', world.body())
  assert.equal(world.look(reference.id).state, 'error')
  await world.done('DELETE', `/instance/${reference.id}`)
  assert.equal(world.cloud.instances().length, 0)
})

test('a failed deletion leaves the instance, which boots again', async () => {
  const world = worldWith({ kind: 'failOperation', reason: 'busy', message: 'x' }, 'delete-instance')
  const id = await world.instance()
  await world.clock.advance(10_000)
  assert.equal((await world.done('DELETE', `/instance/${id}`)).state, 'failure')
  assert.equal(world.look(id).state, 'running')
  await world.clock.advance(10_000)
  assert.equal(world.joiner.kubelets.get('node-a')?.isRunning, true)
})

test('a failed stop leaves the instance running', async () => {
  const world = worldWith({ kind: 'failOperation', reason: 'busy', message: 'x' }, 'stop-instance')
  const id = await world.instance()
  await world.clock.advance(10_000)
  await world.done('PUT', `/instance/${id}:stop`)
  assert.equal(world.look(id).state, 'running')
  assert.equal(world.joiner.kubelets.get('node-a')?.isRunning, true)
})

test('an operation may hang for ever', async () => {
  const world = worldWith({ kind: 'hangOperation' })
  const operation = await world.ok('POST', '/instance', world.body())
  await world.clock.advance(3_600_000)
  assert.equal((await world.ok('GET', `/operation/${operation.id}`)).state, 'pending')
})

test('an instance may never boot, or never join, though its instance runs', async () => {
  const world = worldWith({ kind: 'neverBoots' })
  const silent = await world.instance()
  world.cloud.faults.add({ operation: 'create-instance', times: 1, effect: { kind: 'neverJoins' } })
  const lonely = await world.instance({ name: 'node-b' })
  await world.clock.advance(600_000)
  assert.deepEqual(
    [silent, lonely].map((id) => world.look(id).state),
    ['running', 'running'],
  )
  assert.equal(world.look(silent).whyNotJoined, undefined)
  assert.equal(world.look(lonely).whyNotJoined, 'the instance cannot reach the cluster')
  assert.equal(world.joiner.attempts, 0)
})

test('an instance may join and never get ready', async () => {
  const world = worldWith({ kind: 'neverReady' })
  await world.instance()
  await world.instance({ name: 'node-b' })
  await world.clock.advance(600_000)
  const specs = [...world.joiner.kubelets.values()].map(({ spec }) => spec)
  assert.deepEqual(
    specs.map(({ neverReady }) => neverReady),
    [true, undefined],
  )
})

test('a fault for every operation spares unknown paths, and ends when lifted', async () => {
  const world = new ExoscaleFixture()
  const lift = world.cloud.faults.add({ operation: '*', effect: { kind: 'refuse', status: 503 } })
  assert.equal((await world.call('GET', '/elastic-ip')).status, 404)
  assert.equal((await world.call('GET', '/instance')).status, 503)
  lift()
  assert.equal((await world.call('GET', '/instance')).status, 200)
})

test('a fault strikes with its rate', async () => {
  const world = new ExoscaleFixture()
  world.cloud.faults.add({ operation: '*', rate: 0.5, effect: { kind: 'refuse', status: 503 } })
  let struck = 0
  for (let index = 0; index < 200; index++) {
    if ((await world.call('GET', '/instance')).status === 503) struck++
  }
  assert.ok(struck > 60 && struck < 140, String(struck))
})

test('without room the operation fails as unavailable, and room comes back', async () => {
  const world = new ExoscaleFixture({ settings: { capacity: { 'standard.medium': 1 } } })
  const first = await world.instance()
  const ended = await world.done('POST', '/instance', world.body({ name: 'node-b' }))
  assert.deepEqual([ended.state, ended.reason], ['failure', 'unavailable'])
  assert.equal(world.cloud.instances().length, 1)
  await world.done('DELETE', `/instance/${first}`)
  await world.instance({ name: 'node-c' })
})

test('a quota refuses one instance too many, and shows its usage', async () => {
  const world = new ExoscaleFixture({ settings: { quotas: { instance: 1 } } })
  await world.instance()
  const reply = await world.call('POST', '/instance', world.body())
  assert.equal(reply.status, 403)
  assert.match(reply.body.message, /quota instance exceeded: 1 of 1 used/)
  assert.deepEqual(await world.ok('GET', '/quota/instance'), { resource: 'instance', usage: 1, limit: 1 })
  assert.equal((await world.call('GET', '/quota/unicorn')).status, 404)
  world.cloud.settings.quotaRefusalStatus = 422
  assert.equal((await world.call('POST', '/instance', world.body())).status, 422)
})

test('EXO-121 a quota of -1 is unlimited', async () => {
  const world = new ExoscaleFixture({ settings: { quotas: { instance: -1 } } })
  await world.instance()
  assert.equal((await world.ok('GET', '/quota')).quotas[0].limit, -1)
})

test('a GPU family without quota is not authorized; one with a quota counts GPUs', async () => {
  const world = new ExoscaleFixture({ settings: { quotas: { instance: 10, gpua30: 0 } } })
  const { 'instance-types': types } = await world.ok('GET', '/instance-type')
  const named = (size: string) =>
    types.find((type: { family: string; size: string }) => type.family === 'gpua30' && type.size === size)
  const gpu = (size: string) => world.body({ 'instance-type': { id: named(size).id } })
  assert.equal(named('small').authorized, false)
  assert.equal((await world.call('POST', '/instance', gpu('small'))).status, 403)
  world.cloud.settings.quotas = { instance: 10, gpua30: 3 }
  assert.equal((await world.done('POST', '/instance', gpu('medium'))).state, 'success')
  assert.equal((await world.ok('GET', '/quota/gpua30')).usage, 2)
  assert.equal((await world.call('POST', '/instance', gpu('medium'))).status, 403)
  assert.equal((await world.done('POST', '/instance', gpu('small'))).state, 'success')
})

test('a type of another zone is refused', async () => {
  const world = new ExoscaleFixture()
  const { 'instance-types': types } = await world.ok('GET', '/instance-type')
  const foreign = types.find((type: { zones: string[] }) => !type.zones.includes('ch-gva-2'))
  const body = world.body({ 'instance-type': { id: foreign.id } })
  assert.equal((await world.call('POST', '/instance', body)).status, 400)
})

test('disk ranges are enforced when asked for', async () => {
  const world = new ExoscaleFixture({ settings: { diskRangeEnforced: true } })
  assert.equal((await world.call('POST', '/instance', world.body({ 'disk-size': 500 }))).status, 400)
  await world.instance({ 'disk-size': 400 })
})

test('calls take the latency of the settings', async () => {
  const world = new ExoscaleFixture({ settings: { callLatency: { minMs: 500, maxMs: 500 } } })
  const call = world.ok('GET', '/instance')
  await world.clock.advance(499)
  assert.equal(world.cloud.calls().length, 0)
  await world.clock.advance(1)
  assert.equal(world.cloud.calls().length, 1)
  await call
})
