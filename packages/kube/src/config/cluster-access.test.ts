import assert from 'node:assert/strict'
import type https from 'node:https'
import { describe, test } from 'node:test'
import type { Cluster, User } from '@kubernetes/client-node'
import { newClusterAccess } from './cluster-access.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const cluster: Cluster = { name: 'main', server: 'https://host:6443', skipTLSVerify: false }

async function optionsOf(
  user: Omit<User, 'name'> | undefined,
  more: Partial<Cluster> = {},
): Promise<https.RequestOptions> {
  const access = newClusterAccess({ ...cluster, ...more }, user && { name: 'me', ...user })
  const options: https.RequestOptions = {}
  await access.applyToHTTPSOptions(options)
  return options
}

describe('access to a cluster', () => {
  test('the server is verified as the cluster says, whoever asks', async () => {
    const { ca, servername, rejectUnauthorized } = await optionsOf(undefined, {
      caData: base64('authority'),
      tlsServerName: 'other.name',
      skipTLSVerify: true,
    })
    assert.equal(String(ca), 'authority')
    assert.equal(servername, 'other.name')
    assert.equal(rejectUnauthorized, false)
  })

  test('a user may have a certificate, a password, and somebody else to be', async () => {
    const options = await optionsOf({
      certData: base64('certificate'),
      keyData: base64('key'),
      username: 'name',
      password: 'word',
      impersonateUser: 'somebody',
    })
    assert.equal(String(options.cert), 'certificate')
    assert.equal(String(options.key), 'key')
    assert.equal(options.auth, 'name:word')
    assert.deepEqual(options.headers, { 'Impersonate-User': 'somebody' })
  })

  test('through a proxy the options bring an agent that tunnels', async () => {
    const proxied = { ...cluster, proxyUrl: 'http://proxy:3128' }
    assert.equal(newClusterAccess(cluster, undefined).isProxied, false)
    assert.equal(newClusterAccess(proxied, undefined).isProxied, true)
    const options = await optionsOf({ token: 'secret' }, proxied)
    assert.notEqual(options.agent, undefined)
    assert.deepEqual(options.headers, { Authorization: 'Bearer secret' })
  })

  test('users who sign in elsewhere are left to the whole client', async () => {
    const authProvider = { name: 'azure', config: { 'access-token': 'granted', 'expires-on': '9999999999' } }
    const options = await optionsOf({ authProvider })
    assert.deepEqual(options.headers, { Authorization: 'Bearer granted' })
  })
})
