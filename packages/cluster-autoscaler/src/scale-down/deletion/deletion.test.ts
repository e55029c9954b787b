import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '@tenon/api'
import { annotations, toBeDeletedTaint } from '../../names.ts'
import type { ScaleDownOptions } from '../../options/options.ts'
import { during, FakeCluster } from '../fake-cluster.test-support.ts'
import type { ScaleDownOutcome } from '../outcome.ts'
import type { ScaleDown } from '../scale-down.ts'
import { aBudget, aNode, anyTaint, aPod, aRoom, minute, second, startMs } from '../scale-down.test-support.ts'

interface Run {
  readonly cluster: FakeCluster
  readonly scaleDown: ScaleDown
  readonly outcome: ScaleDownOutcome
}

/** Runs one loop over a cluster, and lets time pass. */
async function run(cluster: FakeCluster, options: Partial<ScaleDownOptions> = {}, forMs = 0): Promise<Run> {
  const scaleDown = cluster.scaleDown({ maxBulkSoftTaintCount: 0, ...options })
  const outcome = await during(cluster, cluster.loop(scaleDown))
  await cluster.clock.advance(forMs)
  return { cluster, scaleDown, outcome }
}

function isClean(cluster: FakeCluster, nodeName: string): boolean {
  return cluster.taintKeys(nodeName).length === 0 && cluster.nodes.get(nodeName)?.spec?.unschedulable !== true
}

const emptyNode = () => new FakeCluster().add(aNode('n'), aRoom())
const nodeWith = (...pods: readonly ReturnType<typeof aPod>[]) => emptyNode().add(...pods)

test('CAS-86 a node is tainted and cordoned; without the flag it is not cordoned', async () => {
  const { cluster } = await run(emptyNode())
  const node = cluster.nodes.get('n')
  assert.deepEqual(node?.spec?.taints, [
    { key: toBeDeletedTaint, value: String(startMs / 1000), effect: 'NoSchedule' },
  ])
  assert.equal(node?.spec?.unschedulable, true)
  const { cluster: open } = await run(emptyNode(), { cordonNodeBeforeTerminating: false })
  assert.equal(open.nodes.get('n')?.spec?.unschedulable, undefined)
})

test('CAG-27 a node without a provider ID goes if the cloud names its member, and stays otherwise', async () => {
  const bare = (name: string): Node => ({ ...aNode(name), spec: {} })
  const cluster = new FakeCluster().add(bare('known'), bare('unknown'))
  cluster.memberIds.set('known', 'cloud://known')
  await run(cluster, {}, minute)
  assert.deepEqual(cluster.cloudCalls, [['cloud://known']])
  assert.deepEqual(cluster.eventsOf('ScaleDownFailed'), [
    'unknown: failed to delete empty node: node unknown has no provider ID (spec.providerID), and node group g has no member that names it',
  ])
})

test('CAS-87 when one of three cannot be marked, the others are cleaned, nothing goes, and a failure is noted', async () => {
  const cluster = new FakeCluster().add(aNode('a'), aNode('b'), aNode('c'))
  cluster.unwritable.add('b')
  const { outcome, scaleDown } = await run(cluster, {}, minute)
  assert.deepEqual(outcome.step.kind === 'failed' && outcome.step.error, 'apiCallError')
  assert.deepEqual(
    ['a', 'b', 'c'].map((name) => isClean(cluster, name)),
    [true, true, true],
  )
  assert.deepEqual(cluster.cloudCalls, [])
  assert.match(
    cluster.eventsOf('ScaleDownFailed').join(),
    /^b: failed to mark the node as toBeDeleted\/unschedulable: [^,]+$/,
  )
  assert.deepEqual(
    [...new Set(cluster.ended.map((result) => result.kind === 'failed' && result.stage))],
    ['tainting'],
  )
  cluster.unwritable.clear()
  const { step } = await during(cluster, cluster.loop(scaleDown))
  assert.deepEqual(step, { kind: 'cooldown' })
  await cluster.clock.advance(2 * minute)
  assert.equal((await during(cluster, cluster.loop(scaleDown))).step.kind, 'started')
})

