import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { type HttpRequest, Secret, VirtualClock } from '@tenon/runtime'
import { readExoscaleOptions } from '../options.ts'
import {
  clusterId,
  FakeCloud,
  type Fault,
  idOf,
  nodepoolId,
  poolId,
  templateId,
} from '../testing/fake-cloud.test-support.ts'
import { aWorld } from '../testing/world.test-support.ts'
import { ExoscaleClient } from './client.ts'
import { connectExoscale } from './endpoint.ts'
import { type ExoscaleApiError, ExoscaleTransportError } from './errors.ts'
import { pollIntervalSeconds } from './operations.ts'
import { authorization } from './signature.ts'

const key = 'EXOtenon0000000000000000001'
const secret = new Secret(
  createHash('sha256').update('tenon exoscale signing vectors').digest('hex').slice(0, 43),
)
const sign = (method: string, path: string, body = '') =>
  authorization({ method, path, body, expires: 1_800_000_000 }, { key, secret })
const instanceBody =
  '{"name":"pool-a1","disk-size":50,"instance-type":{"id":"b6e9d1e8-89fc-4db3-aaa4-9b4c5b1d0844"},"template":{"id":"11111111-2222-4333-8444-555555555555"},"labels":{"exoscale.com/managed-by":"karpenter","note":"café"}}'
const query =
  'manager-type=instance-pool&labels=exoscale.com%2Fmanaged-by%3Dkarpenter&manager-id=6f1f2b6e-3a53-4a5f-9d0e-0f4f6a2d1c11'
const aRequest = {
  name: 'a',
  'disk-size': 50,
  'instance-type': { id: idOf(1) },
  template: { id: templateId },
}
const pool =
  '/v2/sks-cluster/aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee/nodepool/99999999-8888-4777-8666-555555555555:scale'

describe('signature', () => {
  it('EXO-103 the five vectors match', () => {
    assert.equal(
      sign('GET', '/v2/instance-type'),
      `EXO2-HMAC-SHA256 credential=${key},expires=1800000000,signature=QKMoDDR2tYz4i253wM/7b7MInaHeiCMxKn4jTQur+0g=`,
    )
    assert.match(
      sign('GET', `/v2/instance?${query}`),
      /signed-query-args=labels;manager-id;manager-type,expires=1800000000,signature=2PA\+zm\+cpFEIlTKutHO1nIq0ZJX\/6dLjOlWfcemIvn0=$/,
    )
    assert.match(sign('POST', '/v2/instance', instanceBody), /asD0dKjTnryRCFklesegVFdFry0EN2tFvWMzATZd0HA=$/)
    assert.match(sign('PUT', pool, '{"size":3}'), /ZrNwccSyuGLQnToHoZxu5gnlsKb7hXgVcsMB\+2K0JQs=$/)
    assert.match(
      sign('DELETE', '/v2/instance/0b12cb6b-7e3e-4c0e-9e10-1e5d8a7c4b2a'),
      /o5fS\+15bbrz\+k7QEPdTzf9aifMf2HEhlqe6Smo8ah0M=$/,
    )
  })

  it('EXO-104 parameters b then a are signed as a;b', () => {
    assert.match(sign('GET', '/v2/x?b=1&a=2'), /signed-query-args=a;b/)
  })

  it('EXO-105 a repeated parameter is left out, EXO-142 an empty one is listed', () => {
    assert.match(sign('GET', '/v2/x?a=1&a=2&b=3'), /signed-query-args=b,/)
    assert.match(sign('GET', '/v2/x?b='), /signed-query-args=b,/)
  })
})

