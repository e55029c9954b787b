/** `tenon init` and `tenon preflight` as commands, against an API server on a socket. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { kinds, type KubeObject } from '@tenon/api'
import { createApiServer, createCredentials, kubeconfigYaml } from '@tenon/devcluster'
import { type HttpHandler, serveHttps, silentLogger, SystemClock, SystemRandom } from '@tenon/runtime'
import { type CommandOutcome, runCommand } from '../../testing/command.test-support.ts'

/** An API server on a socket, without anything behind it. */
async function aCluster(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-ask-'))
  const credentials = await createCredentials(new SystemClock().now())
  const { adminToken, signingKey, server: keys, certificateAuthority } = credentials
  const server = createApiServer({
    clock: new SystemClock(),
    random: new SystemRandom(),
    logger: silentLogger,
    adminToken,
    signingKey,
  })
  const writes: string[] = []
  const recorded: HttpHandler = (request, signal) => {
    if (request.method !== 'GET') writes.push(`${request.method} ${request.path}`)
    return server.handle(request, signal)
  }
  const https = await serveHttps(recorded, {
    host: '127.0.0.1',
    port: 0,
    certificate: keys.certificate,
    privateKey: keys.privateKey,
    certificateAuthority: certificateAuthority.certificate,
  })
  t.after(async () => {
    server.stop()
    await https.close()
    await rm(folder, { recursive: true, force: true })
  })
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, kubeconfigYaml({ server: https.url, credentials }))
  const tenon = (...args: readonly string[]): Promise<CommandOutcome> =>
    runCommand([...args, '--kubeconfig', kubeconfig])
  return { api: server.localAs('kubectl'), tenon, writes, url: https.url }
}

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default' },
  spec: { containers: [{ name: 'app', image: 'a', resources: { requests: { cpu: '1' } } }] },
} as KubeObject

test('EXP-25 tenon init prints manifests and writes nothing; without a hint it asks for the provider', async (t) => {
  const { api, tenon, writes, url } = await aCluster(t)
  const unknown = await tenon('init')
  assert.equal(unknown.code, 1)
  assert.match(
    unknown.err,
    /^error: none of 0 nodes has a provider ID of .*: name the provider with --provider\n$/,
  )
  const empty = await tenon('init', '--provider', 'kwok')
  assert.equal(empty.code, 1)
  assert.match(empty.err, /^error: there is no node group, no node and no pending pod/)
  api.create(kinds.pod, pod)
  const { code, out, err } = await tenon('init', '--provider', 'kwok')
  assert.deepEqual([code, err], [0, ''])
  assert.ok(out.startsWith(`# Written by tenon init for ${url} (KWOK). Nothing has been applied.\n`))
  assert.equal((await runCommand(['validate', '-'], { input: out })).code, 0, out)
  assert.deepEqual(writes, [])
})

test('EXP-26 tenon preflight exits with 1 when a check fails, and writes nothing but questions about rights', async (t) => {
  const { tenon, writes } = await aCluster(t)
  const { code, out, err } = await tenon('preflight', '--provider', 'kwok')
  assert.deepEqual([code, err], [1, ''])
  assert.match(out, /^ok +clock +/m)
  assert.match(out, /^warn +crds +no CustomResourceDefinition is installed yet\. Fix: /m)
  assert.match(out, /^ok +rights +you may grant the \d+ rights/m)
  assert.match(out, /^ok +credentials +KWOK has none$/m)
  assert.match(out, /^fail +room +there is no room for 1 pod of the controller/m)
  assert.ok(writes.length > 0)
  for (const write of writes)
    assert.equal(write, 'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews')
  const without = await tenon('preflight', '--provider', 'kwok', '--skip', 'room', '-o', 'json')
  assert.equal(without.code, 0)
  assert.equal((JSON.parse(without.out) as { status: string }).status, 'warn')
})

test('wrong flags and a kubeconfig that does not exist are told, and nothing is checked', async (t) => {
  const { tenon } = await aCluster(t)
  const skip = await tenon('preflight', '--skip', 'everything')
  assert.deepEqual([skip.code, skip.out], [1, ''])
  assert.match(skip.err, /^error: --skip everything: use one of server-version, /)
  assert.equal((await tenon('preflight', '--replicas', 'none')).code, 2)
  const account = await tenon('preflight', '--service-account', 'karpenter')
  assert.match(account.err, /--service-account karpenter: write NAMESPACE\/NAME/)
  const nowhere = await runCommand(['preflight', '--kubeconfig', '/nowhere'])
  assert.equal(nowhere.code, 1)
  assert.match(nowhere.err, /^error: .*\/nowhere/)
})