test('CAS-113 when those with pods cannot be marked the empty ones go on, and no deletion is noted', async () => {
  const cluster = nodeWith(aPod('p', { node: 'd', cpu: '100m' })).add(aNode('d'))
  cluster.unwritable.add('d')
  const { outcome, scaleDown } = await run(cluster, {}, minute)
  assert.equal(outcome.step.kind, 'failed')
  assert.equal(outcome.lastDeletionStartedMs, undefined)
  assert.deepEqual(cluster.cloudCalls, [['n']])
  assert.deepEqual((await during(cluster, cluster.loop(scaleDown))).step, { kind: 'cooldown' })
})

test('at most five nodes are marked at once', async () => {
  const cluster = new FakeCluster()
  for (let index = 0; index < 10; index++) cluster.add(aNode(`n${index}`))
  await run(cluster)
  // A write takes 10 ms here: ten of them, five at once.
  assert.equal(cluster.clock.now() - startMs, 20)
})

test('CAS-88 an empty node that gets a pod within the delay stays', async () => {
  const { cluster } = await run(emptyNode(), {}, 2 * second)
  cluster.add(aPod('late', { node: 'n' }))
  await cluster.clock.advance(minute)
  assert.equal(isClean(cluster, 'n'), true)
  assert.deepEqual(cluster.cloudCalls, [])
  assert.deepEqual(cluster.eventsOf('ScaleDownFailed'), [
    'n: failed to delete empty node: pod default/late was bound to it meanwhile',
  ])
})

test('RPB-9 a node that is empty by the cache and has a pod by the API server is not even marked', async () => {
  const cluster = nodeWith(aPod('p', { node: 'n', cpu: '100m' }), aPod('q', { node: 'd', cpu: '100m' }))
  cluster.add(aNode('d'), aPod('late', { node: 'd', owner: 'none' }))
  cluster.unseen.add('p').add('late')
  const { outcome } = await run(cluster, {}, minute)
  assert.deepEqual(outcome.step, { kind: 'nothingToDelete' })
  assert.deepEqual([cluster.cloudCalls, cluster.evictions, cluster.nodeWrites], [[], [], 0])
  assert.deepEqual(cluster.eventsOf('ScaleDownFailed').toSorted(), [
    'd: failed to drain and delete node: pod default/late may not be moved: no controller would create it again',
    'n: failed to delete empty node: pod default/p was bound to it meanwhile',
  ])
  assert.equal(outcome.lastDeletionStartedMs, undefined)
})

for (const [when, afterMs] of [
  ['while others are waited for', 20 * second],
  ['while an annotation holds the deletion up', 20 * second],
] as const)
  test(`RPB-8 a pod that comes to an empty node ${when} keeps it`, async () => {
    const isHeld = when.includes('annotation')
    const delay = 'delay-deletion.cluster-autoscaler.kubernetes.io/x'
    const cluster = new FakeCluster().add(aNode('n', isHeld ? { annotations: { [delay]: '' } } : {}), aRoom())
    await run(cluster, { nodeDeletionBatcherIntervalMs: isHeld ? 0 : 30 * second }, afterMs)
    cluster.add(aPod('late', { node: 'n' }))
    await cluster.clock.advance(3 * minute)
    assert.deepEqual([cluster.cloudCalls, isClean(cluster, 'n')], [[], true])
    assert.deepEqual(cluster.eventsOf('ScaleDownFailed'), [
      'n: failed to delete empty node: pod default/late was bound to it meanwhile',
    ])
  })

test('RPB-8 a pod that comes to a node while that is drained is evicted too, and the third one keeps it', async () => {
  const drained = nodeWith(aPod('p', { node: 'n', cpu: '100m' }))
  await run(drained, { nodeDeletionBatcherIntervalMs: 30 * second }, 20 * second)
  drained.add(aPod('late', { node: 'n' }))
  await drained.clock.advance(2 * minute)
  assert.deepEqual(
    drained.evictions.map(({ pod }) => pod),
    ['p', 'late'],
  )
  assert.deepEqual(drained.cloudCalls, [['n']])

  const sticky = nodeWith(aPod('p', { node: 'n', cpu: '100m' }))
  await run(sticky, { nodeDeletionBatcherIntervalMs: 30 * second })
  for (let round = 0; round < 3; round++) {
    await sticky.clock.advance(20 * second)
    sticky.add(aPod(`late-${round}`, { node: 'n' }))
    await sticky.clock.advance(15 * second)
  }
  await sticky.clock.advance(5 * minute)
  assert.deepEqual([sticky.cloudCalls, isClean(sticky, 'n')], [[], true])
  assert.deepEqual(
    sticky.evictions.map(({ pod }) => pod),
    ['p', 'late-0', 'late-1'],
  )
})

