/** Five hundred pods under five PDBs leave their nodes at once, on the real control plane. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { annotations, karpenterKinds, kinds, type Node, type PodSpec } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { barePod, deployment, proofKinds } from '../src/scheduling-proof/objects.ts'
import { sharedControlPlane } from './cluster.ts'
import { DrainStand, type WatchedBudget } from './drain-stand.ts'

const gracePeriodMs = 140_000
/** Requests and watches take a moment. */
const slackMs = 2000

interface Group {
  readonly name: string
  readonly replicas: number
  /** Whose PDBs cover its pods; by default its own. */
  readonly covered?: readonly string[]
  readonly graceSeconds?: number
  readonly protection?: string
  readonly priorityClassName?: string
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
  { name: 'brief', replicas: 2, covered: [], protection: 'true', graceSeconds: 5 },
  { name: 'pinned', replicas: 3, covered: [], protection: '60s' },
]
const podCount = groups.reduce((sum, { replicas }) => sum + replicas, 0)
const covering = (budget: string) => ({ [`budget-${budget}`]: 'yes' })

/** The PDBs, and how many pods of each group and of `both` they want to stay. */
const budgets = [
  { name: 'front', spec: { minAvailable: 110 }, desiredHealthy: 110 },
  { name: 'api', spec: { minAvailable: '90%' }, desiredHealthy: 109 },
  { name: 'work', spec: { maxUnavailable: 12 }, desiredHealthy: 108 },
  { name: 'batch', spec: { maxUnavailable: '25%' }, desiredHealthy: 60 },
  { name: 'db', spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' }, desiredHealthy: 39 },
] as const

describe('a drain of 500 pods under five PDBs', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let stand: DrainStand

  before(async () => {
    controlPlane = await sharedControlPlane()
    stand = await DrainStand.start(controlPlane.kubeconfigPath)
    await createPool(stand)
    await createWorkloads(stand)
    const isUp = await stand.wait(() => serving(stand).length === podCount, stand.clock.now() + 150_000)
    assert.ok(isUp, `${serving(stand).length} of ${podCount} pods run`)
  })

  after(async () => {
    await removeWorkloads(stand)
    await stand.clear()
    await stand.stop()
    await controlPlane.stop()
  })

  let old: ReadonlySet<string>

  test('LIF-83 LIF-84 LIF-86 LIF-94 ends by the deadline, breaks no PDB and takes no protected pod early', async (t) => {
    const { clock, client, operator } = stand
    const nodes = operator.caches.nodes.list()
    old = new Set(nodes.map(({ metadata }) => metadata.name))
    const leaving = new Set(serving(stand).map(({ metadata }) => metadata.uid))
    const nodeOf = new Map(serving(stand).map(({ metadata, spec }) => [metadata.name, spec.nodeName]))
    const others = await placeOthers(stand, nodes)
    const sick = stand.pods.list().find(({ metadata }) => metadata.labels?.['app'] === 'db')
    const unready = { status: { conditions: [{ type: 'Ready', status: 'False' }] } }
    const sickKey = { namespace: 'default', name: sick?.metadata.name ?? '' }
    await client.patch(kinds.pod, sickKey, unready, { subresource: 'status' })

    const startMs = clock.now()
    const cpu = process.cpuUsage()
    const watched: readonly WatchedBudget[] = budgets.map(({ name, desiredHealthy }) => ({
      name,
      matchLabels: covering(name),
      desiredHealthy,
    }))
    // The least it can be: times in the API are whole seconds.
    stand.follow(watched, Math.floor(startMs / 1000) * 1000 + gracePeriodMs)
    const claims = operator.caches.nodeClaims.list()
    await Promise.all(
      claims.map(({ metadata: { name } }) => client.delete(karpenterKinds.nodeClaim, { name })),
    )
    /** By node; they differ where claims were deleted in different seconds. */
    const deadlines = () =>
      new Map(
        operator.caches.nodeClaims
          .list()
          .map(({ metadata, status }): [string | undefined, number] => [
            status?.nodeName,
            Date.parse(metadata.annotations?.[annotations.terminationTimestamp] ?? ''),
          ])
          .filter(([, deadline]) => !Number.isNaN(deadline)),
      )
    await stand.wait(() => deadlines().size === claims.length, startMs + 20_000)
    const deadlineOf = deadlines()
    const deadlineMs = Math.max(...deadlineOf.values())
    const left = () => stand.pods.list().filter(({ metadata }) => leaving.has(metadata.uid))
    const isOver = await stand.wait(() => left().length === 0, deadlineMs + slackMs)
    const tookMs = clock.now() - startMs
    const { user, system } = process.cpuUsage(cpu)
    t.diagnostic(
      `${(tookMs / 1000).toFixed(1)} s of ${gracePeriodMs / 1000}, ${nodes.length} nodes, ` +
        `evictions by status ${JSON.stringify(stand.counts())}, ` +
        `${stand.requests.filter(({ kind }) => kind === 'delete').length} deletions, ${stand.latencies()}, ` +
        `${((user + system) / 1e6).toFixed(1)} s of processor time`,
    )
    assert.deepEqual(
      left().map(({ metadata }) => `${metadata.name} ${metadata.deletionTimestamp ?? 'was not told to go'}`),
      [],
      'all pods have left by the deadline',
    )
    assert.ok(isOver)
    assert.deepEqual(stand.complaints, [])
    const touched = stand.requests.filter(({ pod }) => others.includes(pod))
    assert.deepEqual(touched, [], 'pods that no drain waits for are left alone')
    for (const [name, graceMs, count] of [
      ['kept', 60_000, 4],
      ['both', 30_000, 1],
      ['brief', 5000, 2],
    ] as const) {
      // The first of each pod: one whose answer is late is sent again.
      const firstOf = new Map(
        stand.requests
          .filter(({ kind, pod }) => kind === 'delete' && pod.startsWith(`${name}-`))
          .toReversed()
          .map(({ atMs, pod }) => [pod, (deadlineOf.get(nodeOf.get(pod)) ?? Number.NaN) - atMs]),
      )
      const early = [...firstOf.values()]
      assert.equal(early.length, count, name)
      assert.ok(
        early.every((ms) => ms < graceMs && ms > 0),
        `${name}: ${early.join(', ')} ms before the deadline`,
      )
    }
    assert.deepEqual(stand.haste(), [], 'refused evictions back off')
    const counts = stand.counts()
    assert.ok((counts[500] ?? 0) > 5, 'the pod under two PDBs was asked for again')
    assert.ok((counts[429] ?? 0) < 10 * podCount, `${counts[429]} refusals`)
  })

  test('the drained nodes are gone, and every pod has its replacement on another node', async () => {
    const { clock, operator } = stand
    const isGone = () => operator.caches.nodes.list().every(({ metadata }) => !old.has(metadata.name))
    assert.ok(await stand.wait(isGone, clock.now() + 60_000), 'the nodes are gone')
    assert.ok(await stand.wait(() => serving(stand).length === podCount, clock.now() + 60_000))
    assert.ok(serving(stand).every(({ spec }) => !old.has(spec.nodeName ?? '')))
  })
})

