import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DocumentBody, DocumentStream, readText } from '@tenon/runtime'
import { aConfigMap, aPod, configMapsPath, podsPath, TestServer } from './api-server.test-support.ts'

async function documentAndText(api: TestServer, ...call: Parameters<TestServer['send']>) {
  const { body } = await api.send(...call)
  assert.ok(body instanceof DocumentBody)
  return { document: body.document, parsed: JSON.parse(await readText(body)) }
}

const merge = { contentType: 'application/merge-patch+json' }

test('what a client of this process is handed says the same as its text', async () => {
  const api = new TestServer()
  const calls: readonly Parameters<TestServer['send']>[] = [
    ['POST', configMapsPath, aConfigMap('a', { k: '1' })],
    ['POST', podsPath, aPod('p')],
    ['GET', `${podsPath}/p`],
    ['PATCH', `${podsPath}/p`, { metadata: { labels: { x: 'y' }, annotations: null } }, merge],
    ['PATCH', `${podsPath}/p/status`, { status: { phase: 'Running' } }, merge],
    ['GET', `${podsPath}?limit=1`],
    ['GET', configMapsPath],
    ['DELETE', `${podsPath}/p`],
  ]
  for (const call of calls) {
    const { document, parsed } = await documentAndText(api, ...call)
    assert.deepEqual(document, parsed, call.slice(0, 2).join(' '))
  }
})

test('a watch hands over the events that its text tells, those of one chunk together', async () => {
  const api = new TestServer()
  await api.call('POST', configMapsPath, aConfigMap('a'))
  const path = `${configMapsPath}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`
  const told = api.watch(path)
  const { body } = await api.send('GET', path)
  assert.ok(body instanceof DocumentStream)
  const handed: unknown[] = []
  const reading = (async () => {
    for await (const events of body.documents) handed.push(...events)
  })()
  await api.clock.advance(1)
  await api.merge(`${configMapsPath}/a`, { data: { k: '1' } })
  await api.call('DELETE', `${configMapsPath}/a`)
  await api.clock.advance(70_000)
  told.stop()
  api.server.stop()
  await Promise.all([reading, told.ended])
  assert.deepEqual(
    told.events.map(({ type }) => type),
    ['ADDED', 'BOOKMARK', 'MODIFIED', 'DELETED', 'BOOKMARK'],
  )
  assert.deepEqual(handed, told.events)
})

test('tables are text, and so are the metadata of objects', async () => {
  const api = new TestServer()
  for (const kind of ['Table', 'PartialObjectMetadataList']) {
    const accept = `application/json;as=${kind};g=meta.k8s.io;v=v1`
    const { body } = await api.send('GET', podsPath, undefined, { accept })
    assert.ok(!(body instanceof DocumentBody))
    assert.equal(JSON.parse(await readText(body)).kind, kind)
  }
})

test('a watch of one namespace goes on from where others have brought the collection', async () => {
  const api = new TestServer({ maxChanges: 3, maxAgeMs: 1 })
  await api.call('POST', '/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'far' },
  })
  const { body } = await api.call('GET', configMapsPath)
  const watch = api.watch(`${configMapsPath}?watch=true&resourceVersion=${body.metadata.resourceVersion}`)
  await api.clock.advance(1)
  for (let index = 0; index < 10; index++) {
    await api.call('POST', '/api/v1/namespaces/far/configmaps', aConfigMap(`cm-${index}`))
    await api.clock.advance(1000)
  }
  await api.call('POST', configMapsPath, aConfigMap('near'))
  await api.clock.advance(1)
  watch.stop()
  await watch.ended
  assert.deepEqual(
    watch.events.map(({ type, object }) => `${type} ${object.metadata.name}`),
    ['ADDED near'],
  )
})
