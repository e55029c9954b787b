import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCredentials } from '@tenon/devcluster'
import { oneChunk, serveHttps, SystemClock } from '@tenon/runtime'
import { callWebhook } from './call-webhook.ts'

test('RPT-63 a webhook with a URL is called, trusted by its own authority, and told when it fails', async (t) => {
  const { server: keys, certificateAuthority } = await createCredentials(new SystemClock().now())
  const server = await serveHttps(
    ({ path, body = '' }) =>
      Promise.resolve({
        status: path === '/broken' ? 500 : 200,
        headers: { 'content-type': 'application/json' },
        body: oneChunk(
          path === '/nonsense' ? '<html>' : JSON.stringify({ response: { asked: String(body) } }),
        ),
      }),
    {
      host: '127.0.0.1',
      port: 0,
      certificate: keys.certificate,
      privateKey: keys.privateKey,
      certificateAuthority: certificateAuthority.certificate,
    },
  )
  t.after(() => server.close())
  const call = (path: string, authority: string | undefined = certificateAuthority.certificate) =>
    callWebhook({
      url: `${server.url}${path}`,
      body: 'review',
      timeoutMs: 5000,
      ...(authority !== '' && { certificateAuthority: authority }),
    })
  assert.deepEqual(await call('/check'), { kind: 'answered', body: { response: { asked: 'review' } } })
  for (const [path, authority] of [['/broken'], ['/nonsense'], ['/check', '']] as const) {
    const answer = await call(path, authority)
    assert.equal(answer.kind, 'failed')
    assert.ok(
      'message' in answer &&
        answer.message.startsWith(`failed to call webhook: Post "${server.url}${path}": `),
    )
  }
})
