import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aPod, podsPath, TestServer } from '../api-server.test-support.ts'
import type { WebhookAnswer, WebhookCall } from './webhook-calls.ts'

const root = '/apis/admissionregistration.k8s.io/v1'

function aWebhook(more: object): object {
  return {
    name: 'pods.example.com',
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
    ...more,
  }
}

const service = { clientConfig: { service: { name: 'guard', namespace: 'default', path: '/check' } } }

async function withWebhook(
  kind: 'Validating' | 'Mutating',
  webhook: object,
  answer?: (call: WebhookCall) => WebhookAnswer,
): Promise<TestServer> {
  const api = new TestServer(undefined, {
    ...(answer && { callWebhook: (call: WebhookCall) => Promise.resolve(answer(call)) }),
  })
  const configuration = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: `${kind}WebhookConfiguration`,
    metadata: { name: 'guards' },
    webhooks: [aWebhook(webhook)],
  }
  const path = `${root}/${kind.toLowerCase()}webhookconfigurations`
  const created = await api.call('POST', path, configuration)
  assert.equal(created.status, 201, created.body.message)
  return api
}

for (const kind of ['Validating', 'Mutating'] as const) {
  test(`RPT-63 a ${kind} webhook whose service does not answer obeys its failurePolicy`, async () => {
    const strict = await withWebhook(kind, service)
    const refused = await strict.call('POST', podsPath, aPod('p'))
    assert.deepEqual([refused.status, refused.body.reason], [500, 'InternalError'])
    assert.equal(
      refused.body.message,
      'Internal error occurred: failed calling webhook "pods.example.com": failed to call webhook: ' +
        'Post "https://guard.default.svc:443/check?timeout=10s": service "guard" not found',
    )
    const lenient = await withWebhook(kind, { ...service, failurePolicy: 'Ignore' })
    assert.equal((await lenient.call('POST', podsPath, aPod('p'))).status, 201)
  })
}

test('RPT-63 a service that exists is not reached either; other writes are not held up', async () => {
  const api = await withWebhook('Validating', { ...service, timeoutSeconds: 5 })
  const spec = { ports: [{ port: 443 }], selector: { app: 'guard' } }
  const guard = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'guard' }, spec }
  const { body } = await api.call('POST', '/api/v1/namespaces/default/services', guard)
  const refused = await api.call('POST', podsPath, aPod('p'))
  assert.match(
    refused.body.message,
    new RegExp(`timeout=5s": dial tcp ${body.spec.clusterIP}:443: connect: connection refused$`),
  )
})

test('RPT-63 selectors and conditions decide whether a webhook is asked', async () => {
  const selected = await withWebhook('Validating', {
    ...service,
    objectSelector: { matchLabels: { guarded: 'yes' } },
  })
  assert.equal((await selected.call('POST', podsPath, aPod('free'))).status, 201)
  assert.equal((await selected.call('POST', podsPath, aPod('p', { guarded: 'yes' }))).status, 500)
  const conditional = await withWebhook('Validating', {
    ...service,
    matchConditions: [{ name: 'big', expression: "object.metadata.name.startsWith('big')" }],
  })
  assert.equal((await conditional.call('POST', podsPath, aPod('small'))).status, 201)
  assert.equal((await conditional.call('POST', podsPath, aPod('big'))).status, 500)
})

test('RPT-63 a configuration with a service carries a warning that names what is not simulated', async () => {
  const api = new TestServer()
  const configuration = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'guards' },
    webhooks: [aWebhook(service)],
  }
  const { headers } = await api.call('POST', `${root}/validatingwebhookconfigurations`, configuration)
  assert.match(headers['warning'] ?? '', /webhooks\[0\]\.clientConfig\.service: .* failurePolicy Fail/)
})

const answered = (response: object): WebhookAnswer => ({ kind: 'answered', body: { response } })
const url = { clientConfig: { url: 'https://guard.example.com/check' } }

test('RPT-63 webhooks with a URL are called: they deny, warn and change', async () => {
  const calls: WebhookCall[] = []
  const deny = await withWebhook('Validating', url, (call) => {
    calls.push(call)
    const { request } = JSON.parse(call.body)
    return answered({
      uid: request.uid,
      allowed: request.object.metadata.name !== 'bad',
      status: { message: 'no bad pods' },
      warnings: ['looked at'],
    })
  })
  const refused = await deny.call('POST', podsPath, aPod('bad'))
  assert.equal(refused.status, 403)
  assert.equal(refused.body.message, 'admission webhook "pods.example.com" denied the request: no bad pods')
  const good = await deny.call('POST', podsPath, aPod('good'))
  assert.deepEqual([good.status, good.headers['warning']], [201, '299 - "looked at"'])
  assert.equal(calls[0]?.url, 'https://guard.example.com/check?timeout=10s')
  const review = JSON.parse(calls[0]?.body ?? '')
  assert.deepEqual(
    [
      review.kind,
      review.request.operation,
      review.request.resource.resource,
      review.request.userInfo.username,
    ],
    ['AdmissionReview', 'CREATE', 'pods', 'kubernetes-admin'],
  )
  const patch = [{ op: 'add', path: '/metadata/labels', value: { added: 'yes' } }]
  const change = await withWebhook('Mutating', url, () =>
    answered({
      allowed: true,
      patchType: 'JSONPatch',
      patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
    }),
  )
  const changed = await change.call('POST', podsPath, aPod('p'))
  assert.deepEqual(changed.body.metadata.labels, { added: 'yes' })
})

test('RPT-63 a webhook that fails to answer obeys its failurePolicy, one with side effects no dry run', async () => {
  const broken = (): WebhookAnswer => ({ kind: 'failed', message: 'failed to call webhook: gone' })
  const strict = await withWebhook('Validating', { ...url, sideEffects: 'NoneOnDryRun' }, broken)
  const refused = await strict.call('POST', podsPath, aPod('p'))
  assert.match(
    refused.body.message,
    /failed calling webhook "pods\.example\.com": failed to call webhook: gone$/,
  )
  const lenient = await withWebhook('Validating', { ...url, failurePolicy: 'Ignore' }, broken)
  assert.equal((await lenient.call('POST', podsPath, aPod('p'))).status, 201)
})