test('RPB-43 nothing is marked while the cluster is not known', async () => {
  const cluster = nodeWith(aPod('p', { node: 'd', cpu: '100m' })).add(aNode('d'))
  cluster.isKnown = false
  const { outcome } = await run(cluster, {}, minute)
  assert.deepEqual(outcome.step, { kind: 'nothingToDelete' })
  assert.deepEqual([cluster.cloudCalls, cluster.evictions, cluster.nodeWrites], [[], [], 0])
})

test('a pod that is waited for, or that may not be moved, and comes within the delay keeps the node', async () => {
  for (const late of [
    aPod('late', { node: 'n', annotations: { [annotations.safeToEvict]: 'on-completion' } }),
    aPod('late', { node: 'n', owner: 'none' }),
  ]) {
    const { cluster } = await run(nodeWith(aPod('p', { node: 'n', cpu: '100m' })), {}, second)
    cluster.add(late)
    await cluster.clock.advance(minute)
    assert.deepEqual([isClean(cluster, 'n'), cluster.cloudCalls, cluster.evictions], [true, [], []])
  }
})

test('a PDB that is used up within the delay keeps the node', async () => {
  const labels = { app: 'a' }
  const { cluster } = await run(nodeWith(aPod('p', { node: 'n', labels, cpu: '100m' })), {}, second)
  cluster.budgets = [aBudget('b', labels, 0)]
  await cluster.clock.advance(minute)
  assert.deepEqual([isClean(cluster, 'n'), cluster.evictions], [true, []])
})

test('pods that have ended, and expendable ones, do not keep an empty node and are not evicted', async () => {
  const { cluster } = await run(emptyNode(), {}, second)
  cluster.add(
    aPod('ended', { node: 'n', owner: 'none', phase: 'Succeeded' }),
    aPod('cheap', { node: 'n', owner: 'none', spec: { priority: -11 } }),
  )
  await cluster.clock.advance(minute)
  assert.deepEqual([cluster.cloudCalls, cluster.evictions], [[['n']], []])
})

test('CAS-89 an eviction that is refused for 2 minutes restores the node', async () => {
  const cluster = nodeWith(aPod('p', { node: 'n', cpu: '100m' }))
  cluster.unevictable.add('p')
  await run(cluster, {}, 2 * minute + 4 * second)
  assert.deepEqual(cluster.taintKeys('n'), [toBeDeletedTaint])
  await cluster.clock.advance(2 * second)
  assert.equal(isClean(cluster, 'n'), true)
  assert.deepEqual(cluster.cloudCalls, [])
  assert.equal(cluster.evictions.length, 13)
  assert.deepEqual(cluster.eventsOf('ScaleDownFailed'), [
    'p: failed to delete pod for ScaleDown: the budget lets none go',
    'n: failed to drain and delete node: could not evict pod default/p: the budget lets none go',
  ])
  assert.equal(cluster.figures.get('evicted_pods_total{eviction_result=failed}'), 1)
})

test('an eviction is tried at least once', async () => {
  const cluster = nodeWith(aPod('p', { node: 'n', cpu: '100m' }))
  cluster.unevictable.add('p')
  await run(cluster, { maxPodEvictionMs: 0 }, 10 * second)
  assert.equal(cluster.evictions.length, 1)
  assert.equal(isClean(cluster, 'n'), true)
})

test('CAS-90 a pod with an hour of grace gets 10 minutes, and 30 s later the node stays', async () => {
  const slow = aPod('p', { node: 'n', cpu: '100m', spec: { terminationGracePeriodSeconds: 3600 } })
  const cluster = nodeWith(slow)
  cluster.lingersMs.set('p', 3600 * second)
  await run(cluster, {}, 5 * second + 629 * second)
  assert.deepEqual(cluster.evictions, [{ pod: 'p', graceSeconds: 600, atMs: 5010 }])
  assert.deepEqual(cluster.taintKeys('n'), [toBeDeletedTaint])
  await cluster.clock.advance(2 * second)
  assert.equal(isClean(cluster, 'n'), true)
  assert.deepEqual(cluster.cloudCalls, [])
})

