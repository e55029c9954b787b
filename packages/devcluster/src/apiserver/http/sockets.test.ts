import assert from 'node:assert/strict'
import { request } from 'node:https'
import { connect } from 'node:net'
import { memoryUsage } from 'node:process'
import { test } from 'node:test'
import { connect as tls } from 'node:tls'
import { type HttpHandler, type SocketServer, oneChunk, serveHttps } from '@tenon/runtime'
import { createCredentials, type Credentials } from './tls.ts'

function serve(
  handler: HttpHandler,
  { server, certificateAuthority }: Credentials,
  port = 0,
): Promise<SocketServer> {
  return serveHttps(handler, {
    host: '127.0.0.1',
    port,
    certificate: server.certificate,
    privateKey: server.privateKey,
    certificateAuthority: certificateAuthority.certificate,
  })
}

const credentials = await createCredentials(Date.now())
const hello: HttpHandler = () => Promise.resolve({ status: 200, headers: {}, body: oneChunk('hello') })

test('a taken port is refused with words that name it', async () => {
  const first = await serve(hello, credentials)
  try {
    await assert.rejects(serve(hello, credentials, first.port), {
      message: `port ${first.port} on 127.0.0.1 is already in use`,
    })
  } finally {
    await first.close()
  }
})

test('a client that goes away ends its request on the server', async () => {
  let ended: () => void = () => undefined
  const done = new Promise<void>((resolve) => {
    ended = resolve
  })
  const endless: HttpHandler = (_request, signal) => {
    signal?.addEventListener('abort', ended)
    async function* body() {
      yield 'first'
      await done
    }
    return Promise.resolve({ status: 200, headers: {}, body: body() })
  }
  const server = await serve(endless, credentials)
  const { certificate } = credentials.certificateAuthority
  const client = request({ host: '127.0.0.1', port: server.port, ca: certificate, path: '/' }, (response) => {
    response.on('error', () => undefined)
    response.once('data', () => client.destroy())
  })
  client.on('error', () => undefined)
  client.end()
  await done
  await server.close()
})

test('closing ends connections that are still open', async () => {
  const server = await serve((_request, _signal) => new Promise(() => undefined), credentials)
  const { certificate } = credentials.certificateAuthority
  const broken = new Promise<void>((resolve) => {
    const client = request({ host: '127.0.0.1', port: server.port, ca: certificate, path: '/' })
    client.on('error', () => resolve())
    client.on('socket', (socket) => socket.once('secureConnect', () => void server.close()))
    client.end()
  })
  await broken
})

test('RPB-50 500 connections that shake hands slowly, or send slowly, leave the API room and memory', async (t) => {
  const server = await serve(hello, credentials)
  t.after(() => server.close())
  const { certificate } = credentials.certificateAuthority
  const before = memoryUsage.rss()
  for (let i = 0; i < 500; i++) {
    const address = { host: '127.0.0.1', port: server.port }
    const socket = i % 10 === 0 ? tls({ ...address, ca: certificate }) : connect(address)
    socket.on('error', () => undefined)
    socket.resume()
    if (i % 10 === 0)
      socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n${'x'.repeat(500_000)}`)
    else if (i % 10 < 5) socket.write(Buffer.from([22, 3, 1]))
    t.after(() => socket.destroy())
    if (i % 100 !== 99) continue
    const status = await new Promise((resolve, reject) => {
      const client = request({ ...address, ca: certificate, agent: false }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      client.on('error', reject)
      client.end()
    })
    assert.equal(status, 200)
  }
  const tookMiB = (memoryUsage.rss() - before) / 2 ** 20
  // Both ends are in this process.
  assert.ok(tookMiB < 2 * 50, `${tookMiB} MiB`)
})
