/** `tenon cluster-autoscaler` on a real control plane, with simulated Exoscale pools whose nodes kwok keeps. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { kinds } from '@tenon/api'
import { createKubeClient, loadKubeConfig } from '@tenon/kube'
import { SystemClock } from '@tenon/runtime'
import { parse } from 'yaml'
import { ClusterAutoscalerProcess } from '../src/cluster-autoscaler-process.ts'
import { ExoscaleMirror } from '../src/exoscale-mirror.ts'
import { aDeployment, Cluster, sharedControlPlane, until } from './cluster.ts'
import { freePort } from './prometheus-server.ts'

const clock = new SystemClock()

/** What users of SKS and of Instance Pools are told to allow (cluster-autoscaler.md 1.2). */
const operations = [
  'evict-instance-pool-members',
  'evict-sks-nodepool-members',
  'get-instance',
  'get-instance-pool',
  'get-operation',
  'get-quota',
  'list-sks-clusters',
  'scale-instance-pool',
  'scale-sks-nodepool',
]

const workers = 'c0010000-0000-4000-8000-000000000001'
const batch = 'c0020000-0000-4000-8000-000000000002'
const seed = {
  nodepools: [
    {
      id: workers,
      name: 'workers',
      type: 'standard.medium',
      size: 1,
      joins: true as const,
      prefix: 'workers',
      labels: { pool: 'workers' },
    },
  ],
  instancePools: [
    { id: batch, name: 'batch', type: 'standard.large', size: 1, joins: true as const, prefix: 'batch' },
  ],
}

/** The arguments of the stock deployment, and times that a test can wait for. */
const args = [
  '--cloud-provider=exoscale',
  '--stderrthreshold=info',
  '--cordon-node-before-terminating',
  '--scale-down-delay-after-add=15s',
  '--scale-down-unneeded-time=15s',
  '--unremovable-node-recheck-timeout=15s',
  '--scan-interval=2s',
  '--max-drain-parallelism=5',
]

