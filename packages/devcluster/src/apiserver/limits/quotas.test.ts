import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, aConfigMap, configMapsPath, podsPath, TestServer } from '../api-server.test-support.ts'

const quotasPath = '/api/v1/namespaces/default/resourcequotas'

async function aServer(spec: object, name = 'compute'): Promise<TestServer> {
  const server = new TestServer()
  await quota(server, spec, name)
  return server
}

async function quota(server: TestServer, spec: object, name: string): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name }, spec }
  const answer = await server.call('POST', quotasPath, body)
  assert.equal(answer.status, 201, answer.body.message)
}

function pod(server: TestServer, name: string, resources: object = {}, spec: object = {}): Promise<Answer> {
  return server.call('POST', podsPath, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'app', image: 'app:1', resources }], ...spec },
  })
}

async function used(server: TestServer, name = 'compute'): Promise<Record<string, string>> {
  await server.clock.advance(1000)
  return (await server.call('GET', `${quotasPath}/${name}`)).body.status.used
}

test('RPT-59 a quota refuses what exceeds it, in the words of Kubernetes, and its status counts', async () => {
  const hard = { 'requests.cpu': '1', 'requests.memory': '1Gi', pods: '10' }
  const server = await aServer({ hard })
  assert.deepEqual(await used(server), { 'requests.cpu': '0', 'requests.memory': '0', pods: '0' })
  const half = { requests: { cpu: '500m', memory: '300Mi' } }
  assert.equal((await pod(server, 'a', half)).status, 201)
  assert.equal((await pod(server, 'b', half)).status, 201)
  assert.deepEqual(await used(server), { 'requests.cpu': '1', 'requests.memory': '600Mi', pods: '2' })
  const third = await pod(server, 'c', half)
  assert.deepEqual(
    [third.status, third.body.reason, third.body.message],
    [
      403,
      'Forbidden',
      'pods "c" is forbidden: exceeded quota: compute, requested: requests.cpu=500m, used: requests.cpu=1, limited: requests.cpu=1',
    ],
  )
  await server.call('DELETE', `${podsPath}/a?gracePeriodSeconds=0`)
  assert.deepEqual(await used(server), { 'requests.cpu': '500m', 'requests.memory': '300Mi', pods: '1' })
  assert.equal((await pod(server, 'c', half)).status, 201)
  const { body } = await server.call('GET', `${quotasPath}/compute`)
  assert.deepEqual(body.status.hard, hard)
})

test('ASK-29 a resize of a pod in place is bounded by quotas and LimitRanges as its creation is', async () => {
  const server = await aServer({ hard: { 'requests.cpu': '2' } })
  const limits = [{ type: 'Container', max: { cpu: '1500m' } }]
  const range = { apiVersion: 'v1', kind: 'LimitRange', metadata: { name: 'r' }, spec: { limits } }
  await server.call('POST', '/api/v1/namespaces/default/limitranges', range)
  for (const name of ['a', 'b'])
    assert.equal((await pod(server, name, { requests: { cpu: '500m' }, limits: { cpu: '1' } })).status, 201)
  const resize = (cpu: string, most = '1') =>
    server.call(
      'PATCH',
      `${podsPath}/a/resize`,
      { spec: { containers: [{ name: 'app', resources: { requests: { cpu }, limits: { cpu: most } } }] } },
      { contentType: 'application/strategic-merge-patch+json' },
    )
  assert.match((await resize('1600m', '1600m')).body.message, /maximum cpu usage per Container is 1500m/)
  const larger = await resize('1500m', '1500m')
  assert.equal(larger.status, 200, larger.body.message)
  assert.equal((await used(server))['requests.cpu'], '2')
  await pod(server, 'c', { requests: { cpu: '500m' }, limits: { cpu: '1' } })
  await server.call('DELETE', `${podsPath}/b?gracePeriodSeconds=0`)
  assert.equal((await resize('500m')).status, 200)
  assert.equal((await pod(server, 'd', { requests: { cpu: '1' }, limits: { cpu: '1' } })).status, 201)
  const over = await resize('1100m', '1100m')
  assert.deepEqual([over.status, /exceeded quota: compute/.test(over.body.message)], [403, true])
})

test('RPT-59 where a quota bounds a resource, every container has to state it', async () => {
  const server = await aServer({ hard: { 'limits.cpu': '4', memory: '4Gi' } })
  const { status, body } = await pod(server, 'a')
  assert.equal(status, 403)
  assert.equal(
    body.message,
    'pods "a" is forbidden: failed quota: compute: must specify limits.cpu for: app; memory for: app',
  )
  const stated = { limits: { cpu: '1' }, requests: { memory: '1Gi' } }
  assert.equal((await pod(server, 'a', stated)).status, 201)
})

test('RPT-59 a LimitRange supplies what a quota wants stated', async () => {
  const server = await aServer({ hard: { 'requests.cpu': '1' } })
  await server.call('POST', '/api/v1/namespaces/default/limitranges', {
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'defaults' },
    spec: { limits: [{ type: 'Container', defaultRequest: { cpu: '600m' } }] },
  })
  assert.equal((await pod(server, 'a')).status, 201)
  assert.match((await pod(server, 'b')).body.message, /requested: requests.cpu=600m, used: requests.cpu=600m/)
})

