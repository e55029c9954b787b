/** What is told of nodes and NodePools, and of what pods need them (operations.md 9.1, 9.2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, labels, type PodSpec } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, waitingPod } from '../testing/pools.test-support.ts'

const families = [
  'nodes_allocatable',
  'nodes_system_overhead',
  'nodes_total_pod_requests',
  'nodes_total_pod_limits',
  'nodes_total_daemon_requests',
  'nodes_total_daemon_limits',
  'nodes_current_lifetime_seconds',
] as const

interface Value {
  readonly labels: Readonly<Record<string, unknown>>
  readonly value: number
}

async function values(stage: Stage, name: string): Promise<readonly Value[]> {
  const family = stage.operator.operator.metrics.registry.getSingleMetric(`karpenter_${name}`)
  return (await family?.get())?.values ?? []
}

/** Values by resource. */
async function amounts(stage: Stage, name: string, node: string): Promise<Readonly<Record<string, number>>> {
  const own = (await values(stage, name)).filter((each) => each.labels['node_name'] === node)
  return Object.fromEntries(own.map((each) => [String(each.labels['resource_type']), each.value]))
}

const container = (resources: object): Partial<PodSpec> => ({
  containers: [{ name: 'app', image: 'registry.k8s.io/pause', resources }],
})

test('OPS-34 limits and usage of a pool are shown as long as there is the pool', async (t) => {
  const stage = await Stage.open(t, { pool: { limits: { cpu: '10', 'ephemeral-storage': '1Gi' } } })
  await stage.ready('a')
  await stage.pass(16 * seconds)
  const limits = Object.fromEntries(
    (await values(stage, 'nodepools_limit')).map((each) => [each.labels['resource_type'], each.value]),
  )
  assert.deepEqual(limits, { cpu: 10, ephemeral_storage: 2 ** 30 })
  const series = { nodepool: 'default' }
  assert.equal(await stage.metric('nodepools_usage', { ...series, resource_type: 'cpu' }), 4)
  assert.equal(await stage.metric('nodepools_usage', { ...series, resource_type: 'nodes' }), 1)
  assert.equal((await values(stage, 'nodepools_cost_total')).length, 1)
  stage.delete(karpenterKinds.nodePool, 'default')
  await stage.world.clock.advanceUntil(() => stage.poolNow() === undefined, 60 * seconds)
  await stage.pass(100)
  for (const name of ['nodepools_limit', 'nodepools_usage', 'nodepools_cost_total'])
    assert.deepEqual(await values(stage, name), [], name)
})

test('what a node has, what its pods take of it, and how old it is', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  const capacity = { capacity: { cpu: '4500m', memory: '8Gi', pods: '110' } }
  stage.patch(kinds.node, 'node-a', { status: { phase: 'Running', ...capacity } }, 'status')
  const big = { requests: { cpu: '1500m', memory: '1Gi' }, limits: { memory: '2Gi' } }
  await stage.pod('p', 'node-a', { spec: container(big) })
  const daemon = { requests: { cpu: '250m' }, limits: { cpu: '500m' } }
  await stage.pod('d', 'node-a', {
    ownerReferences: [await stage.daemonSet('agent')],
    spec: container(daemon),
  })
  await stage.pass(5 * seconds)
  const [shown] = await values(stage, 'nodes_allocatable')
  assert.deepEqual(shown?.labels, {
    resource_type: 'cpu',
    node_name: 'node-a',
    phase: 'Running',
    managed: 'true',
    nodepool: 'default',
    zone: 'zone-1',
    region: '',
    instance_type: 'medium',
    arch: '',
    os: 'linux',
    capacity_type: 'on-demand',
    windows_build: '',
  })
  const all = await Promise.all(families.slice(0, 6).map((name) => amounts(stage, name, 'node-a')))
  assert.deepEqual(all, [
    { cpu: 4, memory: 8 * 2 ** 30, pods: 110 },
    { cpu: 0.5, memory: 0, pods: 0 },
    { cpu: 1.75, memory: 2 ** 30, pods: 2 },
    { cpu: 0.5, memory: 2 * 2 ** 30, pods: 2 },
    { cpu: 0.25, pods: 1 },
    { cpu: 0.5, pods: 1 },
  ])
  const [age] = await values(stage, 'nodes_current_lifetime_seconds')
  const createdMs = Date.parse(stage.nodeNow('node-a')?.metadata.creationTimestamp ?? '')
  assert.equal(age?.value, (stage.now - createdMs) / 1000)
  const utilized = async () =>
    Object.fromEntries(
      (await values(stage, 'cluster_utilization_percent')).map((each) => [
        each.labels['resource_type'],
        each.value,
      ]),
    )
  assert.deepEqual(await utilized(), { cpu: 43.75, memory: 12.5, pods: 200 / 110 })
  await stage.ready('b')
  await stage.pass(5 * seconds)
  assert.deepEqual(await utilized(), { cpu: 21.875, memory: 6.25, pods: 100 / 110 })
})

