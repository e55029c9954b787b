import assert from 'node:assert/strict'
import { request } from 'node:https'
import { test } from 'node:test'
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
