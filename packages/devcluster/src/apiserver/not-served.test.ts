/** What is not served, as kube-apiserver says it; conformance compares both. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { provisioningRequestCrd } from '@tenon/api'
import { podsPath, TestServer } from './api-server.test-support.ts'
import { nothingThere, saidOf } from './not-served-paths.test-support.ts'

const crdsPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

test('paths behind which there is nothing are answered in plain text, or as a Status in built-in groups', async () => {
  const api = new TestServer()
  assert.equal((await api.call('POST', crdsPath, provisioningRequestCrd)).status, 201)
  const object = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'x' } }
  for (const [method, path, said] of nothingThere) {
    const answer = await api.call(method, path, method === 'POST' || method === 'PUT' ? object : undefined)
    assert.equal(saidOf(answer), said, `${method} ${path}`)
  }
})

test('whoever has no right to a kind is not told that it is not served', async () => {
  const api = new TestServer()
  await api.call('POST', '/api/v1/namespaces/default/serviceaccounts', {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'nobody' },
  })
  const { body } = await api.call('POST', '/api/v1/namespaces/default/serviceaccounts/nobody/token', {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {},
  })
  const token = body.status.token as string
  for (const path of [podsPath, '/apis/nobody.example.com/v1/things', '/apis/apps/v9/deployments']) {
    const answer = await api.call('GET', path, undefined, { token })
    assert.equal(answer.status, 403, path)
    assert.match(answer.body.message, /cannot list resource/)
  }
})
