import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { karpenterKinds, nodePoolCrd, provisioningRequestCrd, type ResourceType } from '@tenon/api'
import {
  type ApiServer,
  createApiServer,
  createCredentials,
  type Credentials,
  kubeconfigYaml,
} from '@tenon/devcluster'
import { serveHttps, silentLogger, SystemClock, SystemRandom } from '@tenon/runtime'
import { type CommandOutcome, runCommand } from '../../testing/command.test-support.ts'

const crdKind: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}
const kinds = [
  'nodepools.karpenter.sh',
  'nodeclaims.karpenter.sh',
  'nodeoverlays.karpenter.sh',
  'capacitybuffers.autoscaling.x-k8s.io',
  'capacityquotas.autoscaling.x-k8s.io',
  'provisioningrequests.autoscaling.x-k8s.io',
  'exoscalenodeclasses.karpenter.exoscale.com',
  'clevernodeclasses.karpenter.clever-cloud.com',
  'clusterapinodeclasses.karpenter.cluster.x-k8s.io',
  'kwoknodeclasses.karpenter.kwok.sh',
]

let folder: string
let credentials: Credentials

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-crds-'))
  credentials = await createCredentials(new SystemClock().now())
})

after(() => rm(folder, { recursive: true, force: true }))

/** A cluster without custom resources, and `tenon crds` for it. */
async function aCluster(t: TestContext) {
  const { adminToken, signingKey, server: keys, certificateAuthority } = credentials
  const server = createApiServer({
    clock: new SystemClock(),
    random: new SystemRandom(),
    logger: silentLogger,
    adminToken,
    signingKey,
  })
  const https = await serveHttps(server.handle, {
    host: '127.0.0.1',
    port: 0,
    certificate: keys.certificate,
    privateKey: keys.privateKey,
    certificateAuthority: certificateAuthority.certificate,
  })
  t.after(async () => {
    server.stop()
    await https.close()
  })
  const kubeconfig = join(folder, `kubeconfig-${https.port}`)
  await writeFile(kubeconfig, kubeconfigYaml({ server: https.url, credentials }))
  const crds = (...args: readonly string[]): Promise<CommandOutcome> =>
    runCommand(['crds', ...args, '--kubeconfig', kubeconfig])
  const versionOf = (name: string) => server.local.get(crdKind, undefined, name)?.metadata.resourceVersion
  return { server, crds, versionOf }
}

test('CRDs are compared with a cluster and applied, a second time without a change', async (t) => {
  const { server, crds, versionOf } = await aCluster(t)
  const absent = await crds('diff')
  assert.equal(absent.code, 1)
  assert.deepEqual(
    absent.out.trim().split('\n'),
    kinds.map((name) => `Only in this release: customresourcedefinition/${name}`),
  )

  const rehearsed = await crds('apply', '--dry-run')
  assert.match(rehearsed.out, /customresourcedefinition\/nodepools.karpenter.sh created \(dry run\)/)
  assert.equal(versionOf(kinds[0] ?? ''), undefined)

  const applied = await crds('apply')
  assert.deepEqual(applied, {
    code: 0,
    out: kinds.map((name) => `customresourcedefinition/${name} created\n`).join(''),
    err: '',
  })
  assert.deepEqual(server.local.list(karpenterKinds.nodePool), [])
  assert.deepEqual(await crds('diff'), { code: 0, out: '', err: '' })

  const versions = kinds.map(versionOf)
  const again = await crds('apply')
  assert.equal(again.out, kinds.map((name) => `customresourcedefinition/${name} unchanged\n`).join(''))
  assert.deepEqual(kinds.map(versionOf), versions)
})

/** The NodePools of an older release, applied by another tool. */
function olderNodePools(server: ApiServer): void {
  const older = structuredClone(nodePoolCrd) as {
    spec: { versions: { additionalPrinterColumns: { name: string }[] }[] }
  }
  for (const version of older.spec.versions)
    version.additionalPrinterColumns = version.additionalPrinterColumns.filter(({ name }) => name !== 'CPU')
  server.local.patch(crdKind, undefined, 'nodepools.karpenter.sh', { spec: older.spec })
}

