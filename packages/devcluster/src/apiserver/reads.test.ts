import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { aConfigMap, aPod, configMapsPath, podsPath, TestServer } from './api-server.test-support.ts'

async function withConfigMaps(
  count: number,
  retention?: { maxChanges: number; maxAgeMs: number },
): Promise<TestServer> {
  const api = new TestServer(retention)
  for (let index = 0; index < count; index++)
    await api.call(
      'POST',
      configMapsPath,
      aConfigMap(`cm-${index}`, {}, { parity: index % 2 === 0 ? 'even' : 'odd' }),
    )
  return api
}

const namesOf = (list: { items: { metadata: { name: string } }[] }) =>
  list.items.map(({ metadata }) => metadata.name)
const typesOf = (events: { type: string; object: { metadata: { name: string } } }[]) =>
  events.map(({ type, object }) => `${type} ${object.metadata.name ?? ''}`.trim())

test('pages show the state of the first page whatever changes in between', async () => {
  const api = await withConfigMaps(5)
  const first = (await api.call('GET', `${configMapsPath}?limit=2`)).body
  await api.call('DELETE', `${configMapsPath}/cm-3`)
  await api.call('POST', configMapsPath, aConfigMap('cm-22'))
  const second = (await api.call('GET', `${configMapsPath}?limit=2&continue=${first.metadata.continue}`)).body
  const third = (await api.call('GET', `${configMapsPath}?limit=2&continue=${second.metadata.continue}`)).body
  assert.deepEqual([first, second, third].flatMap(namesOf), ['cm-0', 'cm-1', 'cm-2', 'cm-3', 'cm-4'])
  assert.equal(third.metadata.resourceVersion, first.metadata.resourceVersion)
  assert.equal(third.metadata.continue, undefined)
})

test('an expired page answers 410 with a token that goes on with the latest state', async () => {
  const api = await withConfigMaps(5, { maxChanges: 2, maxAgeMs: 1e9 })
  const first = (await api.call('GET', `${configMapsPath}?limit=2`)).body
  for (let index = 0; index < 5; index++)
    await api.merge(`${configMapsPath}/cm-0`, { data: { k: `${index}` } })
  const gone = await api.call('GET', `${configMapsPath}?limit=2&continue=${first.metadata.continue}`)
  assert.equal(gone.status, 410)
  assert.equal(gone.body.reason, 'Expired')
  const rest = await api.call('GET', `${configMapsPath}?continue=${gone.body.metadata.continue}`)
  assert.deepEqual(namesOf(rest.body), ['cm-2', 'cm-3', 'cm-4'])
})

test('label and field selectors choose; unknown fields are refused', async () => {
  const api = await withConfigMaps(4)
  const list = async (query: string) => namesOf((await api.call('GET', `${configMapsPath}?${query}`)).body)
  const encoded = (text: string) => `labelSelector=${encodeURIComponent(text)}`
  assert.deepEqual(await list(encoded('parity=even')), ['cm-0', 'cm-2'])
  assert.deepEqual(await list(encoded('parity!=even')), ['cm-1', 'cm-3'])
  assert.deepEqual(await list(encoded('parity in (even, odd),parity notin (odd)')), ['cm-0', 'cm-2'])
  assert.deepEqual(await list(encoded('!parity')), [])
  assert.deepEqual(await list(encoded('parity')), ['cm-0', 'cm-1', 'cm-2', 'cm-3'])
  assert.deepEqual(await list('fieldSelector=metadata.name%3Dcm-1'), ['cm-1'])
  const refused = await api.call('GET', `${configMapsPath}?fieldSelector=data.k%3D1`)
  assert.equal(refused.status, 400)
})

test('a watch continues from a list without missing or repeating anything', async () => {
  const api = await withConfigMaps(1)
  const { resourceVersion } = (await api.call('GET', configMapsPath)).body.metadata
  await api.merge(`${configMapsPath}/cm-0`, { data: { k: '1' } })
  const watch = api.watch(`${configMapsPath}?watch=true&resourceVersion=${resourceVersion}`)
  await api.call('POST', configMapsPath, aConfigMap('new'))
  await api.call('DELETE', `${configMapsPath}/cm-0`)
  await api.clock.advance(0)
  watch.stop()
  await watch.ended
  assert.deepEqual(typesOf(watch.events), ['MODIFIED cm-0', 'ADDED new', 'DELETED cm-0'])
})

