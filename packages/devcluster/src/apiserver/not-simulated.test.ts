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
  const pod = aPod('training')
  const claims = [{ name: 'gpu', resourceClaimName: 'gpu' }]
  const answer = await server.call('POST', podsPath, {
    ...pod,
    spec: { ...pod.spec, resourceClaims: claims },
  })
  assert.equal(answer.status, 201, answer.body.message)
  assert.match(warning(answer), /spec\.resourceClaims has no effect on the embedded cluster: devices are not/)
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

test('templates are looked into, and what an update leaves alone is not told again', async () => {
  const server = new TestServer()
  const path = '/apis/apps/v1/namespaces/default/deployments'
  const template = {
    metadata: { labels: { app: 'web' } },
    spec: { ...aPod('x').spec, resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }] },
  }
  const created = await server.call('POST', path, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { selector: { matchLabels: { app: 'web' } }, template },
  })
  assert.match(warning(created), /spec\.template\.spec\.resourceClaims has no effect/)
  assert.equal(warning(await server.merge(`${path}/web`, { spec: { replicas: 3 } })), '')
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