describe('retries', () => {
  it('EXO-106 Retry-After 2 on 429 means 2 s, and each attempt is signed anew', async () => {
    const { api, cloud, clock, settle } = aWorld()
    const start = clock.now()
    cloud.disturb('GET', /instance-type/, { status: 429, headers: { 'retry-after': '2' } })
    await settle(api.listInstanceTypes())
    assert.equal(clock.now() - start, 2000)
    const [first, second] = cloud.requests.map((request: HttpRequest) => request.headers.authorization)
    assert.notEqual(first, second)
  })

  it('EXO-107 four 503 then 200 succeeds, five fail with their status', async () => {
    const { api, cloud, settle } = aWorld()
    const refused = { status: 503 }
    cloud.disturb('GET', /zone/, refused, refused, refused, refused)
    assert.equal((await settle(api.listZones())).length, 1)
    cloud.disturb('GET', /zone/, refused, refused, refused, refused, refused)
    await assert.rejects(settle(api.listZones()), { status: 503 })
  })

  it('EXO-108 501, 400 and 404 are final', async () => {
    for (const status of [501, 400, 404]) {
      const { api, cloud, settle } = aWorld()
      cloud.disturb('GET', /zone/, { status })
      await assert.rejects(settle(api.listZones()), { status })
      assert.equal(cloud.calls.length, 1)
    }
  })

  it('EXO-109 a POST whose connection dropped is not repeated', async () => {
    const { api, cloud, settle } = aWorld()
    cloud.disturb('POST', /instance/, 'dropped')
    await assert.rejects(settle(api.createInstance(aRequest)), { name: 'ExoscaleTransportError' })
    assert.equal(cloud.calls.length, 1)
  })

  it('EXO-138 503 with Retry-After 45 waits 45 s', async () => {
    const { api, cloud, clock, settle } = aWorld()
    const start = clock.now()
    cloud.disturb('GET', /zone/, { status: 503, headers: { 'retry-after': '45' } })
    await settle(api.listZones())
    assert.equal(clock.now() - start, 45_000)
  })

  it('an aborted call ends at once', async () => {
    const { api, cloud, settle } = aWorld()
    cloud.disturb('GET', /zone/, { status: 503 })
    const stopping = new AbortController()
    const call = api.listZones(stopping.signal)
    stopping.abort(new Error('stopped'))
    await assert.rejects(settle(call), { message: 'stopped' })
  })
})