test('without a longest grace a pod gets what it asks for, and is waited for as long', async () => {
  const slow = aPod('p', { node: 'n', cpu: '100m', spec: { terminationGracePeriodSeconds: 3600 } })
  const cluster = nodeWith(slow)
  cluster.lingersMs.set('p', 3590 * second)
  await run(cluster, { maxGracefulTerminationSeconds: 0 }, 3610 * second)
  assert.equal(cluster.evictions[0]?.graceSeconds, 3600)
  assert.deepEqual(cluster.cloudCalls, [['n']])
})

test('CAS-91 a pod of a StatefulSet that is created again on another node under its name counts as gone', async () => {
  const cluster = nodeWith(aPod('web-0', { node: 'n', owner: 'StatefulSet', cpu: '100m' }))
  cluster.lingersMs.set('web-0', 60 * minute)
  await run(cluster, {}, 10 * second)
  assert.deepEqual(cluster.cloudCalls, [])
  cluster.add(aPod('web-0', { node: 'room', owner: 'StatefulSet' }))
  await cluster.clock.advance(6 * second)
  assert.deepEqual(cluster.cloudCalls, [['n']])
})

test('CAS-92 pods of DaemonSets are evicted from occupied nodes and not from empty ones; annotations decide first', async () => {
  const daemons = (node: string) =>
    [undefined, 'true', 'false'].map((value) =>
      aPod(`${node}-${value ?? 'unset'}`, {
        node,
        owner: 'DaemonSet',
        annotations: value === undefined ? {} : { [annotations.enableDaemonSetEviction]: value },
      }),
    )
  const cluster = nodeWith(...daemons('n'), ...daemons('d'), aPod('p', { node: 'd', cpu: '100m' })).add(
    aNode('d'),
  )
  await run(cluster, {}, minute)
  const evicted = cluster.evictions.map(({ pod }) => pod).toSorted()
  assert.deepEqual(evicted, ['d-true', 'd-unset', 'n-true', 'p'])
  const told = cluster
    .eventsOf('ScaleDown')
    .filter((each) => each.endsWith(': deleting pod for node scale down'))
  assert.deepEqual(told.map((each) => each.split(':')[0] ?? '').toSorted(), evicted)
})

test('a pod of a DaemonSet that stays is not waited for', async () => {
  const cluster = nodeWith(
    aPod('ds', { node: 'n', owner: 'DaemonSet' }),
    aPod('p', { node: 'n', cpu: '100m' }),
  )
  cluster.unevictable.add('ds')
  await run(cluster, {}, 2 * minute + 30 * second)
  assert.deepEqual(cluster.cloudCalls, [['n']])
  assert.equal(cluster.figures.get('evicted_pods_total{eviction_result=failed}'), undefined)
  assert.deepEqual(cluster.eventsOf('ScaleDownFailed'), [])
})

test('CAS-93 an annotation holds the deletion up for 2 minutes at most', async () => {
  const held = aNode('n', { annotations: { 'delay-deletion.cluster-autoscaler.kubernetes.io/x': '' } })
  const cluster = new FakeCluster().add(held, aRoom())
  await run(cluster, {}, 2 * minute + 4 * second)
  assert.deepEqual(cluster.cloudCalls, [])
  await cluster.clock.advance(2 * second)
  assert.deepEqual(cluster.cloudCalls, [['n']])

  const released = new FakeCluster().add(held, aRoom())
  await run(released, {}, 30 * second)
  const node = released.nodes.get('n') as Node
  released.add({ ...node, metadata: { ...node.metadata, annotations: {} } })
  await released.clock.advance(6 * second)
  assert.deepEqual(released.cloudCalls, [['n']])

  const ignored = new FakeCluster().add(held, aRoom())
  await run(ignored, { nodeDeletionDelayTimeoutMs: 0 }, 6 * second)
  assert.deepEqual(ignored.cloudCalls, [['n']])
})

