/** Migrations between an SKS nodepool and a NodePool. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ConfigMap, karpenterKinds, kinds, type Lease } from '@tenon/api'
import type { AccessRight } from '@tenon/kube'
import { rfc3339 } from '@tenon/runtime'
import { aDeployment, deploymentKind } from '@tenon/world'
import { assertPrinted } from '../../testing/printed.test-support.ts'
import { back, minute, type Run, Stage, there } from './migrate-stage.test-support.ts'
import type { PrintedPlan } from './print.ts'

/** Kills the process after its first write, again and again, until one run has nothing left to do. */
async function killedAfterEveryWrite(
  stage: Stage,
  order: typeof there,
): Promise<{ readonly end: Run; readonly deaths: number }> {
  for (let deaths = 0; deaths < 500; deaths++) {
    const end = await stage.run(order, { crashAt: 1 })
    if (end !== undefined) return { end, deaths }
    // So that it does not only come to evictions which are refused for the last one's sake.
    await stage.world.clock.advance(minute)
  }
  throw new Error('it never ended')
}

test('ADO-9 tenon migrate moves 12 nodes of an SKS nodepool to a NodePool within PodDisruptionBudgets, and back', async (t) => {
  const stage = await Stage.open(t, 12, { web: 20, api: 10 })
  const plan = await stage.run({ ...there, isConfirmed: false })
  assert.deepEqual([plan?.code, plan?.writes], [0, []])
  assert.match(plan?.out ?? '', /^12 nodes of sks-nodepool workers go, 0 stay\. .* nodepool general\.$/m)
  assert.match(plan?.out ?? '', /^1 +workers-\S+ +2 +default\/\S+, default\/\S+$/m)
  assert.match(plan?.out ?? '', /^Pods that move: 30, 30 of them to new nodes of NodePools$/m)
  assert.match(plan?.out ?? '', /^Price per hour: 0\.560 of nodes that go, 0\.467 of new ones$/m)
  const went = await stage.run(there)
  assert.deepEqual([went?.code, went?.err], [0, ''])
  assert.deepEqual(stage.violations, [])
  assert.equal(stage.members().length, 0)
  assert.deepEqual(new Set([...stage.placesOf('web'), ...stage.placesOf('api')]), new Set(['general']))
  // Nodes are cordoned before the first pod moves, and each instance is given up alone.
  const first = went?.writes.findIndex((write) => write.endsWith('/eviction'))
  assert.equal(went?.writes.slice(0, first).filter((write) => /^PATCH .*\/nodes\//.test(write)).length, 13)
  assert.equal(went?.writes.filter((write) => write.endsWith(':evict')).length, 12)
  const came = await stage.run(back)
  assert.deepEqual([came?.code, came?.err], [0, ''])
  assert.deepEqual(stage.violations, [])
  assert.equal(stage.members().length, 12)
  assert.deepEqual(new Set([...stage.placesOf('web'), ...stage.placesOf('api')]), new Set(['sks']))
  await stage.world.clock.advance(5 * minute)
  assert.deepEqual(stage.world.claims(), [], 'the NodePool launches nothing again')
  const again = await stage.run({ ...there, isConfirmed: false })
  assert.match(again?.out ?? '', /^12 nodes of sks-nodepool workers go, 0 stay\./m)
})

test('ADO-9 a migration that is killed after every single write comes to the same end, there and back', async (t) => {
  const stage = await Stage.open(t, 3, { web: 6 })
  const went = await killedAfterEveryWrite(stage, there)
  assert.deepEqual([went.end.code, went.end.err, stage.violations], [0, '', []])
  // The size, cordons, records, evictions, and instances.
  assert.ok(went.deaths >= 1 + 3 + 3 + 6 + 3, `${went.deaths} deaths`)
  assert.equal(stage.members().length, 0)
  const came = await killedAfterEveryWrite(stage, back)
  assert.deepEqual([came.end.code, came.end.err, stage.violations], [0, '', []])
  assert.deepEqual([stage.members().length, stage.ready('web')], [3, 6])
  assert.deepEqual(new Set(stage.placesOf('web')), new Set(['sks']))
})

test('ADO-9 it stops at the first pod that does not come back, names it, and a second run goes on', async (t) => {
  const stage = await Stage.open(t, 3, { web: 6 })
  await stage.world.bury(stage.operator)
  const stopped = await stage.run(there)
  assert.equal(stopped?.code, 1)
  assert.match(
    stopped?.err ?? '',
    /^stopped at node\/workers-\S+ of sks-nodepool workers: .*pod default\/web-\S+ has no node: .*nothing changed for 10m0s\nTo go on, /,
  )
  assert.equal(stage.members().length, 3, 'no instance goes before its pods are back')
  stage.operator = await stage.world.startOperator()
  const went = await stage.run(there)
  assert.deepEqual([went?.code, went?.err, stage.members().length, stage.violations], [0, '', 0, []])
})

test('ADO-9 nodes that a person uncordons stay, and so do those with pods that may not move', async (t) => {
  const stage = await Stage.open(t, 4, { web: 6 })
  const { local } = stage.world.cluster.server
  const [kept = '', bare = '', pinned = ''] = stage.world.nodes().map(({ metadata }) => metadata.name)
  const { spec } = aDeployment('alone', 1).spec.template
  for (const [name, node, annotations] of [
    ['alone', bare, {}],
    ['pinned', pinned, { 'karpenter.sh/do-not-disrupt': 'true' }],
  ] as const) {
    const owner = { apiVersion: 'example.com/v1', kind: 'Thing', name: 't', uid: 'u', controller: true }
    local.create(kinds.pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace: 'default',
        annotations,
        ...(name === 'pinned' && { ownerReferences: [owner] }),
      },
      spec: { ...spec, nodeName: node },
    })
  }
  // Values that nobody has written for it.
  stage.annotate(kept, {
    'tenon.sh/migrating': '__proto__',
    'tenon.sh/migrating-workloads': '[{"ready":1e309}]',
  })
  stage.annotate(bare, { 'tenon.sh/migrating-workloads': 'x'.repeat(10_000) })
  const went = await stage.run(there)
  assert.equal(went?.code, 1)
  assert.equal(
    went?.err,
    [
      '3 nodes of sks-nodepool workers not removed:',
      ...[
        [kept, 'a person has uncordoned it'],
        [bare, 'pod default/alone: it has no controller that would start it again'],
        [pinned, 'pod default/pinned: annotation karpenter.sh/do-not-disrupt'],
      ]
        .toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1))
        .map(([node = '', why = '']) => `  node/${node}: ${why}`),
      'Those that are cordoned take no pods until kubectl uncordon NODE.',
    ].join('\n'),
  )
  assert.deepEqual([stage.members().length, stage.violations], [3, []])
  assert.equal(stage.node(kept)?.spec?.unschedulable, undefined)
  assert.ok(local.get(kinds.pod, 'default', 'alone') !== undefined)
  assert.ok(local.get(kinds.pod, 'default', 'pinned') !== undefined)
})