test('OPS-35 OPS-41 a resource keeps its name, and the series of a node go within 5 s of it', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.report('node-a', 'True', { 'nvidia.com/gpu': '2', 'ephemeral-storage': '10Gi' })
  await stage.pod('p', 'node-a')
  await stage.pass(5 * seconds)
  assert.equal(await stage.metric('nodes_allocatable', { resource_type: 'nvidia.com/gpu' }), 2)
  assert.equal((await amounts(stage, 'nodes_allocatable', 'node-a'))['ephemeral_storage'], 10 * 2 ** 30)
  for (const name of families.filter((each) => !each.includes('daemon')))
    assert.notDeepEqual(await values(stage, name), [], name)
  stage.delete(kinds.node, 'node-a')
  for (let i = 0; i < 60 && stage.nodeNow('node-a') !== undefined; i++) {
    await stage.pass(seconds)
    if (stage.isLeaving('p') && stage.podNow('p') !== undefined) await stage.end('p')
  }
  assert.equal(stage.nodeNow('node-a'), undefined)
  await stage.pass(5 * seconds)
  for (const name of [...families, 'cluster_utilization_percent'])
    assert.deepEqual(await values(stage, name), [], name)
})

test('with reduced detail nothing is told of single nodes and pods, but of all together', async (t) => {
  const stage = await Stage.open(t, { settings: { metricsDetail: 'reduced' } })
  await stage.ready('a')
  await stage.pod('p', 'node-a', { spec: container({ requests: { cpu: '1' } }) })
  stage.world.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'q', namespace: 'default' },
    spec: { nodeName: 'node-a', ...container({}) } as PodSpec,
  })
  await stage.pass(seconds)
  const conditions = ['PodScheduled', 'Ready'].map((type) => ({
    type,
    status: 'True',
    lastTransitionTime: rfc3339(stage.now),
  }))
  stage.patch(kinds.pod, 'q', { status: { phase: 'Running', conditions } }, 'status', 'default')
  await stage.pass(10 * seconds)
  const text = await stage.operator.operator.metrics.registry.metrics()
  const perObject = [...families, 'pods_state', 'pods_unstarted_time_seconds', 'pods_unbound_time_seconds']
  for (const name of perObject) assert.ok(!text.includes(`karpenter_${name}`), name)
  assert.doesNotMatch(text, /node-a|name="[pq]"/)
  assert.equal(await stage.metric('cluster_utilization_percent', { resource_type: 'cpu' }), 25)
  assert.equal(await stage.metric('nodepools_usage', { resource_type: 'nodes' }), 1)
  for (const name of ['startup', 'bound'])
    assert.equal(await stage.metric(`pods_${name}_duration_seconds`), 1)
})

test('OPS-42 OPS-102 waiting pods count under the one zone they can use, as flexible, or under none', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  stage.cloud.instanceTypes = [aType('medium', 4, ['zone-1', 'zone-2', 'zone-3'])]
  const zoned = (...zones: string[]): Partial<PodSpec> => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: labels.zone, operator: 'In', values: zones }] }],
        },
      },
    },
  })
  const { local } = stage.world.cluster.server
  local.create(kinds.persistentVolume, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'disk' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      csi: { driver: 'csi.example.com', volumeHandle: 'disk' },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: labels.zone, operator: 'In', values: ['zone-2'] }] },
          ],
        },
      },
    },
  } as never)
  local.create(kinds.persistentVolumeClaim, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'default' },
    spec: { volumeName: 'disk', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  })
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
  waitingPod(stage, 'anywhere')
  waitingPod(stage, 'one-zone', { spec: zoned('zone-1') })
  waitingPod(stage, 'two-zones', { spec: zoned('zone-1', 'zone-3') })
  waitingPod(stage, 'with-its-disk', { spec: { ...zoned('zone-1', 'zone-2'), volumes } })
  waitingPod(stage, 'away-from-its-disk', { spec: { ...zoned('zone-1'), volumes } })
  await stage.start()
  await stage.pass(5 * seconds)
  const counts = Object.fromEntries(
    (await values(stage, 'scheduler_pending_pods_by_effective_zone_count')).map((each) => [
      each.labels['zone'],
      each.value,
    ]),
  )
  assert.deepEqual(counts, { 'zone-1': 1, 'zone-2': 1, flexible: 2, none: 1 })
})
