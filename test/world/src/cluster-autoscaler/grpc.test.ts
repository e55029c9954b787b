/** Calls of a user's own expander: against a gRPC server on a socket, and objects against an API server that reads them. */
import assert from 'node:assert/strict'
import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { Node, Pod } from '@tenon/api'
import { bestOptionsPath, callUnary, encodeObject } from '@tenon/cluster-autoscaler'
import { createCredentials } from '@tenon/devcluster'
import { createTestApiServer } from '@tenon/devcluster/test-api'
import { readText, SystemClock, VirtualClock } from '@tenon/runtime'

const clock = new SystemClock()
const { signal } = new AbortController()

/** With a member that decisions do not look at. */
const container = {
  name: 'c',
  image: 'i',
  resources: { requests: { cpu: '500m', memory: '1Gi' } },
  ports: [{ containerPort: 80, hostPort: 8080 }],
  readinessProbe: { httpGet: { path: '/', port: 'http' }, periodSeconds: 3 },
}

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'p',
    namespace: 'default',
    labels: { app: 'a', constructor: 'b' },
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: {
    priority: -10,
    nodeSelector: { zone: 'z' },
    tolerations: [{ key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 }],
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'size', operator: 'In', values: ['l', 'xl'] }] }],
        },
      },
    },
    volumes: [{ name: 'cache', emptyDir: { medium: 'Memory' } }],
    containers: [container],
  },
}

const node: Node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n', labels: { zone: 'z' } },
  spec: { providerID: 'cloud://n', taints: [{ key: 't', value: 'v', effect: 'NoSchedule' }] },
  status: { capacity: { cpu: '4', 'example.com/gpu': '1' } },
}

/** The bytes as a client sends them that knows an object's kind. */
function enveloped(kind: string, raw: Uint8Array): Uint8Array {
  const field = (number: number, content: Uint8Array) => {
    const head =
      content.length < 128 ? [content.length] : [(content.length & 0x7f) | 0x80, content.length >> 7]
    return Buffer.concat([Buffer.from([(number << 3) | 2, ...head]), content])
  }
  const type = Buffer.concat([field(1, Buffer.from('v1')), field(2, Buffer.from(kind))])
  return Buffer.concat([Buffer.from('k8s\0'), field(1, type), field(2, raw)])
}

/** Whether all of `part` is in `whole`. */
function assertHas(whole: unknown, part: unknown, path = ''): void {
  if (typeof part !== 'object' || part === null) {
    assert.deepEqual(whole, part, path)
    return
  }
  for (const [key, value] of Object.entries(part)) {
    assert.ok(typeof whole === 'object' && whole !== null && Object.hasOwn(whole, key), `${path}.${key}`)
    assertHas(Reflect.get(whole, key), value, `${path}.${key}`)
  }
}

test('objects are encoded as an API server reads them', async () => {
  const server = createTestApiServer({ clock: new VirtualClock() })
  const headers = { authorization: 'Bearer admin', 'content-type': 'application/vnd.kubernetes.protobuf' }
  for (const [path, object, bytes] of [
    ['/api/v1/namespaces/default/pods', pod, encodeObject('core.v1.Pod', pod)],
    ['/api/v1/nodes', node, encodeObject('core.v1.Node', node)],
  ] as const) {
    const body = enveloped(object.kind, bytes)
    const { status, body: answer } = await server.handle({ method: 'POST', path, headers, body })
    const text = await readText(answer)
    assert.equal(status, 201, text)
    const { metadata, spec } = JSON.parse(text) as { metadata: Record<string, unknown>; spec: unknown }
    const { creationTimestamp: _, ...given } = object.metadata
    assertHas(metadata, given)
    // The API server resolves the priority of a pod itself.
    const sent = Object.entries(object.spec ?? {}).filter(([name]) => name !== 'priority')
    assertHas(spec, Object.fromEntries(sent))
  }
})