test('CAS-94 a deletion that succeeds is counted by its reason and told; the Node is left to others', async () => {
  const cluster = nodeWith(aPod('p', { node: 'd', cpu: '100m' })).add(
    aNode('d'),
    aNode('u', { isReady: false }),
  )
  const { scaleDown } = await run(cluster, {}, minute)
  const count = (reason: string) =>
    cluster.figures.get(`scaled_down_nodes_total{reason=${reason},gpu_resource_name=,gpu_name=,dra_drivers=}`)
  assert.deepEqual([count('empty'), count('underutilized'), count('unready')], [1, 1, 1])
  assert.deepEqual(cluster.eventsOf('ScaleDownEmpty'), [
    'status: Scale-down: removing empty node "n"',
    'status: Scale-down: removing empty node "u"',
    'status: Scale-down: empty node n removed',
    'status: Scale-down: empty node u removed',
  ])
  assert.deepEqual(
    cluster.eventsOf('ScaleDown').filter((each) => !each.startsWith('n:') && !each.startsWith('u:')),
    [
      'd: marked the node as toBeDeleted/unschedulable',
      'status: Scale-down: removing node d, utilization: cpu 10%, memory 0%, pods to reschedule: default/p',
      'p: deleting pod for node scale down',
      'd: nodes removed by cluster autoscaler',
      'status: Scale-down: node d removed with drain',
    ],
  )
  assert.equal(cluster.figures.get('evicted_pods_total{eviction_result=succeeded}'), 1)
  assert.equal(cluster.figures.get('pending_node_deletions{}'), 0)
  assert.deepEqual(
    cluster.ended.map(({ kind, nodeName }) => `${kind} ${nodeName}`).toSorted(),
    ['d', 'n', 'u'].map((name) => `deleted ${name}`),
  )
  assert.equal(cluster.nodes.has('n'), true)
  // While its Node is still there, it is neither deleted again nor does it take pods.
  await cluster.clock.advance(10 * minute)
  await during(cluster, cluster.loop(scaleDown))
  await cluster.clock.advance(10 * minute)
  assert.deepEqual(cluster.cloudCalls.flat().toSorted(), ['d', 'n', 'u'])
})

test('nodes with graphics processors are counted with them', async () => {
  const cluster = new FakeCluster().add(aNode('n', { extra: { 'nvidia.com/gpu': '1' } }))
  await run(cluster, {}, minute)
  const labels = 'reason=empty,gpu_resource_name=nvidia.com/gpu,gpu_name=generic'
  assert.equal(cluster.figures.get(`scaled_down_nodes_total{${labels},dra_drivers=}`), 1)
  assert.equal(cluster.figures.get(`scaled_down_gpu_nodes_total{${labels}}`), 1)
})

test('CAS-95 when the cloud refuses, the node is restored and tried again in a later loop', async () => {
  const cluster = emptyNode()
  cluster.cloudFailure = 'the pool is suspended'
  const { scaleDown } = await run(cluster, {}, minute)
  assert.equal(isClean(cluster, 'n'), true)
  assert.deepEqual(cluster.eventsOf('ScaleDownFailed'), [
    'n: failed to delete empty node: node group g did not remove it: the pool is suspended',
  ])
  assert.deepEqual(
    cluster.ended.map((result) => result.kind === 'failed' && result.stage),
    ['cloud'],
  )
  cluster.cloudFailure = undefined
  await during(cluster, cluster.loop(scaleDown))
  await cluster.clock.advance(minute)
  assert.deepEqual(cluster.cloudCalls, [['n'], ['n']])
  assert.equal(cluster.ended.at(-1)?.kind, 'deleted')
})

test('CAG-24 a node is restored after a refusal, though the cloud writes its ID otherwise', async () => {
  const cluster = emptyNode()
  cluster.cloudFailure = 'the group is rolling'
  cluster.instanceIdOf = (providerId) => `aws:////${providerId}`
  await run(cluster, {}, minute)
  assert.equal(isClean(cluster, 'n'), true)
  assert.equal(cluster.ended[0]?.kind, 'failed')
})

test('a call that fails after the cloud has removed the member does not open the node again', async () => {
  const cluster = emptyNode()
  cluster.cloudFailure = 'the pool did not settle within 10 minutes'
  cluster.failsAfterEffect = true
  await run(cluster, {}, minute)
  assert.equal(cluster.ended[0]?.kind, 'deleted')
  assert.deepEqual(cluster.taintKeys('n'), [toBeDeletedTaint])
})