describe('every method', () => {
  it('calls its operation, and ends at once when its signal aborts', async () => {
    const { api, cloud, settle } = aWorld()
    const [group, network] = [cloud.addGroup('security-group', 'a'), cloud.addGroup('private-network', 'a')]
    const spread = cloud.addGroup('anti-affinity-group', 'a')
    const made = await settle(api.createInstance(aRequest))
    const id = made.reference?.id ?? ''
    const methods: Readonly<Record<string, (signal?: AbortSignal) => Promise<unknown>>> = {
      listZones: (signal) => api.listZones(signal),
      listInstanceTypes: (signal) => api.listInstanceTypes(signal),
      getTemplate: (signal) => api.getTemplate(templateId, signal),
      getActiveNodepoolTemplate: (signal) => api.getActiveNodepoolTemplate('1.34.1', 'standard', signal),
      listSecurityGroups: (signal) => api.listSecurityGroups(signal),
      getSecurityGroup: (signal) => api.getSecurityGroup(group, signal),
      listAntiAffinityGroups: (signal) => api.listAntiAffinityGroups(signal),
      getAntiAffinityGroup: (signal) => api.getAntiAffinityGroup(spread, signal),
      listPrivateNetworks: (signal) => api.listPrivateNetworks(signal),
      getPrivateNetwork: (signal) => api.getPrivateNetwork(network, signal),
      attachInstanceToPrivateNetwork: (signal) => api.attachInstanceToPrivateNetwork(network, id, signal),
      listInstances: (signal) => api.listInstances(signal),
      getInstance: (signal) => api.getInstance(id, signal),
      createInstance: (signal) => api.createInstance(aRequest, signal),
      updateInstance: (signal) => api.updateInstance(id, { labels: { a: 'b' } }, signal),
      listInstancePools: (signal) => api.listInstancePools(signal),
      getInstancePool: (signal) => api.getInstancePool(poolId, signal),
      scaleInstancePool: (signal) => api.scaleInstancePool(poolId, { size: 1 }, signal),
      evictInstancePoolMembers: (signal) => api.evictInstancePoolMembers(poolId, { instances: [id] }, signal),
      listSksClusters: (signal) => api.listSksClusters(signal),
      scaleSksNodepool: (signal) => api.scaleSksNodepool(clusterId, nodepoolId, { size: 1 }, signal),
      evictSksNodepoolMembers: (signal) =>
        api.evictSksNodepoolMembers(clusterId, nodepoolId, { instances: [id] }, signal),
      getQuota: (signal) => api.getQuota('instance', signal),
      getOperation: (signal) => api.getOperation(made.id, signal),
      waitForOperation: (signal) => api.waitForOperation(made, { signal }),
      rebootInstance: (signal) => api.rebootInstance(id, signal),
      deleteInstance: (signal) => api.deleteInstance(id, signal),
    }
    const own = Object.getOwnPropertyNames(ExoscaleClient.prototype).filter((name) => name !== 'constructor')
    assert.deepEqual(Object.keys(methods).toSorted(), own.toSorted(), 'each method is called here')
    for (const call of Object.values(methods)) await settle(call())
    const before = cloud.calls.length
    const stopped = AbortSignal.abort(new Error('stopped'))
    for (const [name, call] of Object.entries(methods)) {
      await assert.rejects(settle(call(stopped)), { message: 'stopped' }, name)
    }
    assert.equal(cloud.calls.length, before, 'nothing is sent')
  })

  it('gives up an attempt after a minute without an answer, and tries a read again', async () => {
    const { api, cloud, clock, settle } = aWorld()
    const start = clock.now()
    cloud.disturb('GET', /zone/, 'silent')
    assert.equal((await settle(api.listZones())).length, 1)
    assert.equal(clock.now() - start, 61_000)
    cloud.disturb('POST', /instance/, 'silent')
    await assert.rejects(settle(api.createInstance(aRequest)), {
      name: 'ExoscaleTransportError',
      neverSent: false,
      message: /no answer within 60 s/,
    })
    assert.equal(cloud.callsTo('POST', /instance/).length, 1)
    cloud.disturb('PUT', /reboot/, 'silent')
    await assert.rejects(settle(api.rebootInstance(poolId)), { name: 'ExoscaleTransportError' })
    assert.equal(cloud.callsTo('PUT', /reboot/).length, 1)
  })

  it('waits no longer than it is told for an operation that hangs', async () => {
    const { api, cloud, clock, settle } = aWorld()
    cloud.pollsPerOperation = 1_000
    const operation = await settle(api.createInstance(aRequest))
    const start = clock.now()
    await assert.rejects(settle(api.waitForOperation(operation, { timeoutMs: 30_000 })), {
      name: 'ExoscaleOperationError',
      reason: 'deadline',
      referenceId: operation.reference?.id,
    })
    assert.ok(clock.now() - start <= 30_000)
  })
})

describe('errors', () => {
  const failing = async (status: number, body: string): Promise<ExoscaleApiError> => {
    const { api, cloud, settle } = aWorld()
    cloud.disturb('GET', /zone/, { status, body })
    return settle(api.listZones()).then(
      () => assert.fail('expected an error'),
      (error: ExoscaleApiError) => error,
    )
  }

  it('EXO-110 plain text becomes the message', async () => {
    assert.match((await failing(400, 'service unavailable')).message, /service unavailable/)
  })

  it('EXO-111 error, and title, detail and errors of RFC 9457, are kept', async () => {
    assert.match((await failing(400, '{"error":"x"}')).message, /: x$/)
    const problem = await failing(
      422,
      '{"title":"T","detail":"D","errors":["e1",{"detail":"e2","location":"$.a"},{"message":"e3"}]}',
    )
    assert.match(problem.message, /T: D; e1; \$\.a: e2; e3$/)
  })

  it('EXO-137 JSON that is not an object keeps the status', async () => {
    for (const body of ['"gone"', '[]']) assert.equal((await failing(404, body)).code, 'not-found')
  })
})

