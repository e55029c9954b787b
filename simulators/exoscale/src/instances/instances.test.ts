import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ExoscaleFixture, nobody, standardMedium } from '../exoscale.test-support.ts'
import { stableId } from '../zone/stable-id.ts'

test('a creation answers a pending operation whose reference can be read at once', async () => {
  const world = new ExoscaleFixture()
  const operation = await world.ok('POST', '/instance', world.body())
  assert.equal(operation.state, 'pending')
  assert.equal(operation.reference.command, 'get-instance')
  const path = `/instance/${operation.reference.id}`
  assert.equal(operation.reference.link, `/v2${path}`)
  assert.equal((await world.ok('GET', path)).state, 'starting')
  await world.clock.advance(1_000)
  assert.equal((await world.ok('GET', path)).state, 'running')
  assert.equal((await world.ok('GET', `/operation/${operation.id}`)).state, 'success')
})

test('a list leaves out anti-affinity groups, disk size and user data; a get shows them', async () => {
  const world = new ExoscaleFixture()
  const { 'anti-affinity-groups': groups } = await world.ok('GET', '/anti-affinity-group')
  const id = await world.instance({ 'anti-affinity-groups': [{ id: groups[0].id }] })
  const [listed] = (await world.ok('GET', '/instance')).instances
  const detailed = await world.ok('GET', `/instance/${id}`)
  for (const field of ['anti-affinity-groups', 'disk-size', 'user-data']) {
    assert.ok(!(field in listed), field)
    assert.ok(field in detailed, field)
  }
  assert.deepEqual(listed['instance-type'], { id: standardMedium })
  assert.deepEqual(detailed['anti-affinity-groups'], [{ id: groups[0].id }])
  assert.match(listed['created-at'], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
})

test('an instance without security groups wears the default one', async () => {
  const world = new ExoscaleFixture()
  const { 'security-groups': groups } = await world.ok('GET', '/security-group')
  const id = await world.instance()
  assert.deepEqual((await world.ok('GET', `/instance/${id}`))['security-groups'], [{ id: groups[0].id }])
})

test('instances are listed by labels, manager and address', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance({ labels: { 'exoscale.com/managed-by': 'karpenter', team: 'a' } })
  await world.instance({ name: 'node-b', labels: { team: 'b' } })
  const found = async (query: string) => (await world.ok('GET', `/instance?${query}`)).instances.length
  assert.equal(await found('labels=exoscale.com%2Fmanaged-by%3Dkarpenter'), 1)
  assert.equal(await found('labels=exoscale.com%2Fmanaged-by%3Dkarpenter%20team%3Db'), 0)
  assert.equal(await found('manager-type=instance-pool'), 0)
  assert.equal(await found(`ip-address=${world.look(id).publicIp}`), 1)
})

const wrongBodies: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'a disk of 9 GiB': { 'disk-size': 9 },
  'a disk of 51 201 GiB': { 'disk-size': 51_201 },
  'no disk size': { 'disk-size': undefined },
  'no type': { 'instance-type': undefined },
  'a type without id': { 'instance-type': { name: 'standard.medium' } },
  'an empty name': { name: '' },
  'a name of 256 characters': { name: 'a'.repeat(256) },
  'user data beyond 32 768 characters': { 'user-data': 'a'.repeat(32_769) },
  'empty user data': { 'user-data': '' },
  'a label that is not a string': { labels: { a: 1 } },
  'a security group twice': { 'security-groups': [{ id: nobody }, { id: nobody }] },
  'an unknown address assignment': { 'public-ip-assignment': 'inet6' },
  'auto-start that is not a boolean': { 'auto-start': 'no' },
}

for (const [what, fields] of Object.entries(wrongBodies)) {
  test(`400 for a creation with ${what}`, async () => {
    const world = new ExoscaleFixture()
    const reply = await world.call('POST', '/instance', world.body(fields))
    assert.equal(reply.status, 400)
    assert.equal(typeof reply.body.errors[0].message, 'string')
    assert.equal(world.cloud.instances().length, 0)
  })
}

