/** Switches that make the whole zone behave badly. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ExoscaleFixture, owner } from './exoscale.test-support.ts'

const listed = async (world: ExoscaleFixture): Promise<readonly [string, string][]> =>
  (await world.ok('GET', '/instance')).instances.map(
    ({ name, state }: { readonly name: string; readonly state: string }) => [name, state],
  )

test('lists that lag show a new instance late, and a deleted one as it was', async () => {
  const world = new ExoscaleFixture({ settings: { listLagMs: 20_000 } })
  const id = await world.instance({ name: 'first' })
  assert.deepEqual(await listed(world), [])
  assert.equal((await world.ok('GET', `/instance/${id}`)).name, 'first', 'a single read is never late')
  await world.clock.advance(20_000)
  await world.instance({ name: 'second' })
  assert.deepEqual(await listed(world), [['first', 'running']])
  await world.done('DELETE', `/instance/${id}`)
  assert.equal((await world.call('GET', `/instance/${id}`)).status, 404)
  assert.deepEqual(await listed(world), [['first', 'running']])
  await world.clock.advance(20_000)
  assert.deepEqual(await listed(world), [['second', 'running']])
  world.cloud.settings.listLagMs = 0
  assert.deepEqual(await listed(world), [['second', 'running']])
})

test('calls beyond the limit are refused until there is room, and the wait is told', async () => {
  const world = new ExoscaleFixture({ settings: { callLimit: { perSecond: 0.5, burst: 2 } } })
  await world.ok('GET', '/zone')
  await world.ok('GET', '/zone')
  const refused = await world.call('GET', '/zone')
  assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '2'])
  await world.clock.advance(2_000)
  await world.ok('GET', '/zone')
  assert.equal((await world.call('GET', '/zone')).status, 429)
  world.cloud.settings.callLimit = undefined
  await world.ok('GET', '/zone')
})

test('by a clock that is ahead every signature has expired', async () => {
  const world = new ExoscaleFixture({ settings: { clockSkewMs: 599_000 } })
  await world.ok('GET', '/instance')
  world.cloud.settings.clockSkewMs = 600_000
  const refused = await world.call('GET', '/instance')
  assert.deepEqual([refused.status, refused.body], [401, { message: 'the signature has expired' }])
})

test('an expired key is refused, and another one is not', async () => {
  const other = { ...owner, key: 'EXOother' }
  const world = new ExoscaleFixture({ credentials: [owner, other], settings: { expiredKeys: [owner.key] } })
  const refused = await world.call('GET', '/instance')
  assert.deepEqual([refused.status, refused.body], [401, { message: 'the API key has expired' }])
  assert.equal((await world.call('GET', '/instance', undefined, other)).status, 200)
})

test('a drought of one type leaves the others, and ends when room is made', async () => {
  const world = new ExoscaleFixture({ settings: { capacity: { 'standard.medium': 0 } } })
  const { state, reason } = await world.done('POST', '/instance', world.body())
  assert.deepEqual([state, reason], ['failure', 'unavailable'])
  assert.deepEqual(world.cloud.instances(), [])
  world.cloud.settings.capacity = {}
  await world.instance()
})
