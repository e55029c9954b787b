import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { kinds } from '@tenon/api'
import { readText, SystemClock } from '@tenon/runtime'
import { createKubeClient } from '../client/client.ts'
import { inClusterContent } from './in-cluster.ts'
import { loadKubeConfig } from './load.ts'

const folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'))
after(() => {
  rmSync(folder, { recursive: true })
})

function aFile(name: string, content: object | string): string {
  const file = join(folder, name)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

function aConfig(server: string, user: object = { token: 'secret' }, name = 'main'): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: `${name}-ns` } }],
    'current-context': name,
  }
}

/** A server on loopback for the length of one test. */
async function served(
  handler: http.RequestListener,
  run: (url: string, server: http.Server) => Promise<void>,
): Promise<void> {
  const server = http.createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, server)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

test('the named file comes before KUBECONFIG, and that before the home folder', () => {
  const named = aFile('named', aConfig('https://named:6443/'))
  const listed = aFile('listed', aConfig('https://listed:6443'))
  aFile('home/.kube/config', aConfig('https://home:6443'))
  const env = { KUBECONFIG: listed, HOME: join(folder, 'home') }
  assert.equal(loadKubeConfig({ kubeconfig: named, env }).server, 'https://named:6443')
  const second = loadKubeConfig({ env })
  assert.deepEqual(
    [second.server, second.namespace, second.context],
    ['https://listed:6443', 'main-ns', 'main'],
  )
  assert.equal(loadKubeConfig({ env: { HOME: env.HOME } }).server, 'https://home:6443')
})

test('of several files the first that names a thing wins, and missing ones are passed over', () => {
  const one = aFile('one', aConfig('https://one:6443', { token: 'a' }, 'a'))
  const two = aFile('two', {
    ...aConfig('https://two:6443', { token: 'b' }, 'b'),
    clusters: [
      { name: 'b', cluster: { server: 'https://two:6443' } },
      { name: 'a', cluster: { server: 'https://other:6443' } },
    ],
  })
  const env = { KUBECONFIG: `${join(folder, 'missing')}:${one}:${two}` }
  assert.equal(loadKubeConfig({ env }).server, 'https://one:6443')
  assert.equal(loadKubeConfig({ env, context: 'b' }).server, 'https://two:6443')
})

