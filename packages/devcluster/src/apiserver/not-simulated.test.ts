import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type Answer, aPod, podsPath, TestServer } from './api-server.test-support.ts'
import { gapNames } from './not-simulated.ts'

const jobsPath = '/apis/batch/v1/namespaces/default/jobs'

function aJob(spec: object) {
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'work' },
    spec: { template: { spec: { ...aPod('x').spec, restartPolicy: 'Never' } }, ...spec },
  }
}

const warning = ({ headers }: Answer) => headers['warning'] ?? ''

test('what is accepted and has no effect is named in a Warning', async () => {
  const server = new TestServer()
  const job = await server.call('POST', jobsPath, aJob({ managedBy: 'example.com/queue' }))
  assert.match(warning(job), /spec\.managedBy has no effect/)
  const network = await server.call('POST', '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies', {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'deny' },
    spec: { podSelector: {} },
  })
  assert.match(warning(network), /NetworkPolicy has no effect/)
})

test('PGE-17 a MutatingAdmissionPolicy is accepted, with a word that it changes nothing', async () => {
  const server = new TestServer()
  const path = '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies'
  const policy = (spec: object) => ({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicy',
    metadata: { name: 'sidecars' },
    spec,
  })
  const resourceRules = [
    { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
  ]
  const expression = 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'
  const created = await server.call(
    'POST',
    path,
    policy({
      matchConstraints: { resourceRules },
      reinvocationPolicy: 'Never',
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }],
    }),
  )
  assert.equal(created.status, 201, created.body.message)
  assert.match(warning(created), /MutatingAdmissionPolicy has no effect on the embedded cluster/)
  assert.equal(created.body.spec.failurePolicy, 'Fail')
  const refused = await server.call('POST', path, policy({ mutations: [] }))
  assert.equal(
    refused.body.message,
    'MutatingAdmissionPolicy.admissionregistration.k8s.io "sidecars" is invalid: [spec.matchConstraints: Required value, ' +
      'spec.mutations: Required value: mutations must contain at least one item, spec.reinvocationPolicy: Required value]',
  )
})

test('templates are looked into, and what an update leaves alone is not told again', async () => {
  const server = new TestServer()
  const path = '/apis/batch/v1/namespaces/default/cronjobs'
  const created = await server.call('POST', path, {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'nightly' },
    spec: { schedule: '0 3 * * *', jobTemplate: { spec: aJob({ managedBy: 'example.com/queue' }).spec } },
  })
  assert.match(warning(created), /spec\.jobTemplate\.spec\.managedBy has no effect/)
  assert.equal(warning(await server.merge(`${path}/nightly`, { spec: { suspend: true } })), '')
})

test('server-side apply warns as a creation does', async () => {
  const server = new TestServer()
  const contentType = 'application/apply-patch+yaml'
  const job = aJob({ managedBy: 'example.com/queue' })
  const applied = await server.call('PATCH', `${jobsPath}/work?fieldManager=test`, job, { contentType })
  assert.equal(applied.status, 201, applied.body.message)
  assert.match(warning(applied), /spec\.managedBy has no effect/)
})

test('what works is not warned of', async () => {
  const server = new TestServer()
  assert.equal(warning(await server.call('POST', podsPath, aPod('web'))), '')
  assert.equal(warning(await server.call('POST', jobsPath, aJob({ ttlSecondsAfterFinished: 60 }))), '')
})

test('the page about the embedded cluster lists everything that is warned of', () => {
  const page = readFileSync(new URL('../../../../docs/embedded-cluster.md', import.meta.url), 'utf8')
  for (const name of gapNames()) assert.ok(page.includes(`\`${name}\``), name)
})
