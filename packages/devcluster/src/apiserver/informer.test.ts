import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CoreV1Api, KubeConfig, makeInformer, type V1ConfigMap } from '@kubernetes/client-node'
import { kinds } from '@tenon/api'
import { SeededRandom, SystemClock, serveHttps, silentLogger } from '@tenon/runtime'
import { kubeconfigYaml } from './http/kubeconfig.ts'
import { createApiServer } from './http/server.ts'
import { createCredentials } from './http/tls.ts'

const churnMs = 3000

test('an informer of a stock client sees every change once and in order under churn', async () => {
  const clock = new SystemClock()
  const credentials = await createCredentials(clock.now())
  const { adminToken, signingKey, server, certificateAuthority } = credentials
  const api = createApiServer({
    clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    adminToken,
    signingKey,
  })
  const https = await serveHttps(api.handle, {
    host: '127.0.0.1',
    port: 0,
    certificate: server.certificate,
    privateKey: server.privateKey,
    certificateAuthority: certificateAuthority.certificate,
  })
  const config = new KubeConfig()
  config.loadFromString(kubeconfigYaml({ server: https.url, credentials }))
  const core = config.makeApiClient(CoreV1Api)
  const informer = makeInformer(config, '/api/v1/namespaces/default/configmaps', () =>
    core.listNamespacedConfigMap({ namespace: 'default' }),
  )
  const seen: string[] = []
  const note = (type: string) => (object: V1ConfigMap) =>
    seen.push(`${type} ${object.metadata?.name} ${object.data?.['step']}`)
  informer.on('add', note('add'))
  informer.on('update', note('update'))
  informer.on('delete', note('delete'))
  try {
    await informer.start()
    const expected = await churn(api.local, clock)
    const deadline = clock.monotonic() + 5000
    while (seen.length < expected.length && clock.monotonic() < deadline) await clock.sleep(20)
    assert.ok(expected.length > 500, `${expected.length} changes`)
    assert.deepEqual(seen, expected)
  } finally {
    await informer.stop()
    api.stop()
    await https.close()
  }
})

/** Creates, changes and deletes at random for a while. @returns the events that must be seen. */
async function churn(
  api: ReturnType<typeof createApiServer>['local'],
  clock: SystemClock,
): Promise<string[]> {
  const random = new SeededRandom(2)
  const alive = new Map<string, number>()
  const expected: string[] = []
  const end = clock.monotonic() + churnMs
  for (let step = 0; clock.monotonic() < end; step++) {
    const name = `cm-${random.uint32() % 20}`
    const data = { step: String(step) }
    const last = alive.get(name)
    if (last === undefined) {
      api.create(kinds.configMap, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name, namespace: 'default' },
        data,
      })
      expected.push(`add ${name} ${step}`)
      alive.set(name, step)
    } else if (random.uint32() % 4 === 0) {
      api.delete(kinds.configMap, 'default', name)
      expected.push(`delete ${name} ${last}`)
      alive.delete(name)
    } else {
      api.patch(kinds.configMap, 'default', name, { data })
      expected.push(`update ${name} ${step}`)
      alive.set(name, step)
    }
    if (step % 5 === 0) await clock.sleep(1)
  }
  return expected
}