test('RPT-59 pods that ended take nothing of a quota, but still count as objects', async () => {
  const server = await aServer({ hard: { pods: '1', 'count/pods': '2' } })
  assert.equal((await pod(server, 'a')).status, 201)
  await server.merge(`${podsPath}/a/status`, { status: { phase: 'Succeeded' } })
  assert.deepEqual(await used(server), { pods: '0', 'count/pods': '1' })
  assert.equal((await pod(server, 'b')).status, 201)
  assert.match(
    (await pod(server, 'c')).body.message,
    /requested: count\/pods=1,pods=1, used: count\/pods=2,pods=1/,
  )
})

test('RPT-59 a quota with scopes bounds the pods in them', async () => {
  const cases: readonly [
    object,
    { resources?: object; spec?: object },
    { resources?: object; spec?: object },
  ][] = [
    [{ scopes: ['BestEffort'] }, {}, { resources: { requests: { cpu: '1m' } } }],
    [{ scopes: ['NotBestEffort'] }, { resources: { requests: { cpu: '1m' } } }, {}],
    [{ scopes: ['Terminating'] }, { spec: { activeDeadlineSeconds: 60 } }, {}],
    [{ scopes: ['NotTerminating'] }, {}, { spec: { activeDeadlineSeconds: 60 } }],
    [
      {
        scopeSelector: {
          matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }],
        },
      },
      { spec: { priorityClassName: 'high' } },
      { spec: { priorityClassName: 'low' } },
    ],
    [
      { scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'Exists' }] } },
      { spec: { priorityClassName: 'low' } },
      {},
    ],
  ]
  for (const [scope, inside, outside] of cases) {
    const server = await aServer({ hard: { pods: '0' }, ...scope })
    for (const [name, value] of [
      ['high', 1000],
      ['low', 10],
    ] as const)
      await server.call('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', {
        apiVersion: 'scheduling.k8s.io/v1',
        kind: 'PriorityClass',
        metadata: { name },
        value,
      })
    const refused = await pod(server, 'in', inside.resources, inside.spec)
    assert.match(refused.body.message, /exceeded quota: compute/, JSON.stringify(scope))
    assert.equal(
      (await pod(server, 'out', outside.resources, outside.spec)).status,
      201,
      JSON.stringify(scope),
    )
  }
})

test('RPT-59 objects of any kind are counted', async () => {
  const hard = { 'count/configmaps': '1', 'count/deployments.apps': '0', secrets: '0' }
  const server = await aServer({ hard }, 'objects')
  assert.equal((await server.call('POST', configMapsPath, aConfigMap('one'))).status, 201)
  const second = await server.call('POST', configMapsPath, aConfigMap('two'))
  assert.equal(
    second.body.message,
    'configmaps "two" is forbidden: exceeded quota: objects, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1',
  )
  const changed = await server.merge(`${configMapsPath}/one`, { data: { more: 'text' } })
  assert.equal(changed.status, 200)
  const deployment = await server.call('POST', '/apis/apps/v1/namespaces/default/deployments', {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'a', image: 'a' }] } },
    },
  })
  assert.match(deployment.body.message, /^deployments.apps "web" is forbidden: exceeded quota: objects/)
})

test('RPT-59 claims and services are bounded, and so is a change that takes more', async () => {
  const hard = {
    'requests.storage': '10Gi',
    'disks.storageclass.storage.k8s.io/requests.storage': '4Gi',
    'services.loadbalancers': '1',
    'services.nodeports': '1',
  }
  const server = await aServer({ hard }, 'objects')
  const claim = (name: string, storageClassName: string, storage: string) =>
    server.call('POST', '/api/v1/namespaces/default/persistentvolumeclaims', {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name },
      spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
    })
  assert.equal((await claim('a', 'disks', '4Gi')).status, 201)
  assert.match(
    (await claim('b', 'disks', '1Gi')).body.message,
    /requested: disks.storageclass.storage.k8s.io\/requests.storage=1Gi, used: [^ ]+=4Gi, limited: [^ ]+=4Gi/,
  )
  assert.match(
    (await claim('c', 'other', '7Gi')).body.message,
    /requested: requests.storage=7Gi, used: requests.storage=4Gi/,
  )
  const servicesPath = '/api/v1/namespaces/default/services'
  const service = (name: string, type: string) =>
    server.call('POST', servicesPath, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { type, ports: [{ port: 80 }] },
    })
  assert.equal((await service('web', 'LoadBalancer')).status, 201)
  assert.match((await service('api', 'NodePort')).body.message, /requested: services.nodeports=1/)
  assert.equal((await service('api', 'ClusterIP')).status, 201)
  const changed = await server.merge(`${servicesPath}/api`, { spec: { type: 'LoadBalancer' } })
  assert.equal(changed.status, 403)
  assert.match(changed.body.message, /requested: services.loadbalancers=1,services.nodeports=1/)
})

test('RPT-59 a quota that comes later counts what is there, and a changed one binds at once', async () => {
  const server = new TestServer()
  for (const name of ['a', 'b']) assert.equal((await pod(server, name)).status, 201)
  await quota(server, { hard: { pods: '3' } }, 'late')
  assert.deepEqual(await used(server, 'late'), { pods: '2' })
  await server.merge(`${quotasPath}/late`, { spec: { hard: { pods: '2' } } })
  assert.match((await pod(server, 'c')).body.message, /used: pods=2, limited: pods=2/)
  await server.call('DELETE', `${quotasPath}/late`)
  assert.equal((await pod(server, 'c')).status, 201)
})