test('CAS-97 pods leave by priority, lowest first, each group with its own grace', async () => {
  const pod = (name: string, priority: number | undefined) =>
    aPod(name, {
      node: 'n',
      cpu: '10m',
      spec: { terminationGracePeriodSeconds: 300, ...(priority === undefined ? {} : { priority }) },
    })
  const cluster = nodeWith(
    pod('low', 99),
    pod('none', undefined),
    pod('below', -1),
    pod('high', 100),
    pod('top', 5000),
  )
  const daemon = aPod('ds', { node: 'n', owner: 'DaemonSet', spec: { priority: 2_000_000 } })
  cluster.add(daemon)
  cluster.lingersMs.set('low', 40 * second)
  const drainPriorities = [
    { priority: 100, graceSeconds: 30 },
    { priority: 0, graceSeconds: 60 },
  ]
  await run(cluster, { drainPriorities }, 2 * minute)
  const first = cluster.evictions.filter(({ atMs }) => atMs < 10 * second)
  const later = cluster.evictions.filter(({ atMs }) => atMs >= 10 * second)
  assert.deepEqual(
    first.map(({ pod: name, graceSeconds }) => [name, graceSeconds]),
    [
      ['low', 60],
      ['none', 60],
      ['below', 60],
    ],
  )
  assert.deepEqual(
    later.map(({ pod: name, graceSeconds }) => [name, graceSeconds]),
    [
      ['high', 30],
      ['top', 30],
      ['ds', 30],
    ],
  )
  assert.ok(later.every(({ atMs }) => atMs >= 45 * second))
  assert.equal(cluster.figures.get('evicted_pods_total{eviction_result=succeeded}'), 6)
  assert.deepEqual(cluster.cloudCalls, [['n']])
})

test('a node that a user had cordoned stays cordoned when its deletion fails', async () => {
  const cluster = new FakeCluster().add(aNode('n', { isCordoned: true }), aRoom())
  cluster.cloudFailure = 'no'
  const before = cluster.nodes.get('n')
  await run(cluster, {}, minute)
  assert.deepEqual(cluster.nodes.get('n'), before)
})

test('a mark that could not be taken back is taken back in a later loop', async () => {
  const cluster = emptyNode()
  cluster.cloudFailure = 'no'
  const { scaleDown } = await run(cluster, {}, second)
  cluster.unwritable.add('n')
  await cluster.clock.advance(minute)
  assert.deepEqual(cluster.taintKeys('n'), [toBeDeletedTaint])
  cluster.unwritable.clear()
  await during(cluster, cluster.loop(scaleDown))
  assert.equal(isClean(cluster, 'n'), true)
})

const witnesses: readonly (readonly [string, (node: Node) => Node | undefined])[] = [
  ['is gone', () => undefined],
  ['lost its taint', (node) => ({ ...node, spec: { ...node.spec, taints: [] } })],
  ['bears the taint of another', (node) => ({ ...node, spec: { ...node.spec, taints: [anyTaint('1')] } })],
  ['is another one', (node) => ({ ...node, metadata: { ...node.metadata, uid: 'new' } })],
  ['has another provider ID', (node) => ({ ...node, spec: { ...node.spec, providerID: 'exoscale://x' } })],
  [
    'was exempted',
    (node) => ({
      ...node,
      metadata: { ...node.metadata, annotations: { [annotations.scaleDownDisabled]: 'true' } },
    }),
  ],
]
for (const [what, change] of witnesses) {
  test(`no instance is removed when the Node ${what} in the end`, async () => {
    const { cluster } = await run(emptyNode(), {}, 3 * second)
    const changed = change(cluster.nodes.get('n') as Node)
    if (changed === undefined) cluster.nodes.delete('n')
    else cluster.add(changed)
    await cluster.clock.advance(minute)
    assert.deepEqual(cluster.cloudCalls, [])
    assert.deepEqual(
      cluster.ended.map((result) => result.kind === 'failed' && result.stage),
      ['witness'],
    )
  })
}