for (const [what, fields] of Object.entries({
  type: { 'instance-type': { id: nobody } },
  template: { template: { id: nobody } },
  'security group': { 'security-groups': [{ id: nobody }] },
  'anti-affinity group': { 'anti-affinity-groups': [{ id: nobody }] },
})) {
  test(`404 for a creation with an unknown ${what}`, async () => {
    const world = new ExoscaleFixture()
    const reply = await world.call('POST', '/instance', world.body(fields))
    assert.equal(reply.status, 404)
    assert.deepEqual(Object.keys(reply.body), ['message'])
  })
}

test('a creation tolerates fields it does not know', async () => {
  const world = new ExoscaleFixture()
  const template = { ...(world.body()['template'] as object), 'created-at': '0001-01-01T00:00:00Z' }
  await world.instance({ template, novelty: true })
})

test('400 for a body that is not an object or no JSON, 404 and 405 for paths and methods', async () => {
  const world = new ExoscaleFixture()
  assert.equal((await world.call('POST', '/instance')).status, 400)
  assert.equal((await world.call('POST', '/instance', [])).status, 400)
  assert.equal((await world.call('GET', '/instance/not-an-id')).status, 400)
  assert.equal((await world.call('GET', `/instance/${nobody}`)).status, 404)
  assert.equal((await world.call('GET', '/elastic-ip')).status, 404)
  assert.equal((await world.call('PUT', '/instance')).status, 405)
})

test('the ninth member of an anti-affinity group is refused', async () => {
  const world = new ExoscaleFixture()
  const [group] = (await world.ok('GET', '/anti-affinity-group'))['anti-affinity-groups']
  const groups = { 'anti-affinity-groups': [{ id: group.id }] }
  const ids: string[] = []
  for (let index = 0; index < 8; index++) ids.push(await world.instance({ name: `node-${index}`, ...groups }))
  const full = await world.ok('GET', `/anti-affinity-group/${group.id}`)
  assert.equal(full.instances.length, 8)
  assert.equal((await world.call('POST', '/instance', world.body(groups))).status, 409)
  await world.done('DELETE', `/instance/${ids[0]}`)
  await world.instance(groups)
})

test('a deletion stops the kubelet at once and forgets the instance with its operation', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance()
  await world.clock.advance(10_000)
  assert.equal(world.joiner.kubelets.get('node-a')?.isRunning, true)
  const operation = await world.ok('DELETE', `/instance/${id}`)
  assert.equal(world.joiner.kubelets.get('node-a')?.isRunning, false)
  assert.equal((await world.ok('GET', `/instance/${id}`)).state, 'destroying')
  assert.equal((await world.call('DELETE', `/instance/${id}`)).status, 409)
  await world.clock.advance(1_000)
  assert.equal((await world.ok('GET', `/operation/${operation.id}`)).state, 'success')
  assert.equal((await world.call('GET', `/instance/${id}`)).status, 404)
})

test('deleting an instance that does not exist is 404', async () => {
  const world = new ExoscaleFixture()
  assert.equal((await world.call('DELETE', `/instance/${nobody}`)).status, 404)
})

test('a creation is interrupted by a deletion, and never boots', async () => {
  const world = new ExoscaleFixture({
    settings: { operationDelays: { 'create-instance': { minMs: 5_000, maxMs: 5_000 } } },
  })
  const creation = await world.ok('POST', '/instance', world.body())
  await world.ok('DELETE', `/instance/${creation.reference.id}`)
  await world.clock.advance(60_000)
  const ended = await world.ok('GET', `/operation/${creation.id}`)
  assert.deepEqual([ended.state, ended.reason], ['failure', 'interrupted'])
  assert.equal(world.joiner.attempts, 0)
  assert.equal(world.cloud.instances().length, 0)
})

test('an update replaces what it names, and null clears the labels', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance({ labels: { a: '1', b: '2' } })
  const path = `/instance/${id}`
  await world.done('PUT', path, { labels: { c: '3' } })
  assert.deepEqual((await world.ok('GET', path)).labels, { c: '3' })
  await world.done('PUT', path, { name: 'renamed' })
  const renamed = await world.ok('GET', path)
  assert.deepEqual([renamed.name, renamed.labels], ['renamed', { c: '3' }])
  await world.done('PUT', path, { labels: null })
  assert.deepEqual((await world.ok('GET', path)).labels, {})
  assert.equal((await world.call('PUT', path, { labels: 'x' })).status, 400)
})

