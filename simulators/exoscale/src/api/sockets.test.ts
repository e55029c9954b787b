import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { serveHttp } from '@tenon/runtime'
import { ExoscaleFixture, owner } from '../exoscale.test-support.ts'
import { authorizationHeader } from './signature.ts'

/** Sends one request over a real socket; rejects when the connection breaks. */
function send(url: string, method: string, headers: Record<string, string>, body = '') {
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, text })
      })
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

test('the API answers a signed call on a socket, and breaks the connection where a fault says so', async () => {
  const world = new ExoscaleFixture()
  const server = await serveHttp(world.cloud.handle, { host: '127.0.0.1', port: 0 })
  try {
    world.cloud.setBaseUrl(server.url)
    const body = JSON.stringify(world.body({ labels: { note: 'café' } }))
    const expires = Math.floor(world.clock.now() / 1000) + 600
    const authorization = authorizationHeader(owner, { method: 'POST', path: '/v2/instance', body, expires })
    const headers = { authorization, 'content-type': 'application/json' }
    const answer = await send(`${server.url}/v2/instance`, 'POST', headers, body)
    assert.equal(answer.status, 200)
    assert.equal(JSON.parse(answer.text).state, 'pending')
    assert.equal((await send(`${server.url}/v2/instance`, 'GET', {})).status, 401)
    world.cloud.faults.add({ operation: 'list-zones', times: 1, effect: { kind: 'lostReply' } })
    await assert.rejects(send(`${server.url}/v2/zone`, 'GET', {}), /socket hang up|ECONNRESET/)
    assert.match((await send(`${server.url}/v2/zone`, 'GET', {})).text, new RegExp(`${server.url}/v2`))
  } finally {
    await server.close()
  }
})

test('a taken port is named', async () => {
  const world = new ExoscaleFixture()
  const server = await serveHttp(world.cloud.handle, { host: '127.0.0.1', port: 0 })
  try {
    await assert.rejects(
      serveHttp(world.cloud.handle, { host: '127.0.0.1', port: server.port }),
      new RegExp(`port ${server.port} on 127.0.0.1 is already in use`),
    )
  } finally {
    await server.close()
  }
})
