/** `tenon preflight` and `tenon init` for the Cluster Autoscaler mode, with a simulated Cluster API in another cluster. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { KubeObject, ResourceType } from '@tenon/api'
import {
  createApiServer,
  createCredentials,
  kubeconfigYaml,
  type LocalApi,
  startDevCluster,
} from '@tenon/devcluster'
import { type HttpHandler, serveHttps, silentLogger, SystemClock, SystemRandom } from '@tenon/runtime'
import { clusterApiSimulator } from '@tenon/simulator-cluster-api'
import { Ajv } from 'ajv'
import { parse } from 'yaml'
import { deploymentKind } from '../../source/autoscalers.ts'
import { type CommandOutcome, runCommand } from '../../testing/command.test-support.ts'

const chart = new URL('../../../../../charts/cluster-autoscaler/', import.meta.url)
const machineDeployment: ResourceType = {
  group: 'cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'MachineDeployment',
  plural: 'machinedeployments',
  namespaced: true,
}
const size = 'cluster.x-k8s.io/cluster-api-autoscaler-node-group'
const capacity = {
  'capacity.cluster-autoscaler.kubernetes.io/cpu': '4',
  'capacity.cluster-autoscaler.kubernetes.io/memory': '16Gi',
}

interface Clusters {
  readonly hub: LocalApi
  readonly workload: LocalApi
  readonly hubKubeconfig: string
  readonly writes: readonly string[]
  readonly tenon: (...args: readonly string[]) => Promise<CommandOutcome>
  /** The same with the flags of the mode. */
  readonly inMode: (command: 'preflight' | 'init', ...args: readonly string[]) => Promise<CommandOutcome>
}

/** A workload cluster of which nothing is known, and its management cluster, each on a socket. */
async function clusters(t: TestContext): Promise<Clusters> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-groups-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const clock = new SystemClock()
  const random = new SystemRandom()
  const credentials = await createCredentials(clock.now())
  const { adminToken, signingKey } = credentials
  const cluster = startDevCluster({
    clock,
    random,
    logger: silentLogger,
    credentials,
    simulator: clusterApiSimulator({}),
  })
  t.after(() => {
    cluster.stop()
  })
  const server = createApiServer({ clock, random, logger: silentLogger, adminToken, signingKey })
  t.after(() => {
    server.stop()
  })
  const writes: string[] = []
  const served = async (name: string, handler: HttpHandler) => {
    const recorded: HttpHandler = (request, signal) => {
      if (request.method !== 'GET') writes.push(`${request.method} ${request.path}`)
      return handler(request, signal)
    }
    const https = await serveHttps(recorded, {
      host: '127.0.0.1',
      port: 0,
      certificate: credentials.server.certificate,
      privateKey: credentials.server.privateKey,
      certificateAuthority: credentials.certificateAuthority.certificate,
    })
    t.after(() => https.close())
    const path = join(folder, name)
    await writeFile(path, kubeconfigYaml({ server: https.url, credentials }))
    return path
  }
  const kubeconfig = await served('workload', (request, signal) => server.handle(request, signal))
  const hubKubeconfig = await served('hub', (request, signal) => cluster.server.handle(request, signal))
  const tenon = (...args: readonly string[]) => runCommand([...args, '--kubeconfig', kubeconfig])
  return {
    hub: cluster.server.localAs('kubectl'),
    workload: server.localAs('kubectl'),
    hubKubeconfig,
    writes,
    tenon,
    inMode: (command, ...args) =>
      tenon(
        command,
        '--mode',
        'cluster-autoscaler',
        '--cloud-provider',
        'clusterapi',
        '--cloud-config',
        hubKubeconfig,
        ...args,
      ),
  }
}

function put(hub: LocalApi, name: string, annotations: object, replicas?: number): void {
  hub.create(machineDeployment, {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'MachineDeployment',
    metadata: { name, namespace: 'default', annotations },
    spec: {
      clusterName: 'prod',
      selector: { matchLabels: { pool: name } },
      template: {
        metadata: { labels: { pool: name } },
        spec: {
          clusterName: 'prod',
          bootstrap: { dataSecretName: 'none' },
          infrastructureRef: {
            apiGroup: 'infrastructure.cluster.x-k8s.io',
            kind: 'DockerMachineTemplate',
            name,
          },
        },
      },
      ...(replicas !== undefined && { replicas }),
    },
  } as KubeObject)
}