test('an update of the address assignment changes the addresses', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance({ 'public-ip-assignment': 'none' })
  const path = `/instance/${id}`
  assert.ok(!('public-ip' in (await world.ok('GET', path))))
  await world.done('PUT', path, { 'public-ip-assignment': 'dual' })
  const dual = await world.ok('GET', path)
  assert.match(dual['public-ip'], /^198\.18\./)
  assert.match(dual['ipv6-address'], /^2001:db8::/)
  await world.done('PUT', path, { 'public-ip-assignment': 'inet4' })
  const inet4 = await world.ok('GET', path)
  assert.equal(inet4['public-ip'], dual['public-ip'])
  assert.ok(!('ipv6-address' in inet4))
})

test('labels can be reset, other fields not', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance({ labels: { a: '1' } })
  await world.done('DELETE', `/instance/${id}/labels`)
  assert.deepEqual((await world.ok('GET', `/instance/${id}`)).labels, {})
  assert.equal((await world.call('DELETE', `/instance/${id}/name`)).status, 400)
})

test('stop ends the kubelet, start boots again, reboot does both', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance()
  await world.clock.advance(10_000)
  const path = `/instance/${id}`
  await world.ok('PUT', `${path}:stop`)
  assert.equal(world.look(id).state, 'stopping')
  await world.clock.advance(1_000)
  assert.equal(world.look(id).state, 'stopped')
  assert.equal(world.joiner.kubelets.get('node-a')?.isRunning, false)
  assert.equal((await world.call('PUT', `${path}:stop`)).status, 409)
  assert.equal((await world.call('PUT', `${path}:start`)).status, 400)
  await world.done('PUT', `${path}:start`, {})
  assert.equal(world.look(id).state, 'running')
  await world.clock.advance(10_000)
  assert.equal(world.joiner.kubelets.get('node-a')?.isRunning, true)
  await world.done('PUT', `${path}:reboot`)
  assert.equal(world.joiner.kubelets.get('node-a')?.isRunning, false)
  await world.clock.advance(10_000)
  assert.equal(world.joiner.kubelets.get('node-a')?.isRunning, true)
})

test('an instance without auto-start is stopped until it is started', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance({ 'auto-start': false })
  await world.clock.advance(60_000)
  assert.equal(world.look(id).state, 'stopped')
  assert.equal(world.joiner.attempts, 0)
})

test('addresses of instances differ, and come back into use', async () => {
  const world = new ExoscaleFixture()
  const ids = [await world.instance({ name: 'a' }), await world.instance({ name: 'b' })]
  const [first, second] = ids.map((id) => world.look(id).publicIp)
  assert.notEqual(first, second)
  await world.done('DELETE', `/instance/${ids[0]}`)
  const third = await world.instance({ name: 'c' })
  assert.equal(world.look(third).publicIp, first)
})

test('the snapshot tells names, states, prices and nodes', async () => {
  const world = new ExoscaleFixture()
  await world.instance()
  await world.instance({ name: 'node-b', 'instance-type': { id: stableId('instance-type/storage.huge') } })
  await world.instance({ name: 'node-c', 'auto-start': false })
  await world.clock.advance(10_000)
  const { instances, totals, pricePerHour } = world.cloud.snapshot()
  assert.deepEqual(
    instances.map(({ name, state, type, nodeName }) => [name, state, type, nodeName]),
    [
      ['node-a', 'running', 'standard.medium', 'node-a'],
      ['node-b', 'running', 'storage.huge', 'node-b'],
      ['node-c', 'stopped', 'standard.medium', undefined],
    ],
  )
  assert.deepEqual(totals, { running: 2, stopped: 1 })
  assert.equal(instances[0]?.pricePerHour, 0.04666)
  assert.equal(pricePerHour.toFixed(5), '0.32666')
})

test('a stopped cloud leaves no kubelet and no timer behind', async () => {
  const world = new ExoscaleFixture()
  await world.instance()
  await world.clock.advance(10_000)
  await world.ok('POST', '/instance', world.body({ name: 'node-b' }))
  world.cloud.stop()
  assert.equal(world.joiner.kubelets.get('node-a')?.isRunning, false)
  const before = world.clock.now()
  assert.equal(await world.clock.advanceUntil(() => world.joiner.attempts > 1, 3_600_000), false)
  assert.equal(world.clock.now(), before)
})

