import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { kinds } from '@tenon/api'
import { type HttpRequest, oneChunk, serveHttp } from '@tenon/runtime'
import { Command } from 'commander'
import { KubectlError } from '../errors.ts'
import { namespaceOf, onCluster } from './connection.ts'
import {
  type ListFlags,
  type OutputFlags,
  type SelectionFlags,
  type SourceFlags,
  type WatchFlags,
  withListFlags,
  withOutputFlags,
  withSelectionFlags,
  withSourceFlags,
  withWatchFlag,
} from './flags.ts'

function flagsOf(
  ...args: readonly string[]
): SourceFlags & SelectionFlags & ListFlags & OutputFlags & WatchFlags {
  const command = withWatchFlag(
    withListFlags(withSelectionFlags(withSourceFlags(new Command('get').exitOverride()))),
  )
    .configureOutput({ writeErr: () => undefined })
    .argument('[names...]')
  return command.parse(['node', 'tenon', ...args]).opts()
}

test('EXP-29 flags are written as kubectl takes them', () => {
  assert.deepEqual(flagsOf('-A', '-o=json', '-l=app=web', '-v=6', '-w', '--request-timeout=2'), {
    allNamespaces: true,
    output: 'json',
    color: 'auto',
    selector: 'app=web',
    verbosity: 6,
    watch: true,
    headers: true,
    requestTimeout: 2000,
  })
  assert.deepEqual(
    flagsOf(
      '-nshop',
      '-ojsonpath={.x}',
      '--sort-by',
      '.a',
      '--no-headers',
      '--show-labels',
      '-s',
      'f',
      '--color=never',
    ),
    {
      namespace: 'shop',
      output: 'jsonpath={.x}',
      sortBy: '.a',
      headers: false,
      showLabels: true,
      snapshot: 'f',
      color: 'never',
      requestTimeout: 0,
    },
  )
  assert.equal(flagsOf('--request-timeout', '1m30s').requestTimeout, 90_000)
  for (const wrong of ['--request-timeout=soon', '-v=10', '--color=blue', '--controller=8082'])
    assert.throws(() => flagsOf(wrong), /invalid|Use a/, wrong)
  assert.doesNotThrow(() => withOutputFlags(new Command('x')))
})

/** A server on a socket, and the kubeconfig for it. */
async function aServer(
  t: TestContext,
  answer: (request: HttpRequest) => { status: number; body: string } | undefined,
) {
  const server = await serveHttp(
    async (request, signal) => {
      const found = answer(request)
      if (found === undefined)
        return await new Promise((_, reject) => {
          signal?.addEventListener('abort', () => {
            reject(new Error('gone'))
          })
        })
      return { status: found.status, headers: {}, body: oneChunk(found.body) }
    },
    { host: '127.0.0.1', port: 0 },
  )
  const folder = await mkdtemp(join(tmpdir(), 'tenon-flags-'))
  t.after(async () => {
    await server.close()
    await rm(folder, { recursive: true })
  })
  const kubeconfig = join(folder, 'config')
  await writeFile(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'a',
      contexts: [
        { name: 'a', context: { cluster: 'a', user: 'a', namespace: 'shop' } },
        { name: 'b', context: { cluster: 'a', user: 'a' } },
      ],
      clusters: [{ name: 'a', cluster: { server: server.url } }],
      users: [{ name: 'a', user: { token: 'secret' } }],
    }),
  )
  return kubeconfig
}

function anIo(env: Record<string, string> = {}) {
  let err = ''
  return { io: { env, err: (text: string) => (err += text) }, err: () => err }
}

const emptyList = {
  status: 200,
  body: '{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}',
}

test('EXP-29 KUBECONFIG, --kubeconfig and --context choose the cluster and its namespace', async (t) => {
  const kubeconfig = await aServer(t, () => emptyList)
  const { io, err } = anIo({ KUBECONFIG: `/nowhere:${kubeconfig}` })
  const listed = await onCluster(io, { verbosity: 6 }, async (connection) => {
    assert.equal(namespaceOf({}, connection), 'shop')
    assert.equal(namespaceOf({ namespace: 'x' }, connection), 'x')
    assert.equal(namespaceOf({ allNamespaces: true }, connection), undefined)
    return await connection.client.list(kinds.node)
  })
  assert.deepEqual(listed, [])
  assert.match(err(), /^GET http:\/\/127\.0\.0\.1:\d+\/api\/v1\/nodes\?limit=250 200 in \d+ ms\n$/)
  await onCluster(io, { kubeconfig, context: 'b' }, (connection) => {
    assert.equal(namespaceOf({}, connection), 'default')
    return Promise.resolve()
  })
  await assert.rejects(
    onCluster(io, { context: 'c' }, () => Promise.resolve()),
    (error) => error instanceof KubectlError && /^error: kubeconfig .* has no context c/.test(error.line),
  )
})

test("EXP-29 a server's refusals are told in the words of kubectl, and no secret with them", async (t) => {
  const status = (code: number, reason: string, message: string) => ({
    status: code,
    body: JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message }),
  })
  const cases = [
    [
      status(403, 'Forbidden', 'nodes is forbidden: User "dev" cannot list resource "nodes"'),
      /^Error from server \(Forbidden\): nodes is forbidden: User "dev" cannot list resource "nodes"$/,
    ],
    [
      status(401, 'Unauthorized', 'Unauthorized'),
      /^error: You must be logged in to the server \(Unauthorized\)$/,
    ],
    [{ status: 500, body: 'broken' }, /^Error from server: GET \/api\/v1\/nodes: .*500: broken$/],
    [{ status: 200, body: 'hello' }, /^Unable to connect to the server: http:.*not JSON/],
    [undefined, /^Unable to connect to the server: .*no answer within 50 ms$/],
  ] as const
  for (const [answer, expected] of cases) {
    const kubeconfig = await aServer(t, () => answer)
    await assert.rejects(
      onCluster(
        anIo().io,
        { kubeconfig, requestTimeout: 50 + (answer === undefined ? 0 : 5000) },
        ({ client }) => client.list(kinds.node),
      ),
      (error) => {
        assert.ok(error instanceof KubectlError)
        assert.match(error.line, expected)
        assert.doesNotMatch(error.line, /secret/)
        assert.equal(error.exitCode, 1)
        return true
      },
    )
  }
})
