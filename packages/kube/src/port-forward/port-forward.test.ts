import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { readText, SystemClock } from '@tenon/runtime'
import { type WebSocket, WebSocketServer } from 'ws'
import { directKubeConfig } from '../config/load.ts'
import { isKubeError } from '../contract.ts'
import { FrameReader } from './frames.ts'
import { podTransport } from './pod-transport.ts'

/** An API server with one pod, as the kubelet's WebSocket port-forward behaves. */
interface FakeServer {
  readonly url: string
  readonly requests: { readonly path: string; readonly authorization: string; readonly protocol: string }[]
  /** Every message that came, to the byte. */
  readonly received: Buffer[]
}

type Pod = (socket: WebSocket, server: FakeServer) => void

async function aServer(
  t: TestContext,
  pod: Pod,
  refusal?: { status: number; body: string },
): Promise<FakeServer> {
  const http = createServer()
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (asked) => (asked.has('v4.channel.k8s.io') ? 'v4.channel.k8s.io' : false),
  })
  const fake: FakeServer = { url: await listening(t, http), requests: [], received: [] }
  http.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    fake.requests.push({
      path: request.url ?? '',
      authorization: request.headers.authorization ?? '',
      protocol: request.headers['sec-websocket-protocol'] ?? '',
    })
    if (refusal !== undefined) {
      const { status, body } = refusal
      socket.end(
        `HTTP/1.1 ${status} No\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      )
      return
    }
    sockets.handleUpgrade(request, socket, head, (opened) => {
      opened.on('message', (message: Buffer) => fake.received.push(message))
      pod(opened, fake)
    })
  })
  return fake
}

async function listening(t: TestContext, server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Port 8082, little-endian, on channel 0 (data) and 1 (errors). */
const confirmations = [Buffer.from([0, 0x92, 0x1f]), Buffer.from([1, 0x92, 0x1f])]

/** Joins the socket to a port of this host, in messages of `chunk` bytes at most. */
function joined(to: string, chunk = 1 << 16): Pod {
  return (socket) => {
    const { port } = new URL(to)
    const tcp = connect(Number(port), '127.0.0.1')
    for (const message of confirmations) socket.send(message)
    socket.on('message', (message: Buffer) => tcp.write(message.subarray(1)))
    socket.on('close', () => tcp.destroy())
    tcp.on('data', (bytes: Buffer) => {
      for (let at = 0; at < bytes.length; at += chunk)
        socket.send(Buffer.concat([Buffer.from([0]), bytes.subarray(at, at + chunk)]))
    })
    tcp.on('end', () => {
      socket.close()
    })
  }
}

function transportOf({ url }: FakeServer) {
  const config = directKubeConfig({ url, token: 'secret', source: 'test' }, new SystemClock())
  return podTransport(config, { namespace: 'tenon', pod: 'tenon-0', port: 8082 })
}

const get = (path: string) => ({ method: 'GET', path, headers: {} })

test('EXP-9 a page of a loopback port is read through the API server, with the credentials of the user', async (t) => {
  const pages = createServer((request, response) => response.end(`you asked for ${request.url}`))
  const fake = await aServer(t, joined(await listening(t, pages)))
  const { status, body } = await transportOf(fake).send(get('/debug/waiting'))
  assert.equal(status, 200)
  assert.equal(await readText(body), 'you asked for /debug/waiting')
  assert.deepEqual(fake.requests, [
    {
      path: '/api/v1/namespaces/tenon/pods/tenon-0/portforward?ports=8082',
      authorization: 'Bearer secret',
      protocol: 'v4.channel.k8s.io',
    },
  ])
  for (const message of fake.received) assert.equal(message[0], 0)
  const sent = Buffer.concat(fake.received.map((message) => message.subarray(1))).toString()
  assert.match(sent, /^GET \/debug\/waiting HTTP\/1\.1\r\n/)
  assert.match(sent, /\r\nconnection: close\r\n/i)
  assert.doesNotMatch(sent, /secret/)
})

test('EXP-9 a long page comes whole, in messages of any size, and a slow reader holds the pod back', async (t) => {
  const long = Buffer.alloc(3_000_000, 'x')
  const pages = createServer((_, response) => response.end(long))
  const fake = await aServer(t, joined(await listening(t, pages), 1013))
  const { body } = await transportOf(fake).send(get('/debug/snapshot'))
  let length = 0
  for await (const chunk of body) length += chunk.length
  assert.equal(length, long.length)
})

test('EXP-9 a refusal of the right is told as the server tells it', async (t) => {
  const message =
    'pods "tenon-0" is forbidden: User "dev" cannot get resource "pods/portforward" in API group "" in the namespace "tenon"'
  const body = JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    message,
    reason: 'Forbidden',
    code: 403,
  })
  const fake = await aServer(t, () => undefined, { status: 403, body })
  await assert.rejects(
    transportOf(fake).send(get('/')),
    (error) => isKubeError(error, 'forbidden') && error.serverMessage === message,
  )
})

test('EXP-9 a pod that does not listen is told by the error channel', async (t) => {
  const text = 'error forwarding port 8082 to pod abc, uid : connection refused'
  const fake = await aServer(t, (socket) => {
    for (const each of confirmations) socket.send(each)
    socket.send(Buffer.concat([Buffer.from([1]), Buffer.from(text)]))
  })
  await assert.rejects(
    transportOf(fake).send(get('/')),
    (error) =>
      isKubeError(error, 'transport') &&
      error.message.includes(text) &&
      error.message.includes('tenon/tenon-0'),
  )
})

test('EXP-9 what is not the protocol is refused, and so is an end before the port is confirmed', async (t) => {
  const cases: readonly (readonly [Pod, RegExp])[] = [
    [(socket) => socket.send(Buffer.from([0, 0x1f, 0x92])), /confirms port 37407 and not port 8082/],
    [(socket) => socket.send(Buffer.from([0, 1])), /confirms 1 bytes/],
    [(socket) => socket.send(Buffer.from([7, 1])), /channel 7/],
    [(socket) => socket.send(Buffer.alloc(0)), /channel none/],
    [(socket) => socket.close(), /closed before the port was confirmed/],
    [(socket) => socket.terminate(), /port-forward to port 8082 of pod tenon\/tenon-0/],
  ]
  for (const [pod, expected] of cases) {
    const fake = await aServer(t, pod)
    await assert.rejects(
      transportOf(fake).send(get('/')),
      (error) => isKubeError(error, 'transport') && expected.test(error.message),
      String(expected),
    )
  }
})

test('EXP-9 an abort ends an open port-forward', async (t) => {
  const closed = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<void>()
  const fake = await aServer(t, (socket) => {
    socket.on('close', () => {
      closed.resolve()
    })
    opened.resolve()
  })
  const ending = new AbortController()
  const answer = transportOf(fake).send(get('/'), ending.signal)
  await opened.promise
  ending.abort(new Error('enough'))
  await assert.rejects(answer, /enough/)
  await closed.promise
})

test('EXP-9 confirmations come in any order, before data and errors of their channels', () => {
  const reader = new FrameReader(8082)
  const [data = Buffer.alloc(0), errors = Buffer.alloc(0)] = confirmations
  assert.deepEqual(reader.read(errors), { kind: 'confirmation' })
  assert.equal(reader.isConfirmed, false)
  assert.deepEqual(reader.read(data), { kind: 'confirmation' })
  assert.equal(reader.isConfirmed, true)
  assert.deepEqual(reader.read(Buffer.from([0, 104, 105])), { kind: 'data', bytes: Buffer.from('hi') })
  assert.deepEqual(reader.read(Buffer.from([1, 104, 10])), { kind: 'error', text: 'h' })
})
