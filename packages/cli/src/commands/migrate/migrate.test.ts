/** Migrations between an SKS nodepool and a NodePool. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds } from '@tenon/api'
import { aDeployment, deploymentKind } from '@tenon/world'
import { back, minute, type Run, Stage, there } from './migrate-stage.test-support.ts'

/** Kills the process after its first write, again and again, until one run has nothing left to do. */
async function killedAfterEveryWrite(
  stage: Stage,
  order: typeof there,
): Promise<{ readonly end: Run; readonly deaths: number }> {
  for (let deaths = 0; deaths < 500; deaths++) {
    const end = await stage.run(order, 1)
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
  assert.match(plan?.out ?? '', /^Price per hour: 0\.560 before, 0\.467 after$/m)
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
      '3 nodes of sks-nodepool workers stay:',
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
    'a Cluster Autoscaler would change the node group meanwhile: kubectl -n default scale deployment cluster-autoscaler --replicas=0',
  )
  assert.deepEqual([stage.members().length, stage.violations], [1, []])
  assert.ok(stage.world.nodes().every(({ spec }) => spec?.unschedulable !== true))
})