describe('answers', () => {
  const id = idOf(1)
  const instance = { id, labels: {}, state: 'running' }
  const operation = { id: idOf(9), state: 'success', reference: { id } }
  const form = { 'content-type': 'application/json' }
  const anywhere: readonly Fault[] = [
    ...['', '{}', '[]', 'null', '"x"', '{"id":"4000', '<html></html>'].map((body) => ({
      status: 200,
      body,
      headers: form,
    })),
    { status: 200, body: JSON.stringify(instance), headers: { 'content-type': 'text/html' } },
    { status: 302, body: '', headers: { location: 'https://login.example.com/' } },
    { status: 204, body: '' },
    { status: 404, body: '<html>', headers: { 'content-type': 'text/html' } },
    { status: 200, body: JSON.stringify({ id: idOf(2), labels: {}, state: 'success' }) },
  ]
  const answer = (body: object): Fault => ({ status: 200, body: JSON.stringify(body) })
  const another = answer({ ...operation, reference: { id: idOf(2) } })
  const calls: readonly [string, readonly Fault[], (api: ExoscaleClient) => Promise<unknown>][] = [
    ['zones', [answer({ zones: [{}] })], (api) => api.listZones()],
    ['types', [answer({ 'instance-types': [null] })], (api) => api.listInstanceTypes()],
    ['template', [], (api) => api.getTemplate(id)],
    [
      'active template',
      [answer({ 'active-template': '' })],
      (api) => api.getActiveNodepoolTemplate('1', 'standard'),
    ],
    ['security groups', [answer({ 'private-networks': [] })], (api) => api.listSecurityGroups()],
    ['security group', [], (api) => api.getSecurityGroup(id)],
    ['groups', [answer({ instances: [] })], (api) => api.listAntiAffinityGroups()],
    ['group', [], (api) => api.getAntiAffinityGroup(id)],
    ['networks', [answer({ 'private-networks': null })], (api) => api.listPrivateNetworks()],
    ['network', [], (api) => api.getPrivateNetwork(id)],
    [
      'instances',
      [answer({ instances: [{ id: 'undefined' }] }), answer({ instances: [{ id, labels: 'a' }] })],
      (api) => api.listInstances(),
    ],
    ['instance', [answer({ ...instance, labels: [] })], (api) => api.getInstance(id)],
    [
      'create',
      [answer({ ...operation, state: 'fine' }), answer(instance)],
      (api) => api.createInstance(aRequest),
    ],
    ['update', [another], (api) => api.updateInstance(id, {})],
    ['delete', [another], (api) => api.deleteInstance(id)],
    [
      'attach',
      [answer({ ...operation, reference: 'a' })],
      (api) => api.attachInstanceToPrivateNetwork(id, id),
    ],
    ['quota', [], (api) => api.getQuota('instance')],
    ['operation', [answer(operation)], (api) => api.getOperation(id)],
  ]

  for (const [name, own, call] of calls) {
    it(`RPT-34 ${name}: nothing but what was asked for is believed`, async () => {
      for (const [i, fault] of [...anywhere, ...own].entries()) {
        // Which operation a write starts, only the answer tells.
        const startsOperation = ['create', 'attach', 'update', 'delete'].includes(name)
        if (i === anywhere.length - 1 && startsOperation) continue
        const { api, cloud, settle } = aWorld()
        cloud.disturb('GET', /./, fault, fault, fault, fault, fault)
        cloud.disturb('PUT', /./, fault, fault, fault, fault, fault)
        cloud.disturb('DELETE', /./, fault, fault, fault, fault, fault)
        cloud.disturb('POST', /./, fault)
        await assert.rejects(settle(call(api)), ExoscaleTransportError, `${i}`)
        assert.equal(cloud.calls.length, name === 'create' ? 1 : 5, 'repeated where it does no harm')
      }
    })
  }
})

