import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HttpRequest } from '@tenon/runtime'
import { fencedTransport } from './fence.ts'

test('who may not act reads on and writes nothing; who may does both', async () => {
  const sent: string[] = []
  let mayAct = false
  const answer = { status: 200, headers: {}, body: (async function* () {})() }
  const send = (request: HttpRequest) => {
    sent.push(request.method)
    return Promise.resolve(answer)
  }
  const transport = fencedTransport({ send }, () => mayAct)
  const methods = ['GET', 'POST', 'PATCH', 'PUT', 'DELETE']
  const sendAll = () =>
    Promise.allSettled(
      methods.map((method) => transport.send({ method, path: '/api/v1/nodes?x=1', headers: {} })),
    )
  const refused = (await sendAll()).flatMap((each) =>
    each.status === 'rejected' ? [String(each.reason)] : [],
  )
  assert.deepEqual(sent.splice(0), ['GET'])
  assert.equal(refused.length, 4)
  assert.equal(
    refused[0],
    'Error: POST /api/v1/nodes was not sent: this process does not lead, or only observes',
  )
  mayAct = true
  await sendAll()
  assert.deepEqual(sent, methods)
})