interface Answering {
  readonly address: string
  readonly certificateAuthority: string
  readonly seen: { path: string; type: string; message: string }[]
}

/** A server that answers each call as the test says. */
async function serve(t: TestContext, answer: (stream: ServerHttp2Stream) => void): Promise<Answering> {
  const { certificateAuthority, server: keys } = await createCredentials(clock.now())
  const server = createSecureServer({ cert: keys.certificate, key: keys.privateKey.reveal() })
  const seen: { path: string; type: string; message: string }[] = []
  server.on('stream', (stream, headers) => {
    const chunks: Uint8Array[] = []
    stream.on('error', () => undefined)
    stream.on('data', (chunk: Uint8Array) => chunks.push(chunk))
    stream.on('end', () => {
      const message = Buffer.concat(chunks).subarray(5).toString()
      seen.push({ path: headers[':path'] ?? '', type: headers['content-type'] ?? '', message })
      answer(stream)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { address: `localhost:${port}`, certificateAuthority: certificateAuthority.certificate, seen }
}

function withTrailers(
  stream: ServerHttp2Stream,
  body: Uint8Array,
  trailers: Readonly<Record<string, string>>,
): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => {
    stream.sendTrailers(trailers)
  })
  stream.end(body)
}

const message = Buffer.from('hello')
const framed = Buffer.concat([Buffer.from([0, 0, 0, 0, 5]), message])

function call(
  { address, certificateAuthority }: Answering,
  timeoutMs = 5000,
  until = signal,
): Promise<Uint8Array> {
  const target = { address, certificateAuthority, clock, timeoutMs, mostBytes: 1000 }
  return callUnary(target, bestOptionsPath, message, until)
}

test('a call sends one message and answers the one that comes back', async (t) => {
  const server = await serve(t, (stream) => {
    withTrailers(stream, framed, { 'grpc-status': '0' })
  })
  assert.equal(Buffer.from(await call(server)).toString(), 'hello')
  assert.deepEqual(server.seen, [{ path: bestOptionsPath, type: 'application/grpc', message: 'hello' }])
})

test('a call that fails says why', async (t) => {
  const answers: readonly (readonly [RegExp, (stream: ServerHttp2Stream) => void])[] = [
    [
      /gRPC status 14: not now/,
      (stream) => {
        stream.respond(
          { ':status': 200, 'grpc-status': '14', 'grpc-message': 'not now' },
          { endStream: true },
        )
      },
    ],
    [
      /gRPC status 13: no message/,
      (stream) => {
        withTrailers(stream, Buffer.alloc(0), { 'grpc-status': '13' })
      },
    ],
    [
      /the server answered 503/,
      (stream) => {
        stream.respond({ ':status': 503 }, { endStream: true })
      },
    ],
    [
      /not one plain message/,
      (stream) => {
        withTrailers(stream, Buffer.from('xy'), { 'grpc-status': '0' })
      },
    ],
    [
      /longer than 1000 bytes/,
      (stream) => {
        withTrailers(stream, Buffer.alloc(2000), { 'grpc-status': '0' })
      },
    ],
  ]
  for (const [why, answer] of answers) await assert.rejects(call(await serve(t, answer)), why)
})

test('a server that hangs, is not there, or is not who it should be costs no more than the time-out', async (t) => {
  const silent = await serve(t, () => undefined)
  await assert.rejects(call(silent, 100), /no answer from localhost:\d+ within 100 ms/)
  const ending = new AbortController()
  const cutOff = call(silent, 5000, ending.signal)
  ending.abort(new Error('the process ends'))
  await assert.rejects(cutOff, /the process ends/)
  const { certificateAuthority } = await createCredentials(clock.now())
  const stranger = { ...silent, certificateAuthority: certificateAuthority.certificate }
  await assert.rejects(call(stranger), /certificate/)
  await assert.rejects(call({ ...silent, address: 'localhost:1' }), /ECONNREFUSED/)
})