test('ADO-9 it refuses to begin what another autoscaler would undo, or nobody would launch nodes for', async (t) => {
  const stage = await Stage.open(t, 1, { web: 2 })
  const { local } = stage.world.cluster.server
  const errorOf = async (order: typeof there) => (await stage.run(order))?.err
  assert.match(
    (await errorOf({ ...there, nodePool: 'nope' })) ?? '',
    /nodepools\.karpenter\.sh "nope" not found/,
  )
  const unknown = { kind: 'sks-nodepool', name: 'nope' }
  assert.equal(
    await errorOf({ ...there, group: unknown }),
    'there is no sks-nodepool nope with a node in this cluster',
  )
  assert.match(
    (await stage.run(there, { secret: 'wrong' }))?.err ?? '',
    /^whether sks-nodepool workers has a node in this cluster is not known: node \S+: .*401/,
  )
  assert.match((await errorOf(back)) ?? '', /^how many nodes sks-nodepool workers had is not known/)
  const paused = { metadata: { annotations: { 'tenon.sh/paused': '{"includes":["launches"]}' } } }
  local.patch(karpenterKinds.nodePool, undefined, 'general', paused)
  assert.equal(await errorOf(there), 'launches of nodepool general are paused: tenon resume nodepool/general')
  assert.match((await errorOf({ ...back, nodes: 2 })) ?? '', /^nodepool general is paused by somebody/)
  local.patch(karpenterKinds.nodePool, undefined, 'general', {
    metadata: { annotations: { 'tenon.sh/paused': null } },
  })
  const scaler = aDeployment('cluster-autoscaler', 1)
  const [container] = scaler.spec.template.spec.containers ?? []
  const containers = [
    { ...container, name: 'app', image: 'registry.k8s.io/autoscaling/cluster-autoscaler:v1' },
  ]
  const template = { ...scaler.spec.template, spec: { containers } }
  const running = { ...scaler, spec: { ...scaler.spec, template } }
  local.create(deploymentKind, running)
  assert.equal(
    await errorOf(there),
    'Deployment default/cluster-autoscaler runs a Cluster Autoscaler, which would change the node group meanwhile: kubectl -n default scale deployment cluster-autoscaler --replicas=0',
  )
  assert.deepEqual([stage.members().length, stage.violations], [1, []])
  assert.ok(stage.world.nodes().every(({ spec }) => spec?.unschedulable !== true))
})

