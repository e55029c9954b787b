/** Five hundred pods under five PDBs leave their nodes at once. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { annotations, karpenterKinds, type KubeObject, kinds, type Node, type Pod } from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { aDeployment, aKwokPool, deploymentKind, World } from '../world.ts'
import { DrainWatch } from './drain-watch.test-support.ts'

const seconds = 1000
const minutes = 60 * seconds

interface Group {
  readonly name: string
  readonly replicas: number
  /** Whose PDBs cover its pods; by default its own. */
  readonly covered?: readonly string[]
  readonly graceSeconds?: number
  readonly protection?: string
  readonly priorityClassName?: string
}

/** How each PDB says what may go. */
const budgets: Readonly<Record<string, object>> = {
  front: { minAvailable: 110 },
  api: { minAvailable: '90%' },
  work: { maxUnavailable: 12 },
  batch: { maxUnavailable: '25%' },
  db: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' },
}

const groups: readonly Group[] = [
  { name: 'front', replicas: 120 },
  { name: 'api', replicas: 120, graceSeconds: 5 },
  { name: 'work', replicas: 120, graceSeconds: 60 },
  { name: 'batch', replicas: 80 },
  { name: 'db', replicas: 40, graceSeconds: 10 },
  { name: 'dns', replicas: 10, covered: [], priorityClassName: 'system-cluster-critical' },
  { name: 'both', replicas: 1, covered: ['front', 'api'] },
  { name: 'kept', replicas: 4, covered: [], protection: 'true', graceSeconds: 60 },
  { name: 'brief', replicas: 2, covered: [], protection: 'true', graceSeconds: 2 },
  { name: 'pinned', replicas: 3, covered: [], protection: '4m' },
]
const podCount = groups.reduce((sum, { replicas }) => sum + replicas, 0)
/** Pods under two PDBs share the namespace of both; the others have one of their own. */
const namespaceOf = (name: string) => (['front', 'api', 'both'].includes(name) ? 'default' : name)

function deploymentOf(group: Group): KubeObject {
  const { name, replicas, covered = name in budgets ? [name] : [], protection, priorityClassName } = group
  const plain = aDeployment(name, replicas, { cpu: '200m', memory: '128Mi' })
  const { template } = plain.spec
  const metadata = {
    labels: { app: name, ...Object.fromEntries(covered.map((budget) => [`budget-${budget}`, 'yes'])) },
    ...(protection !== undefined && { annotations: { [annotations.doNotDisrupt]: protection } }),
  }
  const spec = {
    ...template.spec,
    terminationGracePeriodSeconds: group.graceSeconds ?? 30,
    ...(priorityClassName !== undefined && { priorityClassName }),
  }
  const object = {
    ...plain,
    metadata: { name, namespace: namespaceOf(name) },
    spec: { ...plain.spec, template: { metadata, spec } },
  }
  return object
}

/** A world in which all pods run. */
async function aFullCluster(t: TestContext, watch: DrainWatch): Promise<World> {
  const world = await World.start({ seed: 5, provider: 'kwok', apiPath: watch.apiPath })
  world.create(kwokNodeClassKind, {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
    spec: {},
  })
  const { template, disruption } = aKwokPool().spec
  const requirements = [
    ...(template.spec.requirements ?? []),
    { key: 'karpenter.kwok.sh/instance-cpu', operator: 'In' as const, values: ['8'] },
  ]
  world.create(
    karpenterKinds.nodePool,
    aKwokPool('default', {
      disruption: { ...disruption, consolidateAfter: 'Never' },
      template: { spec: { ...template.spec, requirements, terminationGracePeriod: '10m' } },
    }),
  )
  const running = await world.startOperator()
  t.after(async () => {
    await world.bury(running)
    await world.stop()
  })
  for (const name of new Set(['agents', ...groups.map((group) => namespaceOf(group.name))])) {
    if (name !== 'default')
      world.create(kinds.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  }
  for (const [name, spec] of Object.entries(budgets)) {
    world.create(kinds.podDisruptionBudget, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name, namespace: namespaceOf(name) },
      spec: { selector: { matchLabels: { [`budget-${name}`]: 'yes' } }, ...spec },
    })
  }
  const agent = { app: 'agent' }
  const containers = [{ name: 'app', image: 'registry.k8s.io/pause' }]
  world.create(kinds.daemonSet, {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'agent', namespace: 'agents' },
    spec: {
      selector: { matchLabels: agent },
      template: { metadata: { labels: agent }, spec: { containers } },
    },
  })
  for (const group of groups) world.create(deploymentKind, deploymentOf(group))
  assert.ok(await world.clock.advanceUntil(() => serving(world).length === podCount, 5 * minutes), 'all run')
  await world.clock.advance(15 * seconds)
  return world
}