describe('operations', () => {
  const pending = { id: idOf(404), state: 'pending' } as const

  it('EXO-112 polls at 3 s or more until success', async () => {
    const { api, cloud, clock, settle } = aWorld()
    cloud.pollsPerOperation = 2
    const start = clock.now()
    const ended = await settle(
      api.createInstance(aRequest).then((operation) => api.waitForOperation(operation)),
    )
    assert.equal(ended.reference?.id, [...cloud.instances.keys()][0])
    assert.equal(clock.now() - start, 6000)
  })

  it('EXO-113 EXO-116 failure carries reason and message, also when it arrives so', async () => {
    const { api, settle } = aWorld()
    const failed = { id: 'op', state: 'failure', reason: 'busy', message: 'try later' } as const
    await assert.rejects(settle(api.waitForOperation(failed)), { reason: 'busy', message: /busy: try later/ })
  })

  it('EXO-114 five poll errors in a row end the wait', async () => {
    const { api, cloud, settle } = aWorld()
    await assert.rejects(settle(api.waitForOperation(pending)), { status: 404 })
    assert.equal(cloud.callsTo('GET', /operation/).length, 5)
  })

  it('EXO-115 intervals grow from 3 to 60 s', () => {
    assert.deepEqual([10, 60, 300, 900, 5000].map(pollIntervalSeconds), [3, 4, 20, 60, 60])
  })
})

describe('endpoint', () => {
  const connect = async (env: Record<string, string>) => {
    const clock = new VirtualClock()
    const read = readExoscaleOptions({
      EXOSCALE_ZONE: 'de-fra-1',
      EXOSCALE_SKS_CLUSTER_ID: clusterId,
      EXOSCALE_API_KEY: key,
      EXOSCALE_API_SECRET: 'x',
      ...env,
    })
    if (!('ok' in read)) throw new Error(read.error)
    const opened: string[] = []
    const cloud = new FakeCloud(clock)
    cloud.zones = [
      { name: 'ch-gva-2', 'api-endpoint': 'https://api-ch-gva-2.exoscale.com/v2' },
      { name: 'de-fra-1', 'api-endpoint': 'https://api-de-fra-1.exoscale.com/v2' },
    ]
    const open = (endpoint: string) => {
      opened.push(new URL(endpoint).hostname)
      return cloud
    }
    await connectExoscale({ options: read.ok, connect: open, clock })
    return { opened, cloud }
  }

  it('EXO-117 EXO-118 endpoint wins over ppapi, ppapi over the zone, anything else is ignored', async () => {
    const own = { EXOSCALE_API_ENDPOINT: 'http://localhost:1/v2' }
    assert.deepEqual((await connect({ ...own, EXOSCALE_API_ENVIRONMENT: 'ppapi' })).opened, ['localhost'])
    assert.deepEqual((await connect({ EXOSCALE_API_ENVIRONMENT: 'ppapi' })).opened, [
      'ppapi-ch-gva-2.exoscale.com',
    ])
    const staging = await connect({ EXOSCALE_API_ENVIRONMENT: 'staging' })
    assert.deepEqual(staging.opened, ['api-ch-gva-2.exoscale.com', 'api-de-fra-1.exoscale.com'])
  })

  it('EXO-119 an unknown zone is answered with the known ones', async () => {
    await assert.rejects(connect({ EXOSCALE_ZONE: 'xx-1' }), /xx-1.*ch-gva-2, de-fra-1/)
  })

  it('EXO-120 a cluster id that is no UUID names the variable', () => {
    const read = readExoscaleOptions({ EXOSCALE_ZONE: 'a', EXOSCALE_SKS_CLUSTER_ID: 'abc' })
    assert.ok('error' in read && read.error.includes('EXOSCALE_SKS_CLUSTER_ID'))
  })

  it('EXO-122 unknown fields and values do no harm', async () => {
    const { api, cloud, settle } = aWorld()
    cloud.isBeyondDocument = true
    cloud.types.push({ id: 'z', family: 'novel', size: 'odd', extra: [1] } as never)
    assert.equal((await settle(api.listInstanceTypes())).length, cloud.types.length)
  })
})
