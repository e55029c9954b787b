import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JoinCredentials, KubeletHandle, KubeletSpec } from './contract.ts'
import { createJoiner } from './joiner.ts'

const endpoint = 'https://127.0.0.1:6443'
const certificateAuthority = 'the authority'

/** An API server whose only bootstrap token may expire, and instances that try to join. */
function aCluster() {
  const cluster = { isTokenValid: true }
  const server = {
    authenticate: () =>
      cluster.isTokenValid ? { name: 'x', groups: ['system:bootstrappers:worker'] } : undefined,
  }
  const start = ({ nodeName }: KubeletSpec): KubeletHandle => ({ nodeName, stop: () => undefined })
  const joiner = createJoiner(
    server,
    { start },
    { isEndpoint: (url) => url === endpoint, certificateAuthority },
  )
  const credentials: JoinCredentials = { endpoint, certificateAuthority, bootstrapToken: 'a.b' }
  const join = async (nodeName: string, change: Partial<JoinCredentials> = {}) => {
    const spec = { nodeName, providerId: `test://${nodeName}` } as KubeletSpec
    return (await joiner.join({ ...credentials, ...change }, spec)).kind
  }
  return { cluster, join }
}

test('an instance that has joined comes back after its token has expired, a new one does not come in', async () => {
  const { cluster, join } = aCluster()
  assert.equal(await join('a'), 'joined')
  cluster.isTokenValid = false
  assert.equal(await join('a'), 'joined')
  assert.equal(await join('b'), 'refused')
})

test('an instance that comes back still has to find the API server and trust it', async () => {
  const { join } = aCluster()
  await join('a')
  assert.equal(await join('a', { endpoint: 'https://10.0.0.1' }), 'refused')
  assert.equal(await join('a', { certificateAuthority: 'another' }), 'refused')
})