test('objects enter and leave the selection of a watch', async () => {
  const api = await withConfigMaps(1)
  const watch = api.watch(`${configMapsPath}?watch=true&labelSelector=parity%3Deven`)
  await api.clock.advance(0)
  await api.merge(`${configMapsPath}/cm-0`, { metadata: { labels: { parity: 'odd' } } })
  await api.merge(`${configMapsPath}/cm-0`, { metadata: { labels: { parity: 'even' } } })
  await api.clock.advance(0)
  watch.stop()
  await watch.ended
  assert.deepEqual(typesOf(watch.events), ['ADDED cm-0', 'DELETED cm-0', 'ADDED cm-0'])
})

test('a streaming list ends with the bookmark that says so', async () => {
  const api = await withConfigMaps(2)
  const query = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
  const watch = api.watch(`${configMapsPath}?${query}`)
  await api.clock.advance(0)
  assert.deepEqual(typesOf(watch.events), ['ADDED cm-0', 'ADDED cm-1', 'BOOKMARK'])
  assert.equal(watch.events[2].object.metadata.annotations['k8s.io/initial-events-end'], 'true')
  await api.call('POST', podsPath, aPod('p'))
  await api.clock.advance(61_000)
  assert.equal(watch.events[3].type, 'BOOKMARK')
  assert.equal(watch.events[3].object.metadata.resourceVersion, String(api.server.store.revision))
  watch.stop()
  await watch.ended
})

test('a watch from compacted history is told to start again, also in the middle', async () => {
  const api = await withConfigMaps(5, { maxChanges: 2, maxAgeMs: 1e9 })
  const refused = await api.call('GET', `${configMapsPath}?watch=true&resourceVersion=1`)
  assert.equal(refused.status, 410)
  assert.equal(refused.body.reason, 'Expired')
  const { resourceVersion } = (await api.call('GET', configMapsPath)).body.metadata
  const watch = api.watch(`${configMapsPath}?watch=true&resourceVersion=${resourceVersion}`)
  await api.clock.advance(0)
  for (let index = 0; index < 6; index++)
    api.server.local.patch(kinds.configMap, 'default', 'cm-0', { data: { k: `${index}` } })
  await watch.ended
  assert.deepEqual(
    watch.events.map(({ type, object }) => [type, object.code]),
    [['ERROR', 410]],
  )
})

test('a watch ends after its timeout', async () => {
  const api = new TestServer()
  const watch = api.watch(`${configMapsPath}?watch=true&timeoutSeconds=5`)
  await api.clock.advance(6000)
  await watch.ended
})

test('tables and metadata are answered to those who ask', async () => {
  const api = new TestServer()
  await api.call('POST', podsPath, aPod('p'))
  const table = await api.call('GET', podsPath, undefined, {
    accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
  })
  assert.equal(table.body.kind, 'Table')
  assert.equal(table.body.rows[0].cells[0], 'p')
  assert.equal(table.body.rows[0].object.kind, 'PartialObjectMetadata')
  const metadata = await api.call('GET', podsPath, undefined, {
    accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  })
  assert.deepEqual(Object.keys(metadata.body.items[0]), ['kind', 'apiVersion', 'metadata'])
  const protobuf = await api.call('GET', podsPath, undefined, {
    accept: 'application/vnd.kubernetes.protobuf',
  })
  assert.equal(protobuf.status, 406)
})

test('discovery names every resource in both of its forms', async () => {
  const api = new TestServer()
  const list = (await api.call('GET', '/apis/apps/v1')).body
  assert.ok(list.resources.some(({ name }: { name: string }) => name === 'deployments/scale'))
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  const aggregated = await api.call('GET', '/apis', undefined, { accept })
  assert.equal(aggregated.headers['content-type'], accept)
  assert.ok(
    aggregated.body.items.some(({ metadata }: { metadata: { name: string } }) => metadata.name === 'apps'),
  )
})

