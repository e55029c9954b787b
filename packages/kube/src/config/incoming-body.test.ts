import assert from 'node:assert/strict'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { readText, SystemClock, VirtualClock } from '@tenon/runtime'
import { type Gathering, IncomingBody } from './incoming-body.ts'

const atOnce: Gathering = { clock: new SystemClock(), gatherMs: 0 }

/** The body of what a server answers, as the client sees it. */
async function answered(
  answer: (response: http.ServerResponse) => void,
  look: (body: IncomingBody, incoming: http.IncomingMessage) => Promise<void>,
  gathering: Gathering = atOnce,
): Promise<void> {
  const server = http.createServer((request, response) => {
    request.resume()
    answer(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const incoming = await new Promise<http.IncomingMessage>((resolve, reject) => {
      http.get({ port: (server.address() as AddressInfo).port, agent: false }, resolve).on('error', reject)
    })
    await look(new IncomingBody(incoming, gathering), incoming)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

test('a body is read to its end, whatever its chunks are', async () => {
  const large = 'x'.repeat(1_000_000)
  for (const parts of [[], ['short'], ['one ', 'two ', 'three'], [large, large]]) {
    await answered(
      (response) => {
        for (const part of parts) response.write(part)
        response.end()
      },
      async (body) => {
        assert.equal(await readText(body), parts.join(''))
      },
    )
  }
})

test('chunks are there as soon as they arrive', async () => {
  const open: http.ServerResponse[] = []
  await answered(
    (response) => {
      open.push(response)
      response.write('first')
    },
    async (body) => {
      const chunks = body[Symbol.asyncIterator]()
      assert.equal(String((await chunks.next()).value), 'first')
      open[0]?.write('second')
      assert.equal(String((await chunks.next()).value), 'second')
      open[0]?.end()
      assert.equal((await chunks.next()).done, true)
      assert.equal((await chunks.next()).done, true)
    },
  )
})

test('what arrives soon after a reading is handed over together, and what arrives after a quiet time at once', async () => {
  const clock = new VirtualClock()
  const open: http.ServerResponse[] = []
  const arrival = async (incoming: http.IncomingMessage, text: string) => {
    const arrived = new Promise((resolve) => incoming.once('data', resolve))
    open[0]?.write(text)
    await arrived
  }
  await answered(
    (response) => {
      open.push(response)
      response.write('first')
    },
    async (body, incoming) => {
      const chunks = body[Symbol.asyncIterator]()
      const read: string[] = []
      const reading = (async () => {
        for (let next = await chunks.next(); next.done !== true; next = await chunks.next())
          read.push(String(next.value))
      })()
      await arrival(incoming, '')
      await clock.advance(0)
      assert.deepEqual(read, ['first'])
      for (const text of ['second', 'third']) await arrival(incoming, text)
      await clock.advance(49)
      assert.deepEqual(read, ['first'])
      await clock.advance(1)
      assert.deepEqual(read, ['first', 'secondthird'])
      await clock.advance(50)
      await arrival(incoming, 'fourth')
      await clock.advance(0)
      assert.deepEqual(read, ['first', 'secondthird', 'fourth'])
      await arrival(incoming, 'last')
      open[0]?.end()
      await reading
      assert.deepEqual(read, ['first', 'secondthird', 'fourth', 'last'])
    },
    { clock, gatherMs: 50 },
  )
})

test('a connection that is cut in the middle is an error, not an end', async () => {
  await answered(
    (response) => {
      response.write('half')
      setImmediate(() => response.destroy())
    },
    async (body) => {
      await assert.rejects(readText(body))
    },
  )
})

test('who leaves early closes the connection', async () => {
  await answered(
    (response) => {
      response.write('first')
    },
    async (body, incoming) => {
      for await (const chunk of body) {
        assert.equal(String(chunk), 'first')
        break
      }
      assert.ok(incoming.destroyed)
    },
  )
})

test('a body that was cut before anybody looked is an error, too', async () => {
  await answered(
    (response) => {
      response.write('half')
    },
    async (body, incoming) => {
      const closed = new Promise((resolve) => incoming.on('close', resolve))
      incoming.destroy()
      await closed
      await assert.rejects(readText(body))
    },
  )
})