test('ADO-9 what changes while it runs counts: nodes that join, and pods that may not move any more', async (t) => {
  const stage = await Stage.open(t, 4, { web: 8 })
  const { clock } = stage.world
  const { local } = stage.world.cluster.server
  const begun = stage.begin(there)
  await clock.advanceUntil(() => stage.members().length < 4, 30 * minute)
  const growing = stage.grow()
  const last = stage.world
    .nodes()
    .map(({ metadata }) => metadata.name)
    .filter((name) => name.startsWith('workers-'))
    .toSorted()
    .at(-1)
  const pinned = stage.world.pods().find(({ spec }) => spec.nodeName === last)?.metadata.name ?? ''
  local.patch(kinds.pod, 'default', pinned, {
    metadata: { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } },
  })
  await clock.advanceUntil(begun.isOver, 60 * minute)
  await growing
  assert.equal(
    begun.end()?.err,
    [
      '1 node of sks-nodepool workers not removed:',
      `  node/${last}: pod default/${pinned}: annotation karpenter.sh/do-not-disrupt`,
      'Those that are cordoned take no pods until kubectl uncordon NODE.',
    ].join('\n'),
  )
  assert.match(begun.end()?.out ?? '', /^4 nodes removed$/m)
  assert.deepEqual([stage.members().length, stage.violations], [1, []])
})

function aLease(name: string, renewTime: string): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'kube-system' },
    spec: { holderIdentity: 'somebody', renewTime, leaseDurationSeconds: 15 },
  }
}

function aStatus(written: string): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: 'cluster-autoscaler-status',
      namespace: 'kube-system',
      annotations: { 'cluster-autoscaler.kubernetes.io/last-updated': written },
    },
    data: { status: 'autoscalerStatus: Running\n' },
  }
}

/** As Go prints a time, in a zone two hours ahead. */
function goText(ms: number): string {
  return `${new Date(ms + 2 * 60 * minute).toISOString().replace('T', ' ').replace('Z', '123')} +0200 CEST`
}

test('ADO-9 it refuses to begin beside a Cluster Autoscaler that only its lease or its status shows', async (t) => {
  const stage = await Stage.open(t, 1, { web: 2 })
  const { clock } = stage.world
  const { local } = stage.world.cluster.server
  const errorOf = async () => (await stage.run(there))?.err ?? ''
  local.create(kinds.lease, aLease('cluster-autoscaler', rfc3339(clock.now())))
  assert.equal(
    await errorOf(),
    'lease kube-system/cluster-autoscaler is held by the Cluster Autoscaler somebody, which would change the node group meanwhile: stop it where it runs, perhaps on the control plane',
  )
  local.delete(kinds.lease, 'kube-system', 'cluster-autoscaler')
  for (const text of ['', '__proto__', 'x'.repeat(10_000), goText(clock.now() - 30_000)]) {
    local.create(kinds.configMap, aStatus(text))
    assert.match(
      await errorOf(),
      /^ConfigMap kube-system\/cluster-autoscaler-status was written \d+s ago by a Cluster Autoscaler, which would change the node group meanwhile: .*wait two minutes/,
    )
    local.delete(kinds.configMap, 'kube-system', 'cluster-autoscaler-status')
  }
  assert.ok(stage.world.nodes().every(({ spec }) => spec?.unschedulable !== true))
  // What is left of one that has ended stops nothing.
  local.create(kinds.lease, aLease('cluster-autoscaler', rfc3339(clock.now())))
  local.create(kinds.configMap, aStatus(goText(clock.now())))
  await clock.advance(3 * minute)
  const plan = await stage.run({ ...there, isConfirmed: false })
  assert.match(plan?.out ?? '', /^Nothing has been changed\. The same command with --yes does it\.$/m)
})

