/** Rights in a management cluster of its own, asked of a server on a socket. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKubeClient } from '@tenon/kube'
import { createServer } from 'node:http'
import { isProviderSettingError } from '@tenon/provider'
import { silentLogger, SystemClock } from '@tenon/runtime'
import { preflightModule } from './preflight.ts'
import { hubRules } from './rights.ts'

const clock = new SystemClock()
const kube = createKubeClient({ transport: { send: () => Promise.reject(new Error('not asked')) }, clock })
const parts = { kube, clock, logger: silentLogger, userAgent: 'tenon' }

interface Attributes {
  readonly verb: string
  readonly resource: string
  readonly namespace?: string
}

test('EXP-26 each right of the management cluster is asked for, and one that is missing is named', async (t) => {
  const asked: Attributes[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => (text += chunk.toString()))
    request.on('end', () => {
      const { spec } = JSON.parse(text) as { spec: { resourceAttributes: Attributes } }
      asked.push(spec.resourceAttributes)
      const { verb, resource } = spec.resourceAttributes
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ status: { allowed: !(verb === 'delete' && resource === 'machines') } }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const env = {
    CLUSTER_API_URL: `http://127.0.0.1:${address.port}`,
    CLUSTER_API_NAMESPACE: 'workload',
  }
  const access = preflightModule.open({ ...parts, env })
  assert.deepEqual(access.hosts, ['127.0.0.1'])
  const refused: string[] = []
  for (const operation of access.operations) {
    const answer = await operation.attempt(new AbortController().signal)
    if (answer.kind !== 'allowed') refused.push(operation.name)
  }
  assert.deepEqual(refused, ['delete machines.cluster.x-k8s.io'])
  const rights = hubRules.flatMap(({ resources, verbs }) => resources.flatMap(() => verbs))
  assert.equal(asked.length, rights.length)
  for (const { resource, namespace } of asked)
    assert.equal(namespace, resource === 'customresourcedefinitions' ? undefined : 'workload')
  assert.match(access.grantFix(refused), /delete machines\.cluster\.x-k8s\.io .*hub-rbac\.yaml/)
})

test('EXP-26 a cluster that manages itself has no rights elsewhere; a wrong URL is a setting', () => {
  assert.deepEqual(preflightModule.open({ ...parts, env: {} }).operations, [])
  assert.throws(
    () => preflightModule.open({ ...parts, env: { CLUSTER_API_URL: 'nowhere' } }),
    (error) => isProviderSettingError(error) && error.variable === 'CLUSTER_API_URL',
  )
})
