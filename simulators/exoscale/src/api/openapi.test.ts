import assert from 'node:assert/strict'
import { test } from 'node:test'
import { documentMissing, readApiDocument } from '../document/api-document.test-support.ts'
import { type Exchange, watchExchanges } from './exchange.ts'
import { clusterId, ExoscaleFixture, nobody, userData } from '../exoscale.test-support.ts'

const network = 'b0030000-0000-4000-8000-000000000003'
const pool = 'b0010000-0000-4000-8000-000000000001'
const nodepool = 'b0020000-0000-4000-8000-000000000002'
const cluster = `/sks-cluster/${clusterId}`

/** The calls of the walk after an instance was made; `INSTANCE` and others stand for ids found on the way. */
const walk: readonly (readonly [method: string, path: string, body?: unknown])[] = [
  ['GET', '/zone'],
  ['GET', '/instance-type'],
  ['GET', '/instance-type/TYPE'],
  ['GET', '/template'],
  ['GET', '/template/TEMPLATE'],
  ['GET', '/sks-template/1.34.1/nvidia'],
  ['GET', '/sks-cluster-version'],
  ['GET', '/security-group'],
  ['GET', `/security-group/${nobody}`],
  ['PUT', `/security-group/${nobody}:attach`, { instance: { id: 'INSTANCE' } }],
  ['PUT', `/security-group/${nobody}:detach`, { instance: { id: 'INSTANCE' } }],
  ['GET', '/anti-affinity-group'],
  ['GET', '/anti-affinity-group/GROUP'],
  ['GET', '/private-network'],
  ['PUT', `/private-network/${network}:attach`, { instance: { id: 'INSTANCE' } }],
  ['GET', `/private-network/${network}`],
  ['GET', '/instance'],
  ['GET', '/instance/INSTANCE'],
  ['PUT', `/private-network/${network}:detach`, { instance: { id: 'INSTANCE' } }],
  ['PUT', '/instance/INSTANCE', { labels: { b: '2' } }],
  ['DELETE', '/instance/INSTANCE/labels'],
  ['PUT', '/instance/INSTANCE:reboot'],
  ['PUT', '/instance/INSTANCE:stop'],
  ['PUT', '/instance/INSTANCE:start', {}],
  ['GET', '/operation/OPERATION'],
  ['GET', '/quota'],
  ['GET', '/quota/instance'],
  ['GET', '/sks-cluster'],
  ['GET', cluster],
  ['PUT', `${cluster}/nodepool/${nodepool}:scale`, { size: 3 }],
  ['GET', `${cluster}/nodepool/${nodepool}`],
  ['PUT', `${cluster}/nodepool/${nodepool}:evict`, { instances: ['NODEPOOL_MEMBER'] }],
  ['GET', `${cluster}/authority/kubelet/cert`],
  ['PUT', `${cluster}/generate-karpenter-nodepool`],
  ['PUT', `${cluster}/generate-karpenter-exoscale-nodeclass`],
  ['GET', '/instance-pool'],
  ['GET', `/instance-pool/${pool}`],
  ['PUT', `/instance-pool/${pool}:scale`, { size: 3 }],
  ['PUT', `/instance-pool/${pool}:evict`, { instances: ['POOL_MEMBER'] }],
  ['DELETE', '/instance/INSTANCE'],
]

test('every operation of the API document is served, and calls and answers are as the document says', {
  skip: documentMissing,
}, async () => {
  const document = readApiDocument()
  const world = walkedWorld()
  const seen = new Set<string | undefined>()
  const complaints: string[] = []
  const unwatch = watchExchanges((exchange) => {
    seen.add(document.operationIdOf(exchange))
    complaints.push(...document.requestComplaints(exchange), ...document.replyComplaints(exchange))
  })
  await walkThrough(world)
  unwatch()
  assert.deepEqual(complaints, [])
  assert.deepEqual(
    document.operationIds.filter((id) => !seen.has(id)),
    [],
  )
})