const serving = (stand: DrainStand) =>
  stand.pods
    .list()
    .filter(
      ({ metadata, status }) =>
        groups.some(({ name }) => name === metadata.labels?.['app']) &&
        metadata.deletionTimestamp === undefined &&
        (status?.conditions ?? []).some((each) => each.type === 'Ready' && each.status === 'True'),
    )

async function createPool({ client }: DrainStand): Promise<void> {
  const nodeClass = {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'drain' },
    spec: {},
  }
  await client.create(kwokNodeClassKind, nodeClass).catch((error: unknown) => {
    if (!isKubeError(error, 'alreadyExists')) throw error
  })
  await client.create(karpenterKinds.nodePool, {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'drain' },
    spec: {
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: 'Never' },
      template: {
        spec: {
          expireAfter: 'Never',
          terminationGracePeriod: `${gracePeriodMs / 1000}s`,
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'drain' },
          requirements: [
            { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
            { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
            { key: 'karpenter.kwok.sh/instance-cpu', operator: 'In', values: ['8'] },
          ],
        },
      },
    },
  })
}

async function createWorkloads({ client }: DrainStand): Promise<void> {
  for (const { name, spec } of budgets) {
    await client.create(kinds.podDisruptionBudget, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name, namespace: 'default' },
      spec: { selector: { matchLabels: covering(name) }, ...spec },
    })
  }
  for (const group of groups) {
    const { name, replicas, covered = budgets.some((each) => each.name === name) ? [name] : [] } = group
    const { type, object } = deployment(replicas, {
      namespace: 'default',
      name,
      labels: Object.assign({}, ...covered.map(covering)),
      requests: { cpu: '200m', memory: '128Mi' },
      spec: {
        terminationGracePeriodSeconds: group.graceSeconds ?? 30,
        ...(group.priorityClassName !== undefined && { priorityClassName: group.priorityClassName }),
      },
    })
    const notes = group.protection === undefined ? {} : { [annotations.doNotDisrupt]: group.protection }
    const template = (object as typeof object & { spec: { template: { metadata: object } } }).spec.template
    template.metadata = { ...template.metadata, annotations: notes }
    await client.create(type, object)
  }
  await client.create(kinds.daemonSet, {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'agent', namespace: 'default' },
    spec: {
      selector: { matchLabels: { app: 'agent' } },
      template: {
        metadata: { labels: { app: 'agent' } },
        spec: { containers: [{ name: 'app', image: 'registry.k8s.io/pause' }] },
      },
    },
  })
}