test('preflight of node groups prints a line for each finding, and asks nothing but about rights', async (t) => {
  const { hub, writes, inMode } = await clusters(t)
  put(hub, 'good', { [`${size}-max-size`]: '5', ...capacity }, 0)
  const good = await inMode('preflight')
  assert.deepEqual([good.code, good.err], [0, ''], good.out)
  for (const check of ['server-version', 'rights', 'cluster-api', 'management-rights'])
    assert.match(good.out, new RegExp(`^ok +${check} `, 'm'))
  const page = readFileSync(new URL('../../docs/ask/preflight.md', chart), 'utf8')
  const [, described = ''] = page.split('\n## Node groups\n')
  for (const [, check = ''] of good.out.matchAll(/^ok +([a-z-]+) /gm))
    assert.ok(described.includes(`\`${check}\``), check)
  assert.match(good.out, /^ok +node-groups +1 node group: MachineDeployment\/default\/good \(0 to 5\)$/m)
  put(hub, 'crossed', { [`${size}-min-size`]: '5', [`${size}-max-size`]: '3' }, 3)
  put(hub, 'empty', { [`${size}-max-size`]: '3' }, 0)
  const { code, out } = await inMode('preflight')
  assert.equal(code, 1)
  assert.match(
    out,
    /^fail +node-groups +MachineDeployment\/default\/crossed: annotation .*max-size is "3".*Fix: raise it\.$/m,
  )
  assert.match(
    out,
    /^fail +node-groups +MachineDeployment\/default\/empty: it has no replicas.*Fix: kubectl .*\.$/m,
  )
  const json = await inMode('preflight', '-o', 'json', '--skip', 'node-groups')
  assert.equal((JSON.parse(json.out) as { status: string }).status, 'ok')
  assert.ok(writes.length > 0)
  for (const write of writes)
    assert.equal(write, 'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews')
})

test('preflight takes the flags of the autoscaler that runs, and wants its management cluster named', async (t) => {
  const { hub, workload, hubKubeconfig, tenon } = await clusters(t)
  put(hub, 'good', { [`${size}-max-size`]: '5', ...capacity }, 0)
  const flags = [
    '--cloud-provider=clusterapi',
    '--cloud-config=/etc/kubernetes/mgmt-kubeconfig',
    '--node-group-auto-discovery=clusterapi:namespace=default,clusterName=elsewhere',
  ]
  workload.create(deploymentKind, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'autoscaler', namespace: 'kube-system' },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'autoscaler' } },
      template: {
        metadata: { labels: { app: 'autoscaler' } },
        spec: {
          serviceAccountName: 'autoscaler',
          containers: [
            { name: 'autoscaler', image: 'tenon:v1', command: ['./cluster-autoscaler', ...flags] },
          ],
        },
      },
    },
  } as KubeObject)
  const unnamed = await tenon('preflight', '--mode', 'cluster-autoscaler')
  assert.equal(unnamed.code, 1)
  assert.match(
    unnamed.err,
    /^error: Deployment kube-system\/autoscaler reaches its management cluster by --cloud-config=\/etc.*: name a kubeconfig of that cluster with --cloud-config\n$/,
  )
  const { code, out } = await tenon(
    'preflight',
    '--mode',
    'cluster-autoscaler',
    '--cloud-config',
    hubKubeconfig,
  )
  assert.equal(code, 1)
  assert.match(out, /^fail +rights +service account kube-system\/autoscaler may not /m)
  assert.match(
    out,
    /^warn +rights +service account kube-system\/autoscaler may not .*: devices are not considered/m,
  )
  assert.match(
    out,
    /^fail +node-groups +--node-group-auto-discovery=clusterapi:namespace=default,clusterName=elsewhere selects no/m,
  )
})