test('RPT-42 requests need a valid credential; joining instances may do what Kubernetes lets them', async () => {
  const api = new TestServer()
  assert.equal((await api.call('GET', podsPath, undefined, { token: 'wrong' })).status, 401)
  const encode = (text: string) => Buffer.from(text).toString('base64')
  const data = {
    'token-id': encode('abcdef'),
    'token-secret': encode('0123456789abcdef'),
    expiration: encode('2026-01-01T01:00:00Z'),
    'usage-bootstrap-authentication': encode('true'),
    'auth-extra-groups': encode('system:bootstrappers:worker'),
  }
  await api.call('POST', '/api/v1/namespaces/kube-system/secrets', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'bootstrap-token-abcdef' },
    type: 'bootstrap.kubernetes.io/token',
    data,
  })
  const token = 'abcdef.0123456789abcdef'
  assert.deepEqual(api.server.authenticate({ authorization: `Bearer ${token}` }), {
    name: 'system:bootstrap:abcdef',
    groups: ['system:bootstrappers', 'system:bootstrappers:worker', 'system:authenticated'],
  })
  const status = async (method: string, path: string, body?: object) =>
    (await api.call(method, path, body, { token })).status
  assert.equal(await status('GET', podsPath), 403)
  assert.equal(await status('POST', podsPath, aPod('p')), 403)
  assert.equal(await status('GET', '/api/v1/nodes/not-there'), 404)
  assert.equal(await status('GET', '/api/v1/namespaces/kube-public/configmaps/cluster-info'), 404)
  assert.equal(
    await status('POST', '/apis/certificates.k8s.io/v1/certificatesigningrequests', {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name: 'node' },
      spec: {
        request: encode('request'),
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        usages: ['client auth'],
      },
    }),
    201,
  )
  await api.clock.advance(2 * 3600_000)
  assert.equal((await api.call('GET', podsPath, undefined, { token })).status, 401)
})

test('service account tokens are valid until they expire or their account goes', async () => {
  const api = new TestServer()
  const accounts = '/api/v1/namespaces/default/serviceaccounts'
  await api.call('POST', accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'bob' } })
  const { body } = await api.call('POST', `${accounts}/bob/token`, { spec: { expirationSeconds: 600 } })
  const { token } = body.status
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } }
  const reviews = '/apis/authentication.k8s.io/v1/tokenreviews'
  assert.equal(
    (await api.call('POST', reviews, review)).body.status.user.username,
    'system:serviceaccount:default:bob',
  )
  await api.clock.advance(601_000)
  assert.equal((await api.call('POST', reviews, review)).body.status.authenticated, false)
})

test('subscribers inside see every change once, in order, after the write', async () => {
  const { server, clock } = await withConfigMaps(1)
  const seen: string[] = []
  const stop = server.local.subscribe(kinds.configMap, {
    added: ({ metadata }) => seen.push(`added ${metadata.name}`),
    updated: ({ metadata }) => seen.push(`updated ${metadata.name}`),
    deleted: ({ metadata }) => seen.push(`deleted ${metadata.name}`),
  })
  server.local.patch(kinds.configMap, 'default', 'cm-0', { data: { k: 'v' } })
  server.local.delete(kinds.configMap, 'default', 'cm-0')
  assert.deepEqual(seen, [])
  await clock.advance(0)
  assert.deepEqual(seen, ['added cm-0', 'updated cm-0', 'deleted cm-0'])
  stop()
})

test('a path with an escape that stands for nothing is a bad request', async () => {
  const api = new TestServer()
  for (const path of [
    '/api/v1/namespaces/%zz/pods',
    '/api/v1/nodes/%',
    '/apis/apps/v1/deployments/%E0%A4%A',
  ]) {
    const { status, body } = await api.call('GET', path)
    assert.deepEqual([status, body.reason], [400, 'BadRequest'], path)
  }
})