/** Pods that a drain does not wait for, each on a node of its own; answers their names. */
async function placeOthers(stand: DrainStand, nodes: readonly Node[]): Promise<readonly string[]> {
  const { client, clock, pods } = stand
  const place = async (name: string, index: number, spec: Partial<PodSpec>, metadata: object = {}) => {
    const nodeName = nodes[index]?.metadata.name ?? ''
    const { object } = barePod({ namespace: 'default', name, requests: {}, spec: { nodeName, ...spec } })
    await client.create(kinds.pod, { ...object, metadata: { ...object.metadata, ...metadata } } as never)
  }
  const { name = '', uid = '' } = nodes[0]?.metadata ?? {}
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name, uid }]
  await place('static', 0, {}, { ownerReferences })
  await place('tolerant', 1, { tolerations: [{ operator: 'Exists' }] })
  await place('completed', 2, { restartPolicy: 'Never' })
  await place('stuck', 3, {}, { finalizers: ['example.com/hold'] })
  const key = (each: string) => ({ namespace: 'default', name: each })
  await stand.wait(() => pods.get(key('completed'))?.status?.phase === 'Running', clock.now() + 20_000)
  const succeeded = { status: { phase: 'Succeeded' } }
  await client.patch(kinds.pod, key('completed'), succeeded, { subresource: 'status' })
  await client.delete(kinds.pod, key('stuck'), { gracePeriodSeconds: 1 })
  return ['static', 'tolerant', 'completed', 'stuck']
}

async function removeWorkloads(stand: DrainStand): Promise<void> {
  const { client, pods, clock } = stand
  const ignoringGone = (error: unknown) => {
    if (!isKubeError(error, 'notFound')) throw error
  }
  const background = { propagationPolicy: 'Background' } as const
  const inDefault = (name: string) => ({ namespace: 'default', name })
  for (const { name } of budgets)
    await client.delete(kinds.podDisruptionBudget, inDefault(name)).catch(ignoringGone)
  for (const { name } of groups)
    await client.delete(proofKinds.deployment, inDefault(name), background).catch(ignoringGone)
  await client.delete(kinds.daemonSet, inDefault('agent'), background).catch(ignoringGone)
  await client.patch(kinds.pod, inDefault('stuck'), { metadata: { finalizers: null } }).catch(ignoringGone)
  for (const name of ['static', 'tolerant', 'completed', 'stuck'])
    await client.delete(kinds.pod, inDefault(name), { gracePeriodSeconds: 0 }).catch(ignoringGone)
  await client.delete(karpenterKinds.nodePool, { name: 'drain' }, background).catch(ignoringGone)
  await stand.wait(() => pods.size === 0, clock.now() + 60_000)
}