test('errors name the file, the context and what to do', () => {
  const file = aFile('bad', aConfig('https://x'))
  const message = (options: Parameters<typeof loadKubeConfig>[0]) => {
    try {
      loadKubeConfig(options)
      return 'loaded'
    } catch (error) {
      return String(error).replaceAll(folder, '')
    }
  }
  assert.equal(
    message({ env: {} }),
    'KubeConfigError: no kubeconfig found: name one with --kubeconfig, set KUBECONFIG, or run inside a cluster',
  )
  assert.equal(
    message({ kubeconfig: join(folder, 'none'), env: {} }),
    'KubeConfigError: kubeconfig /none does not exist: check --kubeconfig or KUBECONFIG',
  )
  assert.equal(
    message({ kubeconfig: file, context: 'other', env: {} }),
    'KubeConfigError: kubeconfig /bad has no context other: choose one of main',
  )
  const dangling = aFile('dangling', { ...aConfig('https://x'), clusters: [] })
  assert.match(
    message({ kubeconfig: dangling, env: {} }),
    /context main names the cluster main, which is not there: add it under clusters/,
  )
  const noUser = aFile('no-user', { ...aConfig('https://x'), users: [] })
  assert.match(message({ kubeconfig: noUser, env: {} }), /context main names the user main/)
  const noContext = aFile('no-context', { ...aConfig('https://x'), 'current-context': undefined })
  assert.match(
    message({ kubeconfig: noContext, env: {} }),
    /has no current-context: run `kubectl config use-context/,
  )
  assert.match(message({ kubeconfig: aFile('words', 'a: [b'), env: {} }), /is not YAML/)
  assert.match(
    message({ kubeconfig: aFile('empty', ''), env: {} }),
    /\/empty is not YAML: expected a document/,
  )
  assert.match(message({ kubeconfig: aFile('no-url', aConfig('somewhere')), env: {} }), /write a URL such as/)
  const noCa = aFile('no-ca', {
    ...aConfig('https://x'),
    clusters: [{ name: 'main', cluster: { server: 'https://x', 'certificate-authority': 'ca.pem' } }],
  })
  assert.match(
    message({ kubeconfig: noCa, env: {} }),
    /the certificate authority \/ca.pem of cluster main cannot be read/,
  )
})

test('a pod is configured by its service account', () => {
  assert.equal(inClusterContent({}), undefined)
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
  assert.throws(
    () => inClusterContent(env, { folder: join(folder, 'no-account') }),
    /automountServiceAccountToken/,
  )
  aFile('account/token', 'x')
  aFile('account/namespace', 'karpenter\n')
  const content = inClusterContent(env, { folder: join(folder, 'account') })
  assert.equal(content?.clusters[0]?.server, 'https://[fd00::1]:443')
  assert.equal(content.contexts[0]?.namespace, 'karpenter')
})

test('requests carry the credentials of the context: token, token file, password, plugin', async () => {
  const seen: (string | undefined)[] = []
  await served(
    (request, response) => {
      seen.push(request.headers.authorization)
      response.end('{}')
    },
    async (url) => {
      aFile('creds/the-token', 'from-file\n')
      const credential = {
        apiVersion: 'client.authentication.k8s.io/v1',
        kind: 'ExecCredential',
        status: { token: 'from-plugin' },
      }
      aFile(
        'creds/plugin.mjs',
        `if (!process.env.KUBERNETES_EXEC_INFO) process.exit(1); console.log('${JSON.stringify(credential)}')`,
      )
      const users = [
        { token: 'plain' },
        { tokenFile: 'the-token' },
        { username: 'me', password: 'pass' },
        {
          exec: {
            command: process.execPath,
            args: [join(folder, 'creds/plugin.mjs')],
            apiVersion: credential.apiVersion,
          },
        },
      ]
      for (const [index, user] of users.entries()) {
        const kubeconfig = aFile(`creds/config${index}`, aConfig(url, user))
        const config = loadKubeConfig({ kubeconfig, env: {} })
        const response = await config.transport.send({ method: 'GET', path: '/version', headers: {} })
        assert.equal(await readText(response.body), '{}')
        config.close()
      }
    },
  )
  assert.deepEqual(seen, [
    'Bearer plain',
    'Bearer from-file',
    `Basic ${btoa('me:pass')}`,
    'Bearer from-plugin',
  ])
})

test('a watch streams, an abort ends it, and connections are kept between requests', async () => {
  const sockets = new Set<unknown>()
  const closed = Promise.withResolvers<void>()
  const pod = { kind: 'Pod', metadata: { name: 'a', namespace: 'n', resourceVersion: '5' } }
  await served(
    (request, response) => {
      sockets.add(request.socket)
      if (request.url?.includes('watch') !== true) {
        response.end(JSON.stringify({ items: [], metadata: { resourceVersion: '1' } }))
        return
      }
      response.on('close', closed.resolve)
      response.write(`${JSON.stringify({ type: 'ADDED', object: pod })}\n`)
    },
    async (url) => {
      const config = loadKubeConfig({ kubeconfig: aFile('stream', aConfig(url)), env: {} })
      const client = createKubeClient({ transport: config.transport, clock: new SystemClock() })
      for (let i = 0; i < 3; i++) await client.list(kinds.pod)
      assert.equal(sockets.size, 1)
      const rows = await client.watch(kinds.pod, { resourceVersion: '1', timeoutSeconds: 60 })
      for await (const events of rows) {
        assert.deepEqual(
          Array.from(events, ({ kind }) => kind),
          ['added'],
        )
        break
      }
      await client.list(kinds.pod)
      await closed.promise
      config.close()
    },
  )
})

test('a read survives a kept connection that the server has just closed', async () => {
  let count = 0
  await served(
    (request, response) => {
      count++
      if (count === 2) request.socket.destroy()
      else response.end('{}')
    },
    async (url) => {
      const config = loadKubeConfig({ kubeconfig: aFile('reuse', aConfig(url)), env: {} })
      for (let i = 0; i < 2; i++) {
        const response = await config.transport.send({ method: 'GET', path: '/', headers: {} })
        assert.equal(await readText(response.body), '{}')
      }
      assert.equal(count, 3)
      await assert.rejects(
        loadKubeConfig({
          kubeconfig: aFile('refused', aConfig('http://127.0.0.1:1')),
          env: {},
        }).transport.send({
          method: 'GET',
          path: '/',
          headers: {},
        }),
        /ECONNREFUSED/,
      )
      config.close()
    },
  )
})