/** A key as OpenSSH writes it; the data begins with its type. */
function aPublicKey(comment = ''): string {
  const type = 'ssh-ed25519'
  const data = Buffer.concat([Buffer.from([0, 0, 0, type.length]), Buffer.from(type), Buffer.alloc(36, 7)])
  return `${type} ${data.toString('base64')}${comment}`
}

test('SSH keys are registered, listed, shown and deleted by name', async () => {
  const world = new ExoscaleFixture()
  assert.deepEqual(await world.ok('GET', '/ssh-key'), { 'ssh-keys': [] })
  const body = { name: 'my key', 'public-key': aPublicKey(' me@example.com') }
  const { state, reference } = await world.done('POST', '/ssh-key', body)
  assert.deepEqual(
    [state, reference.command, reference.link],
    ['success', 'get-ssh-key', '/v2/ssh-key/my%20key'],
  )
  const key = await world.ok('GET', '/ssh-key/my%20key')
  assert.equal(key.name, 'my key')
  assert.match(key.fingerprint, /^([0-9a-f]{2}:){15}[0-9a-f]{2}$/)
  assert.deepEqual(await world.ok('GET', '/ssh-key'), { 'ssh-keys': [key] })
  assert.equal((await world.call('POST', '/ssh-key', body)).status, 409)
  await world.done('DELETE', '/ssh-key/my%20key')
  assert.equal((await world.call('GET', '/ssh-key/my%20key')).status, 404)
  assert.equal((await world.call('DELETE', '/ssh-key/my%20key')).status, 404)
})

test('what is no SSH key is not registered', async () => {
  const world = new ExoscaleFixture()
  const valid = { name: 'a', 'public-key': aPublicKey() }
  const bodies = [
    {},
    { ...valid, name: '' },
    { ...valid, name: 1 },
    { name: 'a' },
    { ...valid, 'public-key': 'ssh-ed25519' },
    { ...valid, 'public-key': aPublicKey().replace('ssh-ed25519', 'ssh-rsa') },
    { ...valid, 'public-key': `${aPublicKey()}\n${aPublicKey()}` },
  ]
  for (const body of bodies)
    assert.equal((await world.call('POST', '/ssh-key', body)).status, 400, JSON.stringify(body))
})

test('an instance keeps the SSH keys it was created with, and shows them', async () => {
  const world = new ExoscaleFixture()
  const unknown = await world.call('POST', '/instance', world.body({ 'ssh-keys': [{ name: 'a' }] }))
  assert.equal(unknown.status, 404)
  for (const name of ['a', 'b']) await world.ok('POST', '/ssh-key', { name, 'public-key': aPublicKey() })
  const id = await world.instance({ 'ssh-keys': [{ name: 'a' }, { name: 'b' }] })
  const shown = { 'ssh-keys': [{ name: 'a' }, { name: 'b' }], 'ssh-key': { name: 'a' } }
  const { 'ssh-keys': keys, 'ssh-key': first } = await world.ok('GET', `/instance/${id}`)
  assert.deepEqual({ 'ssh-keys': keys, 'ssh-key': first }, shown)
  const { instances } = await world.ok('GET', '/instance')
  assert.deepEqual(instances[0]['ssh-keys'], shown['ssh-keys'])
  const former = await world.instance({ name: 'former', 'ssh-key': { name: 'b' } })
  assert.deepEqual((await world.ok('GET', `/instance/${former}`))['ssh-keys'], [{ name: 'b' }])
  for (const wrong of [[{ name: 'a' }, { name: 'a' }], [{ id: 'a' }], ['a'], 'a'])
    assert.equal((await world.call('POST', '/instance', world.body({ 'ssh-keys': wrong }))).status, 400)
})

test('an instance with IPv6 enabled has both addresses, unless an assignment says otherwise', async () => {
  const world = new ExoscaleFixture()
  const addresses = async (fields: object) => {
    const instance = await world.ok('GET', `/instance/${await world.instance({ ...fields })}`)
    return [instance['public-ip-assignment'], 'public-ip' in instance, 'ipv6-address' in instance]
  }
  assert.deepEqual(await addresses({ 'ipv6-enabled': true }), ['dual', true, true])
  assert.deepEqual(await addresses({ 'ipv6-enabled': false }), ['inet4', true, false])
  const both = { 'ipv6-enabled': true, 'public-ip-assignment': 'none' }
  assert.deepEqual(await addresses(both), ['none', false, false])
})