test('a CRD that another tool has set is shown line by line, and taken over only when asked', async (t) => {
  const { server, crds } = await aCluster(t)
  await crds('apply')
  olderNodePools(server)
  const different = await crds('diff')
  assert.equal(different.code, 1)
  assert.match(
    different.out,
    /^--- cluster\/nodepools.karpenter.sh\n\+\+\+ tenon\/nodepools.karpenter.sh\n@@ -\d/,
  )
  assert.match(different.out, /^\+ +- jsonPath: \.status\.resources\.cpu$/m)
  assert.doesNotMatch(different.out, /nodeclaims|resourceVersion|managedFields/)

  const refused = await crds('apply')
  assert.equal(refused.code, 2)
  assert.match(
    refused.err,
    /nodepools\.karpenter\.sh: .*conflict.*; --force-conflicts takes these fields over/,
  )

  const applied = await crds('apply', '--force-conflicts')
  assert.equal(applied.code, 0)
  assert.match(applied.out, /jsonPath: \.status\.resources\.cpu[\s\S]*nodepools\.karpenter\.sh configured\n/)
  assert.equal((await crds('diff')).code, 0)
})

/** Kueue's or Cluster Autoscaler's manifests, applied by another tool: other texts, and these versions. */
async function othersRequests(server: ApiServer, versions: readonly string[]): Promise<void> {
  const { spec } = provisioningRequestCrd as { readonly spec: { readonly versions: readonly object[] } }
  const [first = {}] = spec.versions
  const definition = {
    ...provisioningRequestCrd,
    spec: {
      ...spec,
      versions: versions.map((name, at) => ({ ...first, name, served: true, storage: at === 0 })),
    },
  }
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/provisioningrequests.autoscaling.x-k8s.io?fieldManager=kueue`
  const answer = await server.handle({
    method: 'PATCH',
    path,
    headers: {
      authorization: `Bearer ${credentials.adminToken.reveal()}`,
      'content-type': 'application/apply-patch+yaml',
      accept: 'application/json',
    },
    body: JSON.stringify(definition),
  })
  assert.ok(answer.status < 300)
}

test('a definition of Kubernetes that others have installed is left as it is, and told', async (t) => {
  const { server, crds, versionOf } = await aCluster(t)
  await othersRequests(server, ['v1'])
  const name = 'provisioningrequests.autoscaling.x-k8s.io'
  const version = versionOf(name)
  const left =
    /^customresourcedefinition\/provisioningrequests\.autoscaling\.x-k8s\.io left as it is: others own it \(.*"kueue".*\); it serves v1, which is enough$/m
  const applied = await crds('apply')
  assert.equal(applied.code, 0, applied.err)
  assert.match(applied.out, left)
  assert.match(applied.out, /kwoknodeclasses\.karpenter\.kwok\.sh created\n/)
  assert.equal(versionOf(name), version)
  const different = await crds('diff')
  assert.equal(different.code, 0)
  assert.match(different.out, left)

  const forced = await crds('apply', '--force-conflicts')
  assert.match(forced.out, /provisioningrequests\.autoscaling\.x-k8s\.io configured\n/)
  assert.doesNotMatch((await crds('diff')).out, /left as it is/)
})

test('a definition that is left says so when it is too old', async (t) => {
  const { server, crds } = await aCluster(t)
  await othersRequests(server, ['v1beta1'])
  const applied = await crds('apply')
  assert.equal(applied.code, 0)
  assert.match(applied.out, /it serves v1beta1 and not v1, which Tenon reads: update it where it comes from/)
})

test('a cluster that cannot be asked is trouble, not a difference', async (t) => {
  const { crds } = await aCluster(t)
  const missing = await runCommand(['crds', 'diff', '--kubeconfig', join(folder, 'nowhere')])
  assert.equal(missing.code, 2)
  assert.match(missing.err, /^error: .*nowhere/)
  const context = await crds('diff', '--context', 'other')
  assert.equal(context.code, 2)
  assert.match(context.err, /other/)
  await writeFile(
    join(folder, 'closed'),
    'apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]\nusers: [{name: a, user: {token: x}}]\n',
  )
  const closed = await runCommand(['crds', 'diff', '--kubeconfig', join(folder, 'closed')])
  assert.equal(closed.code, 2)
  assert.match(closed.err, /^error: https:\/\/127\.0\.0\.1:1: /)
  const unknown = await runCommand(['crds', 'diff', '--what'])
  assert.equal(unknown.code, 2)
})
