import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKubeClient } from '@tenon/kube'
import { oneChunk, silentLogger, type Transport, VirtualClock } from '@tenon/runtime'
import { preflightModule } from './preflight.ts'

const path = '/apis/api.clever-cloud.com/v1/nodegroups'
const list = {
  kind: 'NodeGroupList',
  apiVersion: 'api.clever-cloud.com/v1',
  metadata: { resourceVersion: '1' },
}

/** What preflight makes of an API server's answer to the list of NodeGroups; plain text is given as such. */
async function answerTo(status: number, body: object | string) {
  const clock = new VirtualClock()
  const requests: string[] = []
  const transport: Transport = {
    send: (request) => {
      requests.push(`${request.method} ${request.path.split('?')[0]}`)
      const isText = typeof body === 'string'
      const headers = { 'content-type': isText ? 'text/plain; charset=utf-8' : 'application/json' }
      return Promise.resolve({ status, headers, body: oneChunk(isText ? body : JSON.stringify(body)) })
    },
  }
  const kube = createKubeClient({ transport, clock })
  const access = preflightModule.open({ env: {}, kube, clock, logger: silentLogger, userAgent: 'tenon' })
  assert.deepEqual(access.hosts, [])
  const [operation] = access.operations
  assert.ok(operation)
  const answer = await operation.attempt(new AbortController().signal)
  assert.deepEqual(requests, [`GET ${path}`])
  return { answer, name: operation.name, fix: access.grantFix([operation.name]) }
}

test('EXP-26 a cluster that serves no NodeGroups is none of Clever Kubernetes Engine', async () => {
  const missing = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }
  for (const body of [missing, '404 page not found\n']) {
    const { answer, name, fix } = await answerTo(404, body)
    assert.equal(name, 'list nodegroups.api.clever-cloud.com')
    assert.deepEqual(answer, { kind: 'refused', message: 'the cluster does not serve NodeGroups' })
    assert.match(fix, /Clever Kubernetes Engine/)
  }
})

test('EXP-26 NodeGroups that are served may be used; any other failure leaves it open', async () => {
  assert.deepEqual((await answerTo(200, { ...list, items: [] })).answer, { kind: 'allowed' })
  assert.equal((await answerTo(500, {})).answer.kind, 'unknown')
})