const serving = (world: World) =>
  world
    .pods()
    .filter(
      ({ metadata, status }) =>
        groups.some(({ name }) => name === metadata.labels?.['app']) &&
        status?.phase === 'Running' &&
        metadata.deletionTimestamp === undefined,
    )

/** A pod that no controller keeps, on `node`. */
function place(
  world: World,
  node: Node,
  name: string,
  parts: { readonly metadata?: Pod['metadata']; readonly spec?: Partial<Pod['spec']> },
): void {
  const { metadata, spec } = parts
  world.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', ...metadata },
    spec: {
      nodeName: node.metadata.name,
      terminationGracePeriodSeconds: 30,
      containers: [{ name: 'app', image: 'registry.k8s.io/pause' }],
      ...spec,
    },
  })
}

/** Pods that a drain does not wait for, each on a node of its own; answers their names. */
function placeOthers(world: World, nodes: readonly Node[]): readonly string[] {
  const [first, second, third, fourth] = nodes
  assert.ok(first && second && third && fourth)
  const { local } = world.cluster.server
  const { name, uid = '' } = first.metadata
  place(world, first, 'static', {
    metadata: { name: 'static', ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }] },
  })
  place(world, second, 'tolerant', {
    spec: { tolerations: [{ operator: 'Exists' }] },
  })
  const runSeconds = { 'tenon.sh/run-seconds': '1' }
  place(world, third, 'completed', {
    metadata: { name: 'completed', annotations: runSeconds },
    spec: { restartPolicy: 'Never' },
  })
  place(world, fourth, 'stuck', { metadata: { name: 'stuck', finalizers: ['example.com/hold'] } })
  local.delete(kinds.pod, 'default', 'stuck')
  return ['static', 'tolerant', 'completed', 'stuck'].map((each) => `default/${each}`)
}

test('LIF-83 LIF-84 LIF-86 LIF-94 500 pods under five PDBs leave by the deadline, and none before its time', async (t) => {
  const watch = new DrainWatch()
  const world = await aFullCluster(t, watch)
  const { local } = world.cluster.server
  const nodes = world.nodes()
  const old = new Set(nodes.map(({ metadata }) => metadata.name))
  const leaving = new Set(serving(world).map(({ metadata }) => metadata.uid))
  const others = placeOthers(world, nodes)
  const sick = serving(world).find(({ metadata }) => metadata.labels?.['app'] === 'db')
  const unready = { status: { conditions: [{ type: 'Ready', status: 'False' }] } }
  local.patch(kinds.pod, 'db', sick?.metadata.name ?? '', unready, 'status')
  await world.clock.advance(10 * seconds)

  const deadlineMs = Math.floor(world.clock.now() / seconds) * seconds + 10 * minutes
  watch.follow(world, deadlineMs)
  for (const { metadata } of world.claims()) local.delete(karpenterKinds.nodeClaim, undefined, metadata.name)
  await world.clock.advance(deadlineMs - world.clock.now())

  assert.deepEqual(watch.complaints, [])
  const left = world.pods().filter(({ metadata }) => leaving.has(metadata.uid))
  assert.deepEqual(
    left.map(({ metadata }) => metadata.name),
    [],
  )
  await world.clock.advance(15 * seconds)
  assert.deepEqual(
    world.nodes().filter(({ metadata }) => old.has(metadata.name)),
    [],
  )
  assert.equal(serving(world).length, podCount)
  assert.ok(serving(world).every(({ spec }) => !old.has(spec.nodeName ?? '')))

  assert.deepEqual(
    watch.requests.filter(({ pod }) => others.includes(pod)),
    [],
    'pods that no drain waits for are left alone',
  )
  const forcedAt = (name: string) =>
    watch.requests
      .filter(({ kind, pod }) => kind === 'delete' && pod.split('/')[1]?.startsWith(`${name}-`))
      .map(({ atMs }) => deadlineMs - atMs)
  for (const [name, graceMs, count] of [
    ['kept', 60_000, 4],
    ['both', 30_000, 1],
    ['brief', 2000, 2],
  ] as const) {
    const early = forcedAt(name)
    assert.equal(early.length, count, name)
    assert.ok(
      early.every((ms) => ms < graceMs && ms > graceMs - 1000),
      `${name}: ${early.join(', ')} ms before the deadline`,
    )
  }
  assert.deepEqual(watch.haste(), [], 'refused evictions back off')
  const counts = watch.counts()
  t.diagnostic(`evictions by status: ${JSON.stringify(counts)}; ${nodes.length} nodes`)
  assert.ok((counts[500] ?? 0) > 10, 'the pod under two PDBs was asked for again')
  assert.ok((counts[429] ?? 0) < 10 * podCount, `${counts[429]} refusals`)
})
