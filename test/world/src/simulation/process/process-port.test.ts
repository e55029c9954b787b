import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type HttpRequest, oneChunk, readText, type Transport, VirtualClock } from '@tenon/runtime'
import { ProcessClock } from './process-clock.ts'
import { ProcessPort } from './process-port.ts'

const write: HttpRequest = { method: 'POST', path: '/api/v1/nodes', headers: {}, body: '{}' }
const read: HttpRequest = { method: 'GET', path: '/api/v1/nodes', headers: {} }

function aProcess() {
  const host = new VirtualClock(0)
  const clock = new ProcessClock(host)
  const port = new ProcessPort(clock)
  const received: string[] = []
  const server: Transport = {
    send: (request) => {
      received.push(request.method)
      return Promise.resolve({ status: 200, headers: {}, body: oneChunk('ok') })
    },
  }
  const seen: string[] = []
  const ask = (request: HttpRequest, name: string) => {
    void port
      .guard(server)
      .send(request)
      .then(async ({ body }) => seen.push(`${name} ${await readText(body)}`))
  }
  return { host, clock, port, received, seen, ask }
}

describe('a process', () => {
  for (const [point, carriedOut] of [
    ['beforeWrite', []],
    ['afterWrite', ['POST']],
  ] as const) {
    test(`that dies ${point} is answered nothing, and sends nothing more`, async () => {
      const { host, port, received, seen, ask } = aProcess()
      port.crashAt(point)
      ask(read, 'read')
      ask(write, 'write')
      await host.advance(1)
      ask(read, 'later')
      await host.advance(1)
      assert.ok(port.isDead)
      assert.deepEqual(received, ['GET', ...carriedOut])
      assert.ok(!seen.some((line) => line.startsWith('write') || line.startsWith('later')))
    })
  }

  test('that stands still gets its timers and answers afterwards, in order', async () => {
    const { host, clock, seen, ask } = aProcess()
    clock.after(10, () => seen.push('timer 10'))
    clock.after(20, () => seen.push('timer 20'))
    clock.pause(1000)
    ask(read, 'read')
    await host.advance(999)
    assert.equal(seen.length, 0)
    await host.advance(1)
    const timers = seen.filter((line) => line !== 'read ok')
    assert.deepEqual([timers, seen.length], [['timer 10', 'timer 20'], 3])
  })

  test('that is dead runs no timer', async () => {
    const { host, clock, port, seen } = aProcess()
    clock.after(10, () => seen.push('timer'))
    port.kill()
    await host.advance(100)
    assert.deepEqual(seen, [])
  })

  test('with a wrong clock waits as long as any other', async () => {
    const { host, clock, seen } = aProcess()
    clock.skewMs = -5000
    clock.after(10, () => seen.push(`at ${clock.now()}`))
    await host.advance(10)
    assert.deepEqual(seen, ['at -4990'])
  })
})