test('no instance is removed when the cloud knows the node in another group in the end', async () => {
  const { cluster } = await run(emptyNode(), {}, 3 * second)
  cluster.groupOf.set('n', 'other')
  await cluster.clock.advance(minute)
  assert.deepEqual([cluster.cloudCalls, isClean(cluster, 'n')], [[], true])
})

test('a taint that somebody else set on the node since stays', async () => {
  const { cluster } = await run(emptyNode(), {}, 3 * second)
  const node = cluster.nodes.get('n') as Node
  cluster.add({ ...node, spec: { ...node.spec, taints: [anyTaint('1')] } })
  await cluster.clock.advance(minute)
  assert.deepEqual(cluster.nodes.get('n')?.spec?.taints, [anyTaint('1')])
})

test('when this process no longer leads, deletions end where they are and write nothing', async () => {
  const cluster = nodeWith(aPod('p', { node: 'd', cpu: '100m' })).add(aNode('d'))
  cluster.lingersMs.set('p', 20 * second)
  const lease = new AbortController()
  const scaleDown = cluster.scaleDown({ nodeDeletionBatcherIntervalMs: 10 * second })
  await during(cluster, cluster.loop(scaleDown, {}, lease.signal))
  await cluster.clock.advance(8 * second)
  const before = [...cluster.nodes.values()]
  lease.abort(new Error('lost master'))
  await cluster.clock.advance(10 * minute)
  assert.deepEqual([cluster.cloudCalls, cluster.ended, [...cluster.nodes.values()]], [[], [], before])
})

test('RPB-32 empty nodes of one group go by one call, and drained ones with what else is due then', async () => {
  const three = () => new FakeCluster().add(aNode('a'), aNode('b'), aNode('c'))
  const together = three()
  await run(together, {}, 50 * second)
  assert.deepEqual(together.cloudCalls, [['a', 'b', 'c']])
  const drained = three().add(aNode('d'))
  for (const node of ['a', 'b', 'c', 'd']) drained.add(aPod(`p-${node}`, { node, cpu: '100m' }))
  drained.cloudMs = 20 * second
  await run(drained, { maxDrainParallelism: 4 }, minute)
  assert.deepEqual(
    drained.cloudCalls.map((nodes) => nodes.length),
    [1, 2],
  )
  const batched = three()
  await run(batched, { nodeDeletionBatcherIntervalMs: 30 * second }, minute)
  assert.deepEqual(batched.cloudCalls, [['a', 'b', 'c']])
})

test('RPB-32 a node that turns out to stay does not hold up those that are due with it', async () => {
  const cluster = new FakeCluster().add(aNode('a'), aNode('b'), aNode('c'))
  const { scaleDown } = await run(cluster, {}, 0)
  cluster.add(aPod('late', { node: 'b', cpu: '100m' }))
  await cluster.clock.advance(10 * second)
  assert.deepEqual(cluster.cloudCalls, [['a', 'c']])
  assert.deepEqual([...scaleDown.deletionsInProgress()], [])
})

test('a batch removes those that may still go, and leaves the others', async () => {
  const cluster = new FakeCluster().add(aNode('a'), aNode('b'))
  await run(cluster, { nodeDeletionBatcherIntervalMs: 30 * second }, 20 * second)
  cluster.add(aNode('b'))
  await cluster.clock.advance(minute)
  assert.deepEqual(cluster.cloudCalls, [['a']])
})

test('pods of nodes that are being drained are told, with the deletions of each group', async () => {
  const cluster = nodeWith(aPod('p', { node: 'd', cpu: '100m' })).add(aNode('d'))
  const { scaleDown } = await run(cluster)
  assert.deepEqual(
    [...scaleDown.nodesBeingDrained()].map(([name, pods]) => [
      name,
      pods.map(({ metadata }) => metadata.name),
    ]),
    [['d', ['p']]],
  )
  assert.deepEqual([...scaleDown.deletionsInProgress()], [['g', 2]])
  assert.equal(cluster.figures.get('pending_node_deletions{}'), 2)
})

test('with the dynamic delay the caches decide how long pods may still come', async () => {
  const cluster = emptyNode()
  await run(cluster, { dynamicDeleteDelayAfterTaint: true }, 2 * second)
  assert.deepEqual(cluster.cloudCalls, [['n']])
})
