import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clusterId, endpoint, ExoscaleFixture, nobody } from '../exoscale.test-support.ts'

test('every address that the list of zones gives out is of this cloud, also of zones it does not simulate', async () => {
  const world = new ExoscaleFixture()
  world.cloud.setBaseUrl('http://127.0.0.1:8080/')
  const { zones } = await world.ok('GET', '/zone')
  assert.deepEqual(zones[0], {
    name: 'ch-gva-2',
    'api-endpoint': 'http://127.0.0.1:8080/v2',
    'sos-endpoint': 'http://127.0.0.1:8080/sos/ch-gva-2',
  })
  assert.equal(zones[1]['api-endpoint'], 'http://127.0.0.1:8080/zone/ch-dk-2/v2')
  assert.doesNotMatch(JSON.stringify(zones), /exoscale\.com|exo\.io/)
})

test('before the cloud is told where it is reached, it names no host that exists', async () => {
  const { zones } = await new ExoscaleFixture().ok('GET', '/zone')
  for (const each of zones) assert.match(new URL(each['api-endpoint']).hostname, /\.test$/)
})

test('a zone that does not exist is refused with the list of zones', () => {
  assert.throws(() => new ExoscaleFixture({ zone: 'ch-zrh-9' }), /unknown zone ch-zrh-9; known are ch-gva-2/)
})

test('a type without GPUs has no field gpus', async () => {
  const world = new ExoscaleFixture()
  const { 'instance-types': types } = await world.ok('GET', '/instance-type')
  const medium = types.find(
    (type: { family: string; size: string }) => type.family === 'standard' && type.size === 'medium',
  )
  assert.ok(!('gpus' in medium))
  assert.equal(medium.memory, 4096 * 2 ** 20)
  assert.deepEqual(await world.ok('GET', `/instance-type/${medium.id}`), medium)
  assert.equal((await world.call('GET', `/instance-type/${nobody}`)).status, 404)
})

test('the active template of a version and variant can be read', async () => {
  const world = new ExoscaleFixture({ clusterVersion: 'v1.34.21' })
  for (const path of ['1.34.21/standard', '1.33.0/nvidia', '1.32.0/standard', '1.36.1/nvidia']) {
    const { 'active-template': id } = await world.ok('GET', `/sks-template/${path}`)
    const template = await world.ok('GET', `/template/${id}`)
    assert.equal(template.version, path.split('/')[0])
  }
  assert.equal((await world.call('GET', '/sks-template/1.20.0/standard')).status, 404)
  assert.equal((await world.call('GET', '/sks-template/1.33.0/arm')).status, 400)
  assert.equal((await world.call('GET', `/template/${nobody}`)).status, 404)
})

test('a newly published template becomes the active one; the old one stays', async () => {
  const world = new ExoscaleFixture()
  const { 'active-template': before } = await world.ok('GET', '/sks-template/1.34.1/standard')
  const id = world.cloud.publishTemplate({ version: '1.34.1', variant: 'standard' })
  assert.notEqual(id, before)
  assert.deepEqual(await world.ok('GET', '/sks-template/1.34.1/standard'), { 'active-template': id })
  assert.equal((await world.ok('GET', `/template/${before}`)).id, before)
})

test('templates are public', async () => {
  const world = new ExoscaleFixture()
  assert.ok((await world.ok('GET', '/template')).templates.length >= 10)
  assert.deepEqual((await world.ok('GET', '/template?visibility=private')).templates, [])
  assert.equal((await world.call('GET', '/template?visibility=secret')).status, 400)
})

test('versions are listed newest first, the last patch version of each', async () => {
  const world = new ExoscaleFixture({ clusterVersion: '1.33.2' })
  const { 'sks-cluster-versions': versions } = await world.ok('GET', '/sks-cluster-version')
  assert.deepEqual(versions, ['1.36.9', '1.35.9', '1.34.9', '1.33.9', '1.33.2', '1.32.9'])
  const all = await world.ok('GET', '/sks-cluster-version?include-deprecated=true')
  assert.equal(all['sks-cluster-versions'].length, 50)
})

test('groups and networks of the seed exist besides the default ones', async () => {
  const world = new ExoscaleFixture({
    seed: {
      securityGroups: [{ id: nobody, name: 'web' }],
      antiAffinityGroups: [{ name: 'spread' }],
      privateNetworks: [{ name: 'lan' }],
      templates: [{ id: nobody, version: '1.30.0', variant: 'standard' }],
    },
  })
  const names = (list: { name: string }[]) => list.map(({ name }) => name)
  assert.deepEqual(names((await world.ok('GET', '/security-group'))['security-groups']), ['default', 'web'])
  assert.deepEqual(names((await world.ok('GET', '/anti-affinity-group'))['anti-affinity-groups']), [
    'sks-nodes',
    'spread',
  ])
  assert.deepEqual(names((await world.ok('GET', '/private-network'))['private-networks']), [
    'sks-private',
    'lan',
  ])
  assert.equal((await world.ok('GET', `/security-group/${nobody}`)).name, 'web')
  assert.equal((await world.ok('GET', `/template/${nobody}`)).version, '1.30.0')
  assert.deepEqual((await world.ok('GET', '/security-group?visibility=public'))['security-groups'], [])
})

test('a group added later is listed', async () => {
  const world = new ExoscaleFixture()
  world.cloud.add({ securityGroups: [{ name: 'late' }] })
  const groups = (await world.ok('GET', '/security-group'))['security-groups']
  assert.equal(groups.at(-1).name, 'late')
})

