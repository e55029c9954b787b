import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { memoryUsage } from 'node:process'
import { test } from 'node:test'
import { serveHttp } from './serve.ts'
import { type HttpRequest, oneChunk } from './transport.ts'

test('RPT-40 endless bodies and half headers are ended in time, memory stays, and scrapes go on', async (t) => {
  const guard = { connections: 100, bodyBytes: 64, requestMs: 500 }
  const scraped = () => Promise.resolve({ status: 200, headers: {}, body: oneChunk('up 1\n') })
  const server = await serveHttp(scraped, { host: '127.0.0.1', port: 0, guard })
  const before = memoryUsage.rss()
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
  const ends: Promise<void>[] = []
  for (let i = 0; i < 150; i++) {
    const socket: Socket = connect(server.port, '127.0.0.1')
    const pour = (): void => {
      while (socket.writable && socket.write(chunk));
    }
    socket.on('error', () => undefined)
    socket.resume()
    ends.push(new Promise((resolve) => socket.once('close', () => resolve())))
    if (i % 2 === 0) socket.write('GET /metrics HTTP/1.1\r\nHost: a\r\nX-Half: ')
    else {
      socket.write('POST /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
      socket.on('drain', pour)
      pour()
    }
    t.after(() => socket.destroy())
  }
  t.after(() => server.close())
  await Promise.all(ends)
  assert.ok(memoryUsage.rss() - before < 50 * 2 ** 20)
  const page = await fetch(`${server.url}/metrics`)
  assert.equal(await page.text(), 'up 1\n')
})

/** What strangers send: half a head, a body that never ends, a body in drops, nothing at all. */
const strangers = [
  'GET / HTTP/1.1\r\nHost: a\r\nX-Half: ',
  `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n${'x'.repeat(1_000_000)}`,
  'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n',
  '',
] as const

for (const [what, options] of [
  ['of its own limits', { guard: { connections: 100, bodyBytes: 64, requestMs: 10_000 } }],
  ['of the usual limits', {}],
  [
    'that refuses by the head',
    {
      refuses: ({ headers }: HttpRequest) =>
        headers['cookie'] === undefined
          ? { status: 401, headers: {}, body: oneChunk('who are you\n') }
          : undefined,
    },
  ],
] as const)
  test(`RPB-50 500 connections that send slowly leave a port ${what} room and memory`, async (t) => {
    const up = () => Promise.resolve({ status: 200, headers: {}, body: oneChunk('up 1\n') })
    const server = await serveHttp(up, { host: '127.0.0.1', port: 0, ...options })
    t.after(() => server.close())
    const before = memoryUsage.rss()
    for (let i = 0; i < 500; i++) {
      const socket = connect(server.port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.resume()
      socket.write(strangers[i % strangers.length] ?? '')
      t.after(() => socket.destroy())
      if (i % 100 !== 99) continue
      const page = await fetch(server.url, { headers: { cookie: 'known' } })
      assert.equal(await page.text(), 'up 1\n')
    }
    assert.ok(memoryUsage.rss() - before < 50 * 2 ** 20, `${(memoryUsage.rss() - before) / 2 ** 20} MiB`)
  })