test('a malformed flag, an unknown cloud and an unknown check are told, and nothing is checked', async (t) => {
  const { tenon, inMode } = await clusters(t)
  const malformed = await inMode('preflight', '--node-group-auto-discovery', 'foo')
  assert.deepEqual([malformed.code, malformed.out], [1, ''])
  assert.match(malformed.err, /^error: --node-group-auto-discovery is "foo", which is not clusterapi:PARTS/)
  const cloud = await tenon('preflight', '--mode', 'cluster-autoscaler', '--cloud-provider', 'aws')
  assert.match(
    cloud.err,
    /^error: --cloud-provider=aws: it has no node groups; use exoscale or clusterapi\n$/,
  )
  const none = await tenon('preflight', '--mode', 'cluster-autoscaler')
  assert.match(
    none.err,
    /^error: no Node tells which cloud has the node groups: name it with --cloud-provider/,
  )
  const skip = await inMode('preflight', '--skip', 'room')
  assert.match(skip.err, /^error: --skip room: use one of server-version, .*node-groups/)
})

test('without credentials of Exoscale nothing counts as fine', async (t) => {
  const { tenon } = await clusters(t)
  const flags = ['--mode', 'cluster-autoscaler', '--cloud-provider', 'exoscale']
  const { code, out } = await tenon('preflight', ...flags)
  assert.equal(code, 1)
  assert.match(out, /^fail +credentials +EXOSCALE_ZONE is not set/m)
  for (const check of ['cloud-rights', 'cloud-dns', 'node-groups'])
    assert.match(out, new RegExp(`^warn +${check} +not asked: settings are missing`, 'm'))
})

test('init writes values of the chart for the groups that there are', async (t) => {
  const { hub, writes, inMode } = await clusters(t)
  const none = await inMode('init')
  assert.equal(none.code, 1)
  assert.match(none.err, /^error: there is no node group to write values for; There is no MachineDeployment/)
  put(hub, 'good', { [`${size}-max-size`]: '5', ...capacity }, 0)
  const { code, out, err } = await inMode('init')
  assert.deepEqual([code, err], [0, ''])
  assert.match(out, /^# Scaled: MachineDeployment\/default\/good, 0 to 5 nodes\.$/m)
  assert.deepEqual(parse(out), {
    cloudProvider: 'clusterapi',
    autoDiscovery: { clusterName: 'prod', namespace: 'default' },
    clusterAPIMode: 'incluster-kubeconfig',
    extraVolumeSecrets: {
      management: {
        name: 'management-kubeconfig',
        mountPath: '/etc/kubernetes',
        items: [{ key: 'value', path: 'mgmt-kubeconfig' }],
      },
    },
  })
  const schema = JSON.parse(readFileSync(new URL('values.schema.json', chart), 'utf8')) as object
  const ajv = new Ajv({ strict: false })
  assert.ok(ajv.validate(schema, parse(out)), ajv.errorsText())
  assert.deepEqual(writes, [])
})

test('a management cluster without Cluster API, or that is not there, leaves nothing as fine', async (t) => {
  const { tenon } = await clusters(t)
  const flags = ['--mode', 'cluster-autoscaler', '--cloud-provider', 'clusterapi']
  const { code, out } = await tenon('preflight', ...flags)
  assert.equal(code, 1)
  assert.match(
    out,
    /^fail +cluster-api +the management cluster https.* serves nothing of that group.*Fix: install/m,
  )
  for (const check of ['management-rights', 'node-groups'])
    assert.match(out, new RegExp(`^fail +${check} +unknown: no supported version is served`, 'm'))
  const folder = await mkdtemp(join(tmpdir(), 'tenon-groups-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const nowhere = join(folder, 'nowhere')
  const credentials = await createCredentials(new SystemClock().now())
  await writeFile(nowhere, kubeconfigYaml({ server: 'https://127.0.0.1:1', credentials }))
  const away = await tenon('preflight', ...flags, '--cloud-config', nowhere, '--timeout', '1s')
  assert.equal(away.code, 1)
  for (const check of ['cluster-api', 'management-rights', 'node-groups'])
    assert.match(away.out, new RegExp(`^fail +${check} +unknown: .*127\\.0\\.0\\.1:1 does not answer`, 'm'))
})