test('ADO-9 a Cluster Autoscaler that starts meanwhile stops a migration before the next node, by any clock', async (t) => {
  const stage = await Stage.open(t, 3, { web: 6 })
  const { clock } = stage.world
  const { local } = stage.world.cluster.server
  const old = '2020-01-01T00:00:00Z'
  local.create(kinds.lease, aLease('cluster-autoscaler', old))
  const begun = stage.begin(there)
  await clock.advanceUntil(() => stage.members().length < 3 || begun.isOver(), 30 * minute)
  local.patch(kinds.lease, 'kube-system', 'cluster-autoscaler', {
    spec: { renewTime: '2020-01-01T00:00:10Z' },
  })
  await clock.advanceUntil(begun.isOver, 30 * minute)
  assert.match(
    begun.end()?.err ?? '',
    /^stopped at node\/workers-\S+ of sks-nodepool workers: lease kube-system\/cluster-autoscaler is held by /,
  )
  assert.equal(stage.members().length, 2)
})

test('ADO-9 of two migrations at one time the second names the first, and a killed one holds nobody up for long', async (t) => {
  const stage = await Stage.open(t, 3, { web: 6 })
  const { clock } = stage.world
  const first = stage.begin(there)
  await clock.advanceUntil(() => stage.members().length < 3, 30 * minute)
  const second = await stage.run(there)
  assert.match(
    second?.err ?? '',
    /^another migration runs in this cluster: lease kube-system\/tenon-migrate is held by migration-1, which has renewed it at \S+\. Run the command again when that one has ended$/,
  )
  assert.deepEqual(second?.writes, [])
  const plan = await stage.run({ ...there, isConfirmed: false })
  assert.equal(plan?.code, 0, 'a plan needs no lock')
  first.kill()
  const killedMs = clock.now()
  const third = stage.begin(there, { output: 'json' })
  await clock.advanceUntil(() => third.hasWritten() || third.isOver(), 30 * minute)
  assert.ok(clock.now() - killedMs <= 40_000, `${clock.now() - killedMs} ms`)
  await clock.advanceUntil(third.isOver, 30 * minute)
  assert.deepEqual([third.end()?.code, third.end()?.err, stage.members().length], [0, '', 0])
  assert.match(third.end()?.out ?? '', /"event":"waiting","holder":"migration-1"/)
  assert.deepEqual(stage.violations, [])
  const lease = stage.world.cluster.server.local.get(kinds.lease, 'kube-system', 'tenon-migrate')
  assert.equal(lease?.spec?.holderIdentity, '')
})

test('ADO-9 a migration that cannot renew its lease writes nothing more', async (t) => {
  const stage = await Stage.open(t, 3, { web: 6 })
  const { clock } = stage.world
  const begun = stage.begin(there)
  await clock.advanceUntil(() => stage.members().length < 3, 30 * minute)
  const { local } = stage.world.cluster.server
  local.patch(kinds.lease, 'kube-system', 'tenon-migrate', { spec: { holderIdentity: 'thief' } })
  await clock.advanceUntil(begun.isOver, 30 * minute)
  assert.match(
    begun.end()?.err ?? '',
    /^lease kube-system\/tenon-migrate could not be renewed, .*Run the command again/,
  )
  const left = stage.members().length
  await clock.advance(5 * minute)
  assert.equal(stage.members().length, left)
})