test('a security group is attached and detached', async () => {
  const world = new ExoscaleFixture({ seed: { securityGroups: [{ id: nobody, name: 'web' }] } })
  const id = await world.instance()
  const groups = async () => (await world.ok('GET', `/instance/${id}`))['security-groups'].length
  const body = { instance: { id } }
  assert.equal((await world.call('PUT', `/security-group/${nobody}:detach`, body)).status, 409)
  assert.equal((await world.done('PUT', `/security-group/${nobody}:attach`, body)).state, 'success')
  assert.equal(await groups(), 2)
  assert.equal((await world.call('PUT', `/security-group/${nobody}:attach`, body)).status, 409)
  await world.done('PUT', `/security-group/${nobody}:detach`, body)
  assert.equal(await groups(), 1)
  assert.equal((await world.call('PUT', `/security-group/${nobody}:attach`, {})).status, 400)
  const unknown = { instance: { id: nobody } }
  assert.equal((await world.call('PUT', `/security-group/${nobody}:attach`, unknown)).status, 404)
})

test('a private network is attached with a lease, and detached', async () => {
  const world = new ExoscaleFixture({ seed: { privateNetworks: [{ id: nobody, name: 'lan' }] } })
  const [network] = (await world.ok('GET', '/private-network'))['private-networks']
  const first = await world.instance()
  const second = await world.instance({ name: 'node-b' })
  const path = `/private-network/${network.id}`
  await world.done('PUT', `${path}:attach`, { instance: { id: first } })
  assert.equal((await world.call('PUT', `${path}:attach`, { instance: { id: first } })).status, 409)
  const taken = { instance: { id: second }, ip: '10.42.0.10' }
  assert.equal((await world.call('PUT', `${path}:attach`, taken)).status, 409)
  await world.done('PUT', `${path}:attach`, { instance: { id: second }, ip: '10.42.0.99' })
  assert.deepEqual((await world.ok('GET', path)).leases, [
    { ip: '10.42.0.10', 'instance-id': first },
    { ip: '10.42.0.99', 'instance-id': second },
  ])
  await world.done('PUT', `/private-network/${nobody}:attach`, { instance: { id: first } })
  const links = (await world.ok('GET', `/instance/${first}`))['private-networks']
  assert.deepEqual(
    links.map(({ id }: { id: string }) => id),
    [network.id, nobody],
  )
  assert.match(links[0]['mac-address'], /^0a(:[0-9a-f]{2}){5}$/)
  await world.done('PUT', `${path}:detach`, { instance: { id: first } })
  assert.equal((await world.call('PUT', `${path}:detach`, { instance: { id: first } })).status, 409)
  const fixed = { instance: { id: second }, ip: '10.0.0.1' }
  assert.equal((await world.call('PUT', `/private-network/${nobody}:attach`, fixed)).status, 400)
})

test('a network without address left fails the operation', async () => {
  const range = { startIp: '10.0.0.1', endIp: '10.0.0.1', netmask: '255.255.255.0' }
  const world = new ExoscaleFixture({ seed: { privateNetworks: [{ id: nobody, name: 'tiny', range }] } })
  const first = await world.instance()
  const second = await world.instance({ name: 'node-b' })
  const attach = (id: string) => world.done('PUT', `/private-network/${nobody}:attach`, { instance: { id } })
  assert.equal((await attach(first)).state, 'success')
  assert.equal((await attach(second)).reason, 'unavailable')
})

test('the SKS cluster names its version, endpoint and default group', async () => {
  const world = new ExoscaleFixture({ clusterVersion: 'v1.34.1' })
  const [cluster] = (await world.ok('GET', '/sks-cluster'))['sks-clusters']
  assert.equal(cluster.id, clusterId)
  assert.equal(cluster.version, '1.34.1')
  assert.equal(cluster.endpoint, endpoint)
  const group = await world.ok('GET', `/security-group/${cluster['default-security-group-id']}`)
  assert.equal(group.name, 'default')
  assert.deepEqual(await world.ok('GET', `/sks-cluster/${clusterId}`), cluster)
  assert.equal((await world.call('GET', `/sks-cluster/${nobody}`)).status, 404)
})

test('the certificate of an authority is the one the cluster announces, as base64 of its PEM', async () => {
  const world = new ExoscaleFixture()
  const path = `/sks-cluster/${clusterId}/authority`
  assert.equal((await world.call('GET', `${path}/control-plane/cert`)).status, 404)
  world.announce()
  const { cacert } = await world.ok('GET', `${path}/control-plane/cert`)
  assert.match(Buffer.from(cacert, 'base64').toString(), /^-----BEGIN CERTIFICATE-----\n/)
  assert.equal((await world.call('GET', `${path}/etcd/cert`)).status, 400)
})

test('manifests for a NodePool and its node class are generated', async () => {
  const world = new ExoscaleFixture()
  const path = `/sks-cluster/${clusterId}`
  const { nodepool } = await world.ok('PUT', `${path}/generate-karpenter-nodepool`)
  assert.match(nodepool, /kind: NodePool/)
  const generated = await world.ok('PUT', `${path}/generate-karpenter-exoscale-nodeclass`)
  assert.match(generated['exoscale-nodeclass'], /kind: ExoscaleNodeClass[^]*version: "1.34.1"/)
})