describe('Cluster Autoscaler mode', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let cluster: Cluster
  let mirror: ExoscaleMirror
  let folder: string
  let address: string
  let autoscaler: ClusterAutoscalerProcess
  let closeAdmin: () => void

  const running = async (app: string) =>
    (await cluster.list('v1', 'Pod', 'default', `app=${app}`)).filter(
      ({ status }) => status?.phase === 'Running',
    ).length
  const scale = (name: string, replicas: number) =>
    cluster.patch({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: 'default' },
      spec: { replicas },
    })
  const sizes = () => {
    const members = mirror.members()
    return {
      workers: members.filter((name) => name.startsWith('workers')).length,
      batch: members.filter((name) => name.startsWith('batch')).length,
    }
  }
  const status = async (): Promise<string | undefined> => {
    const map = await cluster.get('v1', 'ConfigMap', 'cluster-autoscaler-status', 'kube-system')
    return (map as { readonly data?: Readonly<Record<string, string>> } | undefined)?.data?.['status']
  }

  before(async () => {
    controlPlane = await sharedControlPlane()
    cluster = new Cluster(controlPlane.kubeconfigPath)
    folder = mkdtempSync(join(tmpdir(), 'tenon-cluster-autoscaler-'))
    const config = loadKubeConfig({ env: {}, kubeconfig: controlPlane.kubeconfigPath, clock })
    const admin = createKubeClient({ transport: config.transport, clock, userAgent: 'administrator' })
    closeAdmin = () => {
      config.close()
    }
    for (const { metadata } of await admin.list(kinds.node)) await admin.delete(kinds.node, metadata)
    address = `127.0.0.1:${await freePort()}`
    mirror = await ExoscaleMirror.start({ admin, seed, operations })
    await until('both nodes are ready', 60, async () => {
      const nodes = await cluster.list('v1', 'Node')
      return nodes.filter((node) => node.status?.conditions?.some(isReady)).length === 2
    })
    autoscaler = new ClusterAutoscalerProcess({
      controlPlane,
      folder,
      args: [...args, `--address=${address}`],
      environment: mirror.environment,
    })
    autoscaler.start()
  })

  after(async () => {
    await autoscaler.end('SIGTERM')
    for (const name of ['small', 'large']) await cluster.delete('apps/v1', 'Deployment', name, 'default')
    await mirror.stop()
    closeAdmin()
    rmSync(folder, { recursive: true })
    await controlPlane.stop()
  })

  const isReady = ({ type, status: value }: { readonly type: string; readonly status: string }) =>
    type === 'Ready' && value === 'True'

  test('CAS-40 60 pods grow a nodepool, and pods of another size the Instance Pool', async () => {
    await cluster.create(
      aDeployment({
        name: 'small',
        replicas: 60,
        cpu: '200m',
        memory: '64Mi',
        nodeSelector: { pool: 'workers' },
      }),
    )
    await cluster.create(aDeployment({ name: 'large', replicas: 3, cpu: '3', memory: '1Gi' }))
    await until(
      'all pods run',
      180,
      async () => (await running('small')) === 60 && (await running('large')) === 3,
    )
    const { workers: workerCount, batch: batchCount } = sizes()
    assert.ok(workerCount >= 6 && workerCount <= 9, `${workerCount} workers`)
    assert.equal(batchCount, 3)
  })

  test('CAS-100 CAS-102 the ConfigMap, the events and the metrics are as tools read them', async () => {
    const document = parse((await status()) ?? '') as {
      readonly autoscalerStatus: string
      readonly nodeGroups: readonly {
        readonly name: string
        readonly health: { readonly minSize: number; readonly cloudProviderTarget: number }
      }[]
    }
    assert.equal(document.autoscalerStatus, 'Running')
    const pools = mirror.cloud.instances().map(({ instancePoolId }) => instancePoolId)
    assert.deepEqual(
      new Set(document.nodeGroups.map(({ name }) => name)),
      new Set(pools.filter((id) => id !== undefined)),
    )
    for (const { health } of document.nodeGroups) assert.equal(health.minSize, 1)
    const events = await cluster.list('v1', 'Event')
    const reasons = new Set(events.map((event) => (event as { readonly reason?: string }).reason))
    for (const reason of ['TriggeredScaleUp', 'ScaledUpGroup']) assert.ok(reasons.has(reason), reason)
    const metrics = await (await fetch(`http://${address}/metrics`)).text()
    for (const name of [
      'cluster_autoscaler_scaled_up_nodes_total',
      'cluster_autoscaler_nodes_count{state="ready"}',
      'cluster_autoscaler_function_duration_seconds_bucket',
    ])
      assert.ok(metrics.includes(name), name)
    assert.equal((await fetch(`http://${address}/health-check`)).status, 200)
  })

  test('CAS-94 CAS-22 load gone and killed in the middle, both pools shrink to their minimum', async () => {
    await Promise.all([scale('small', 1), scale('large', 0)])
    await until('the first node goes', 120, async () => {
      const { workers: workerCount, batch: batchCount } = sizes()
      return workerCount + batchCount < 9 && Promise.resolve(true)
    })
    await autoscaler.end('SIGKILL')
    const left = await status()
    autoscaler.start()
    // Whatever goes together went by one call, perhaps before the end.
    await until('it leads again', 60, async () => (await status()) !== left)
    await until('both pools have one node', 240, async () => {
      const { workers: workerCount, batch: batchCount } = sizes()
      return workerCount === 1 && batchCount === 1 && Promise.resolve(true)
    })
    assert.equal(await running('small'), 1)
    const nodes = await until('the nodes of removed instances are gone', 30, async () => {
      const list = await cluster.list('v1', 'Node')
      return list.length === 2 && list
    })
    for (const { spec } of nodes) {
      const taints = (spec?.['taints'] ?? []) as readonly { readonly key: string }[]
      assert.ok(!taints.some(({ key }) => key.startsWith('ToBeDeleted')))
    }
  })

  test('CAS-21 CAS-38 only what the documented role allows was called; the end is clean', async () => {
    const refused = mirror.cloud.calls().filter(({ status: code }) => code === 403)
    assert.deepEqual(refused, [])
    for (const { operation } of mirror.cloud.calls()) assert.ok(operations.includes(operation), operation)
    assert.equal(await autoscaler.end('SIGTERM'), 0)
    assert.equal(await status(), undefined)
    assert.doesNotMatch(autoscaler.log(), /bug in the loop|an iteration threw/)
  })
})
