import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JoinCredentials, KubeletHandle, KubeletSpec } from './contract.ts'
import { createJoiner } from './joiner.ts'

const endpoint = 'https://127.0.0.1:6443'
const certificateAuthority = 'the authority'

/** An API server whose only bootstrap token may expire, and instances that try to join. */
function aCluster() {
  const cluster = { isTokenValid: true }
  /** Provider IDs of the kubelets that run. */
  const running: string[] = []
  const server = {
    authenticate: () =>
      cluster.isTokenValid ? { name: 'x', groups: ['system:bootstrappers:worker'] } : undefined,
  }
  const start = ({ nodeName, providerId }: KubeletSpec): KubeletHandle => {
    running.push(providerId)
    return { nodeName, stop: () => void running.splice(running.indexOf(providerId), 1) }
  }
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
  const twin = async (providerId: string): Promise<KubeletHandle> => {
    const joined = await joiner.join(credentials, { nodeName: 'twin', providerId } as KubeletSpec)
    assert.ok(joined.kind === 'joined')
    return joined.kubelet
  }
  return { cluster, running, join, twin }
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

test('of two instances with one name, the other one reports when one is gone', async () => {
  const { running, twin } = aCluster()
  const first = await twin('test://1')
  const second = await twin('test://2')
  assert.deepEqual(running, ['test://2'])
  second.stop()
  assert.deepEqual(running, ['test://1'])
  const again = await twin('test://2')
  first.stop()
  assert.deepEqual(running, ['test://2'])
  again.stop()
  again.stop()
  assert.deepEqual(running, [])
})