test('ADO-9 with -o json each line is an object as its schema says, and errors are not among them', async (t) => {
  const stage = await Stage.open(t, 2, { web: 4 })
  const lines = (run: Run | undefined) =>
    (run?.out ?? '')
      .trimEnd()
      .split('\n')
      .map((line) => {
        assertPrinted(line)
        return JSON.parse(line) as Partial<PrintedPlan> & { readonly kind: string; readonly event?: string }
      })
  const eventsOf = (run: Run | undefined) => lines(run).map(({ kind, event }) => event ?? kind)
  const [plan, ...rest] = lines(await stage.run({ ...there, isConfirmed: false }, { output: 'json' }))
  assert.deepEqual(rest, [])
  assert.deepEqual(
    [plan?.kind, plan?.from, plan?.to, plan?.staying, plan?.turns?.map(({ pods }) => pods.length)],
    ['MigrationPlan', 'sks-nodepool workers', 'nodepool general', [], [2, 2]],
  )
  const went = await stage.run(there, { output: 'json' })
  assert.deepEqual(eventsOf(went), [
    'MigrationPlan',
    'cordoned',
    'cordoned',
    'draining',
    'removed',
    'draining',
    'removed',
    'ended',
  ])
  const came = await stage.run({ ...back, limitMs: minute }, { output: 'json' })
  assert.deepEqual(eventsOf(came).slice(0, 3), ['MigrationPlan', 'paused', 'growing'])
  assert.match(came?.out ?? '', /"event":"ended","removed":\d,"staying":\[\],"pausedNodePool":"general"/)
  await stage.world.bury(stage.operator)
  const stopped = await stage.run(there, { output: 'json' })
  assert.deepEqual(eventsOf(stopped).at(-1), 'stopped')
  assert.equal(stopped?.code, 1)
})

test('ADO-9 a missing right is one line with what it is for, before anything is changed', async (t) => {
  const stage = await Stage.open(t, 1, { web: 2 })
  const lacking = (...texts: readonly string[]) => ({
    mayNot: ({ verb, resource, subresource }: AccessRight) =>
      texts.includes([verb, [resource, subresource].filter(Boolean).join('/')].join(' ')),
  })
  const evictions = await stage.run(
    there,
    lacking('create pods/eviction', 'patch nodes', 'delete nodeclaims'),
  )
  assert.deepEqual(
    [evictions?.err, evictions?.writes, evictions?.out],
    ['you may not patch nodes (to cordon nodes); create pods/eviction (to drain nodes)', [], ''],
  )
  const plan = await stage.run({ ...there, isConfirmed: false }, lacking('create pods/eviction'))
  assert.match(
    plan?.out ?? '',
    /^Nothing has been changed\. Before --yes does it: you may not create pods\/eviction \(to drain nodes\)$/m,
  )
  const claims = await stage.run({ ...back, nodes: 1 }, lacking('delete nodeclaims'))
  assert.equal(
    claims?.err,
    'you may not delete nodeclaims.karpenter.sh (to remove drained nodes of the NodePool)',
  )
  const unread = await stage.run({ ...there, isConfirmed: false }, lacking('list configmaps', 'list leases'))
  assert.equal(
    unread?.err,
    'you may not list leases.coordination.k8s.io "cluster-autoscaler", list configmaps "cluster-autoscaler-status" (to see whether a Cluster Autoscaler runs)',
  )
  const lease = stage.world.cluster.server.local.get(kinds.lease, 'kube-system', 'tenon-migrate')
  assert.equal(lease, undefined)
})

test('ADO-9 all pods and all nodes are listed as often for six nodes as for two', async (t) => {
  const whole = async (nodes: number) => {
    const stage = await Stage.open(t, nodes, { web: nodes * 2 })
    const went = await stage.run(there)
    assert.deepEqual([went?.code, went?.err], [0, ''])
    return (went?.reads ?? []).filter((path) => /^\/api\/v1\/(pods|nodes)\?(?!.*Selector=)/.test(path)).length
  }
  assert.equal(await whole(6), await whole(2))
})