test('the document check sees what is wrong with path, method, query, body and answer', {
  skip: documentMissing,
}, () => {
  const document = readApiDocument()
  const json = { 'content-type': 'application/json' }
  const get = { method: 'GET', headers: {}, body: '', status: 200, reply: { zones: [] } }
  const put = { method: 'PUT', path: `/v2/instance/${nobody}`, headers: json, status: 200, reply: {} }
  const requests: readonly [Exchange, RegExp][] = [
    [{ ...get, path: '/v2/zones' }, /no operation/],
    [{ ...get, method: 'POST', path: '/v2/zone' }, /no operation/],
    [{ ...get, path: '/v2/zone?page=2' }, /query page is not declared/],
    [{ ...get, path: '/v2/instance?manager-type=nodepool' }, /manager-type is nodepool/],
    [{ ...get, path: '/v2/instance/twin' }, /id is no uuid/],
    [{ ...get, path: '/v2/zone', body: '{}' }, /a body where none is taken/],
    [{ ...put, body: '' }, /no body/],
    [{ ...put, body: '{' }, /not JSON/],
    [{ ...put, body: '{}', headers: {} }, /content-type/],
    [{ ...put, body: '{"label":{}}' }, /\$\.label is not declared/],
    [{ ...put, body: '{"name":""}' }, /\$\.name has 0 characters/],
    [{ ...put, body: '{"labels":{"a":1}}' }, /\$\.labels\.a is not a string/],
    [{ ...put, method: 'POST', path: '/v2/instance', body: '{}' }, /disk-size is missing/],
  ]
  for (const [exchange, said] of requests) assert.match(document.requestComplaints(exchange).join(), said)
  const answers: readonly [unknown, RegExp][] = [
    [{ zones: {} }, /zones is not a list/],
    [{ zones: [{ 'api-endpoint': 1 }] }, /api-endpoint is not a string/],
    [{ zones: [], more: true }, /more is not declared/],
    [{ zones: null }, /zones is null/],
  ]
  for (const [reply, said] of answers) {
    assert.match(document.replyComplaints({ ...get, path: '/v2/zone', reply }).join(), said)
  }
  assert.match(
    document.replyComplaints({ ...get, path: '/v2/zone', status: 404, reply: [] }).join(),
    /refusal/,
  )
})

async function walkThrough(world: ExoscaleFixture): Promise<void> {
  const call = async (method: string, path: string, body?: unknown) => {
    const reply = await world.ok(method, path, body)
    await world.clock.advance(1_000)
    return reply
  }
  const groups = (await call('GET', '/anti-affinity-group'))['anti-affinity-groups']
  const creation = await call(
    'POST',
    '/instance',
    world.body({
      labels: { a: '1' },
      'anti-affinity-groups': [{ id: groups[0].id }],
      'public-ip-assignment': 'dual',
    }),
  )
  const instance = await world.ok('GET', `/instance/${creation.reference.id}`)
  const members = world.cloud.instances().filter(({ instancePoolId }) => instancePoolId !== undefined)
  const names: Readonly<Record<string, string>> = {
    INSTANCE: instance.id,
    OPERATION: creation.id,
    TYPE: instance['instance-type'].id,
    TEMPLATE: instance.template.id,
    GROUP: groups[0].id,
    POOL_MEMBER: members.find(({ instancePoolId }) => instancePoolId === pool)?.id ?? '',
    NODEPOOL_MEMBER: members.find(({ instancePoolId }) => instancePoolId !== pool)?.id ?? '',
  }
  const named = (text: string) => text.replace(/[A-Z_]{4,}/g, (name) => names[name] ?? name)
  for (const [method, path, body] of walk) {
    await call(method, named(path), body && JSON.parse(named(JSON.stringify(body))))
  }
}

function walkedWorld(): ExoscaleFixture {
  const world = new ExoscaleFixture({
    seed: {
      securityGroups: [{ id: nobody, name: 'web' }],
      privateNetworks: [
        {
          id: network,
          name: 'lan',
          range: { startIp: '10.0.0.1', endIp: '10.0.0.9', netmask: '255.255.255.0' },
        },
      ],
      instancePools: [{ id: pool, name: 'batch', type: 'standard.small', size: 2 }],
      nodepools: [
        {
          id: nodepool,
          name: 'workers',
          type: 'standard.medium',
          size: 2,
          userData: userData(),
          labels: { a: 'b' },
          taints: { c: { value: 'd', effect: 'NoSchedule' } },
        },
      ],
    },
  })
  world.announce()
  return world
}
