/** Consolidation where kube-scheduler fills nodes instead of spreading pods (wanted.md 8). */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type ControlPlane, startControlPlane } from '../src/control-plane.ts'
import { Cluster, type TestObject, until } from './cluster.ts'
import { Controller, crdsYaml } from './tenon.ts'

const scoringStrategy = {
  type: 'MostAllocated',
  resources: [
    { name: 'cpu', weight: 1 },
    { name: 'memory', weight: 1 },
  ],
}
const pool = 'packed'
const [group, version] = ['karpenter.kwok.sh', 'v1alpha1']

function deployment(name: string, replicas: number, cpu: string): TestObject {
  const labels = { app: name }
  const container = {
    name: 'main',
    image: 'registry.k8s.io/pause:3.10',
    resources: { requests: { cpu, memory: '256Mi' } },
  }
  const template = {
    metadata: { labels },
    spec: { terminationGracePeriodSeconds: 0, containers: [container] },
  }
  const spec = { replicas, selector: { matchLabels: labels }, template }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'default' }, spec }
}

const nodeOf = (pod: TestObject | undefined) =>
  (pod?.['spec'] as { readonly nodeName?: string } | undefined)?.nodeName

test('WNT-39 with MostAllocated consolidation empties nodes, launches none, and its moves hold', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tenon-scheduler-profile-'))
  const log = join(folder, 'controller.log')
  let controller: Controller | undefined
  let controlPlane: ControlPlane | undefined
  t.after(async (context) => {
    if (controller !== undefined && 'passed' in context && context.passed !== true)
      process.stderr.write(readFileSync(log, 'utf8').split('\n').slice(-40).join('\n'))
    await controller?.end('SIGKILL')
    await controlPlane?.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const features = { gates: [], apis: [], schedulerPlugins: { NodeResourcesFit: { scoringStrategy } } }
  controlPlane = await startControlPlane({ dir: join(folder, 'control-plane'), keep: true, features })
  const { kubeconfigPath, binDir } = controlPlane
  const cluster = new Cluster(kubeconfigPath)
  const apply = ['--kubeconfig', kubeconfigPath, 'apply', '--server-side', '--force-conflicts', '-f', '-']
  execFileSync(join(binDir, 'kubectl'), apply, { input: crdsYaml(), encoding: 'utf8' })
  const claims = () => cluster.list('karpenter.sh/v1', 'NodeClaim')
  await until('the definitions are served', 30, () =>
    claims().then(
      () => true,
      () => false,
    ),
  )
  await cluster.create({
    apiVersion: `${group}/${version}`,
    kind: 'KWOKNodeClass',
    metadata: { name: pool },
    spec: {},
  })
  const type = {
    key: 'node.kubernetes.io/instance-type',
    operator: 'In',
    values: ['c-4x-amd64-linux'],
  }
  await cluster.create({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: pool },
    spec: {
      disruption: { consolidateAfter: '5s', budgets: [{ nodes: '100%' }] },
      template: {
        spec: { nodeClassRef: { group, kind: 'KWOKNodeClass', name: pool }, requirements: [type] },
      },
    },
  })
  controller = new Controller(kubeconfigPath, log, {
    DISABLE_LEADER_ELECTION: 'true',
    FEATURE_GATES: 'PlannedPlacement=false',
    SCHEDULER_CONFIG: JSON.stringify({ nodeResourcesFit: { scoringStrategy } }),
  })
  controller.start()
  const podsOf = (name: string) => cluster.list('v1', 'Pod', 'default', `app=${name}`)
  const untilRunning = (name: string, count: number) =>
    until(`${count} pods of ${name} run`, 420, async () => {
      controller?.assertRunning()
      // A busy API server closes connections.
      const pods = await podsOf(name).catch(() => [])
      return pods.length === count && pods.every(({ status }) => status?.phase === 'Running') && pods
    })
  // Ten fit on a node.
  await cluster.create(deployment('web', 40, '370m'))
  await untilRunning('web', 40)
  const first = new Set((await claims()).map(({ metadata }) => metadata?.name))
  assert.equal(first.size, 4)
  await cluster.patch({ ...deployment('web', 18, '370m') })
  await until('two nodes are left', 420, async () => {
    const left = await claims().catch(() => [])
    return left.length === 2
  })
  await untilRunning('web', 18)
  assert.deepEqual(
    (await claims()).filter(({ metadata }) => !first.has(metadata?.name)),
    [],
    'no node was launched',
  )
  // The scheduler does what the configuration says: by default the second pod would go to the emptier node.
  await cluster.create(deployment('filler', 1, '300m'))
  const [filler] = await untilRunning('filler', 1)
  await cluster.create(deployment('probe', 1, '10m'))
  const [probe] = await untilRunning('probe', 1)
  assert.equal(nodeOf(probe), nodeOf(filler))
})
