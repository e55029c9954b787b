import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { createKubeClient } from '@tenon/kube'
import { type ProviderEnvironment, isProviderSettingError } from '@tenon/provider'
import { silentLogger, SystemClock } from '@tenon/runtime'
import { kindsOf } from '../objects.ts'
import { readHubSettings } from './settings.ts'

const folder = mkdtempSync(join(tmpdir(), 'hub-'))
after(() => {
  rmSync(folder, { recursive: true })
})

const pem = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'

function settings(env: ProviderEnvironment, warnings: string[] = []) {
  const logger = { ...silentLogger, warn: (message: string) => void warnings.push(message) }
  return readHubSettings(env, new SystemClock(), logger)
}

function aKubeconfig(server: string): string {
  const path = join(folder, `${Buffer.from(server).toString('hex')}.yaml`)
  const name = 'hub'
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server } }],
    users: [{ name, user: { token: 'from-the-file' } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  }
  writeFileSync(path, JSON.stringify(content))
  return path
}

/** What a list of Machines through these settings is sent with. */
async function authorization(env: (url: string) => ProviderEnvironment): Promise<string | undefined> {
  let record: string | undefined
  const server = http.createServer((request, response) => {
    record = request.headers.authorization
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ kind: 'MachineList', metadata: { resourceVersion: '1' }, items: [] }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { config } = settings(env(url))
    assert.ok(config)
    assert.equal(config.server, url)
    const client = createKubeClient({
      transport: config.transport,
      clock: new SystemClock(),
      userAgent: 'test',
    })
    assert.deepEqual(await client.list(kindsOf('cluster.x-k8s.io', 'v1beta2').machine), [])
    config.close()
    return record
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

function assertRefused(env: ProviderEnvironment, variable: string, words: RegExp): void {
  assert.throws(
    () => settings(env),
    (error) => {
      assert.ok(isProviderSettingError(error))
      assert.equal(error.variable, variable)
      assert.match(error.message, words)
      return true
    },
  )
}

describe('the settings of the hub', () => {
  test('CAP-71 without any the cluster is its own hub', () => {
    const { config, scope, group, version } = settings({})
    assert.equal(config, undefined)
    assert.deepEqual([scope, group, version], [{}, 'cluster.x-k8s.io', undefined])
  })

  test('CAP-69 the kubeconfig beats the URL', async () => {
    const env = (url: string) => ({
      CLUSTER_API_KUBECONFIG: aKubeconfig(url),
      CLUSTER_API_URL: 'https://elsewhere.example',
      CLUSTER_API_TOKEN: 'from-the-variable',
    })
    assert.equal(await authorization(env), 'Bearer from-the-file')
  })

  test('CAP-70 with a URL the token is sent and the authority is that of the variable, as PEM', async () => {
    assert.equal(
      await authorization((url) => ({ CLUSTER_API_URL: url, CLUSTER_API_TOKEN: 'secret' })),
      'Bearer secret',
    )
    const { config } = settings({
      CLUSTER_API_URL: 'https://hub.example:6443',
      CLUSTER_API_CERTIFICATE_AUTHORITY_DATA: pem,
    })
    assert.equal(config?.certificateAuthority, pem)
    const base64 = Buffer.from(pem).toString('base64')
    assertRefused(
      { CLUSTER_API_URL: 'https://hub.example', CLUSTER_API_CERTIFICATE_AUTHORITY_DATA: base64 },
      'CLUSTER_API_CERTIFICATE_AUTHORITY_DATA',
      /PEM/,
    )
    assertRefused(
      {
        CLUSTER_API_URL: 'https://hub.example',
        CLUSTER_API_CERTIFICATE_AUTHORITY_DATA: pem,
        CLUSTER_API_SKIP_TLS_VERIFY: 'true',
      },
      'CLUSTER_API_SKIP_TLS_VERIFY',
      /CERTIFICATE_AUTHORITY/,
    )
  })

  test('CAP-72 a kubeconfig that cannot be read, or a URL that is none, ends the start', () => {
    assertRefused({ CLUSTER_API_KUBECONFIG: join(folder, 'none') }, 'CLUSTER_API_KUBECONFIG', /none/)
    assertRefused({ CLUSTER_API_URL: 'hub' }, 'CLUSTER_API_URL', /https:\/\//)
    assertRefused({ CAPI_VERSION: 'v1alpha4' }, 'CAPI_VERSION', /v1beta2 or v1beta1/)
  })

  test('CAP-74 what is not true does not skip the check of certificates', () => {
    const { config } = settings({
      CLUSTER_API_URL: 'https://hub.example',
      CLUSTER_API_CERTIFICATE_AUTHORITY_DATA: pem,
      CLUSTER_API_SKIP_TLS_VERIFY: 'maybe',
    })
    assert.equal(config?.certificateAuthority, pem)
  })

  test('what has no effect is told, without the token', () => {
    const warnings: string[] = []
    assert.equal(settings({ CLUSTER_API_TOKEN: 'secret' }, warnings).config, undefined)
    assert.equal(warnings.length, 1)
    assert.match(warnings[0] ?? '', /CLUSTER_API_URL is not set/)
    assert.doesNotMatch(warnings[0] ?? '', /secret/)
  })

  test('namespace, Cluster, group and version narrow what is looked at', () => {
    const { scope, group, version } = settings({
      CLUSTER_API_NAMESPACE: 'fleet',
      CLUSTER_API_CLUSTER_NAME: 'one',
      CAPI_GROUP: 'cluster.example.com',
      CAPI_VERSION: 'v1beta1',
    })
    assert.deepEqual(scope, { namespace: 'fleet', clusterName: 'one' })
    assert.deepEqual([group, version], ['cluster.example.com', 'v1beta1'])
  })
})
