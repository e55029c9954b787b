import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestServer } from '../api-server.test-support.ts'

const protobuf = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
const path = '/openapi/v2'

async function bytesOf(server: TestServer, accept: string): Promise<Buffer> {
  const { body } = await server.send('GET', path, undefined, { accept })
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(Buffer.from(chunk as Uint8Array))
  return Buffer.concat(chunks)
}

test('OpenAPI 2 comes in the form that the client wants most', async () => {
  const server = new TestServer()
  const forms = {
    [protobuf]: protobuf,
    'application/com.github.proto-openapi.spec.v2@v1.0+protobuf': protobuf,
    [`application/json;q=0.5, ${protobuf}`]: protobuf,
    [`${protobuf};q=0.5, application/json`]: 'application/json',
    '*/*': 'application/json',
    'text/html, application/json': 'application/json',
  }
  for (const [accept, mediaType] of Object.entries(forms)) {
    const { status, headers } = await server.send('GET', path, undefined, { accept })
    assert.deepEqual([status, headers['content-type']], [200, mediaType], accept)
  }
})

test('what has no such form is refused with the forms there are', async () => {
  const server = new TestServer()
  const { status, body } = await server.call('GET', path, undefined, { accept: 'text/html' })
  assert.equal(status, 406)
  assert.match(body.message, /application\/json.*proto-openapi\.spec\.v2\.v1\.0\+protobuf/)
  const v3 = await server.call('GET', '/openapi/v3', undefined, { accept: protobuf })
  assert.equal(v3.status, 406)
})

test('the encoded document names custom resources as soon as they are served', async () => {
  const server = new TestServer()
  const before = await bytesOf(server, protobuf)
  assert.equal(before.includes('com.example.v1.Thing'), false)
  assert.ok(before.equals(await bytesOf(server, protobuf)))
  await server.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'things.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'things', kind: 'Thing' },
      versions: [
        { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
      ],
    },
  })
  assert.ok((await bytesOf(server, protobuf)).includes('com.example.v1.Thing'))
})

test('each form has a tag of its own, by which clients keep what has not changed', async () => {
  const server = new TestServer()
  const json = await server.send('GET', path)
  const encoded = await server.send('GET', path, undefined, { accept: protobuf })
  assert.notEqual(json.headers['etag'], encoded.headers['etag'])
  const headers = { authorization: 'Bearer admin', accept: protobuf }
  const again = await server.server.handle({
    method: 'GET',
    path,
    headers: { ...headers, 'if-none-match': encoded.headers['etag'] ?? '' },
  })
  assert.equal(again.status, 304)
})
