import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noGroups } from '../model.ts'
import { annotations, deletionCandidateTaint, toBeDeletedTaint } from '../names.ts'
import { during, FakeCluster } from './fake-cluster.test-support.ts'
import { aGroup, aNode, anyTaint, aPod, aRoom, minute, second } from './scale-down.test-support.ts'

const soft = { key: deletionCandidateTaint, value: '1', effect: 'PreferNoSchedule' as const }

test('CAS-69 an empty node goes once it has not been needed for more than 10 minutes', async () => {
  const cluster = new FakeCluster().add(aNode('n'), aRoom())
  // Without candidate taints, whose writes take time here.
  const scaleDown = cluster.scaleDown({ unneededTimeMs: 10 * minute, maxBulkSoftTaintCount: 0 })
  const steps: string[] = []
  for (const waitMs of [0, 10 * minute, 1]) {
    await cluster.clock.advance(waitMs)
    const outcome = await during(cluster, cluster.loop(scaleDown))
    steps.push(outcome.step.kind)
  }
  assert.deepEqual(steps, ['nothingToDelete', 'nothingToDelete', 'started'])
})

test('CAS-73 in a cooldown candidates are marked and counted, and nothing is deleted', async () => {
  const cluster = new FakeCluster().add(aNode('n'), aRoom())
  const scaleDown = cluster.scaleDown()
  const lastScaleUpMs = cluster.clock.now() - 9 * minute
  const outcome = await during(cluster, cluster.loop(scaleDown, { lastScaleUpMs }))
  assert.deepEqual(outcome.step, { kind: 'cooldown' })
  assert.deepEqual([...outcome.candidatesByGroup], [['g', 1]])
  assert.equal(cluster.figures.get('scale_down_in_cooldown{}'), 1)
  assert.equal(cluster.figures.get('unneeded_nodes_count{}'), 1)
  assert.deepEqual(cluster.taintKeys('n'), [deletionCandidateTaint])
  const later = await during(cluster, cluster.loop(scaleDown, { lastScaleUpMs: lastScaleUpMs - minute }))
  assert.deepEqual(later.step, { kind: 'started', empty: ['n'], drain: [] })
  assert.equal(cluster.figures.get('scale_down_in_cooldown{}'), 0)
})

test('CAS-74 with the local delay type a group that has just grown is left alone, others are not', async () => {
  const cluster = new FakeCluster()
    .add(aNode('grew'), aNode('free'))
    .withGroups(aGroup('g', 1, 0), aGroup('h', 1, 0))
  cluster.groupOf.set('free', 'h')
  const input = {
    lastScaleUpMs: cluster.clock.now(),
    lastScaleUpMsByGroup: new Map([['g', cluster.clock.now()]]),
  }
  const scaleDown = cluster.scaleDown({ delayTypeLocal: true })
  const outcome = await during(cluster, cluster.loop(scaleDown, input))
  assert.deepEqual(outcome.step, { kind: 'started', empty: ['free'], drain: [] })
  assert.equal(
    outcome.unremovable.find(({ nodeName }) => nodeName === 'grew')?.reason.kind,
    'NotUnneededOtherReason',
  )
})

test('with the local delay type a group whose deletion failed at the cloud is left alone', async () => {
  const cluster = new FakeCluster().add(aNode('a'), aRoom())
  cluster.cloudFailure = 'the pool is suspended'
  const scaleDown = cluster.scaleDown({ delayTypeLocal: true })
  await during(cluster, cluster.loop(scaleDown))
  await cluster.clock.advance(minute)
  const outcome = await during(cluster, cluster.loop(scaleDown))
  assert.equal(
    outcome.unremovable.find(({ nodeName }) => nodeName === 'a')?.reason.kind,
    'NotUnneededOtherReason',
  )
})

test('CAS-79 a node waits for a pod that is safe to evict on completion, and goes when that has ended', async () => {
  const awaited = aPod('p', { node: 'n', annotations: { [annotations.safeToEvict]: 'on-completion' } })
  const cluster = new FakeCluster().add(aNode('n'), aRoom(), awaited)
  const scaleDown = cluster.scaleDown()
  const waiting = await during(cluster, cluster.loop(scaleDown))
  assert.deepEqual(waiting.step, { kind: 'nothingToDelete' })
  assert.deepEqual(
    waiting.unremovable.map(({ nodeName, reason }) => [nodeName, reason.kind]),
    [
      ['room', 'ScaleDownDisabledAnnotation'],
      ['n', 'BlockedByOnCompletionPod'],
    ],
  )
  cluster.pods.delete('p')
  const outcome = await during(cluster, cluster.loop(scaleDown))
  assert.deepEqual(outcome.step, { kind: 'started', empty: ['n'], drain: [] })
})

test('CAS-96 ten candidates are marked in a loop, the rest in the next one', async () => {
  const cluster = new FakeCluster()
  for (let index = 0; index < 12; index++) cluster.add(aNode(`n${index}`))
  const scaleDown = cluster.scaleDown({ unneededTimeMs: 10 * minute })
  const marked = () => [...cluster.nodes.keys()].filter((name) => cluster.taintKeys(name).length > 0).length
  await during(cluster, cluster.loop(scaleDown))
  assert.equal(marked(), 10)
  await during(cluster, cluster.loop(scaleDown))
  assert.equal(marked(), 12)
})

test('CAS-96 marks of nodes that are needed again are removed before others are set', async () => {
  const cluster = new FakeCluster().add(aNode('needed', { taints: [soft] }), aNode('idle'))
  cluster.add(aPod('p', { node: 'needed', cpu: '900m' }))
  const scaleDown = cluster.scaleDown({ maxBulkSoftTaintCount: 1, unneededTimeMs: 10 * minute })
  await during(cluster, cluster.loop(scaleDown))
  assert.deepEqual([cluster.taintKeys('needed'), cluster.taintKeys('idle')], [[], []])
  await during(cluster, cluster.loop(scaleDown))
  assert.deepEqual([cluster.taintKeys('needed'), cluster.taintKeys('idle')], [[], [deletionCandidateTaint]])
})

test('CAS-96 with a count of 0 no candidate is marked, and marks that are left are removed at the start', async () => {
  const cluster = new FakeCluster().add(
    aNode('a', { taints: [soft] }),
    aNode('outside', { taints: [soft] }),
    aNode('b'),
  )
  cluster.groupOf.delete('outside')
  const scaleDown = cluster.scaleDown({ maxBulkSoftTaintCount: 0, unneededTimeMs: 10 * minute })
  await during(cluster, startUp(cluster, scaleDown))
  await during(cluster, cluster.loop(scaleDown))
  assert.deepEqual(
    ['a', 'outside', 'b'].map((name) => cluster.taintKeys(name)),
    [[], [], []],
  )
  assert.deepEqual(
    cluster.eventsOf('ClusterAutoscalerCleanup'),
    ['a', 'outside'].map(
      (name) => `${name}: removed DeletionCandidateOfClusterAutoscaler taint from node ${name}`,
    ),
  )
})

test('writing marks ends after 3 seconds', async () => {
  const cluster = new FakeCluster()
  for (let index = 0; index < 5; index++) cluster.add(aNode(`n${index}`))
  const scaleDown = cluster.scaleDown({ maxBulkSoftTaintMs: 25, unneededTimeMs: 10 * minute })
  await during(cluster, cluster.loop(scaleDown))
  const marked = [...cluster.nodes.keys()].filter((name) => cluster.taintKeys(name).length > 0)
  assert.deepEqual(marked, ['n0', 'n1', 'n2'])
})

async function startUp(cluster: FakeCluster, scaleDown: ReturnType<FakeCluster['scaleDown']>): Promise<void> {
  const index = { ...noGroups, groups: cluster.groups, groupOf: cluster.groupOf }
  await scaleDown.startUp([...cluster.nodes.values()], index, new AbortController().signal)
}

test('CAS-22 deletion marks that are left from before are removed once, with their cordon and an event', async () => {
  const cluster = new FakeCluster().add(
    aNode('n', { taints: [anyTaint('1')], isCordoned: true }),
    aNode('outside', { taints: [anyTaint('1')] }),
  )
  cluster.groupOf.delete('outside')
  await during(cluster, startUp(cluster, cluster.scaleDown()))
  assert.deepEqual(cluster.taintKeys('n'), [])
  assert.equal(cluster.nodes.get('n')?.spec?.unschedulable, undefined)
  assert.deepEqual(cluster.eventsOf('ClusterAutoscalerCleanup'), [
    'n: removed ToBeDeletedByClusterAutoscaler taint from node n',
  ])
  assert.deepEqual(cluster.taintKeys('outside'), [toBeDeletedTaint])
})

test('a node that a user had cordoned before its deletion began stays cordoned after a restart', async () => {
  const cluster = new FakeCluster().add(
    aNode('n', {
      taints: [anyTaint('1')],
      isCordoned: true,
      annotations: { [annotations.cordonedBefore]: 'true' },
    }),
  )
  await during(cluster, startUp(cluster, cluster.scaleDown()))
  assert.deepEqual(cluster.taintKeys('n'), [])
  assert.equal(cluster.nodes.get('n')?.spec?.unschedulable, true)
})

test('a mark that is left on a node whose group is told later is removed then', async () => {
  const cluster = new FakeCluster().add(aNode('n', { taints: [anyTaint('1')] }), aNode('b'))
  cluster.groupOf.delete('n')
  const scaleDown = cluster.scaleDown({ enabled: false })
  await during(cluster, startUp(cluster, scaleDown))
  assert.deepEqual(cluster.taintKeys('n'), [toBeDeletedTaint])
  cluster.groupOf.set('n', 'g')
  await during(cluster, cluster.loop(scaleDown))
  assert.deepEqual(cluster.taintKeys('n'), [])
})

test('scale-down that is turned off deletes nothing', async () => {
  const cluster = new FakeCluster().add(aNode('n'))
  const outcome = await during(cluster, cluster.loop(cluster.scaleDown({ enabled: false })))
  assert.deepEqual(outcome.step, { kind: 'disabled' })
})

test('very new pods hold deletions back in their loop', async () => {
  const cluster = new FakeCluster().add(aNode('n'))
  const outcome = await during(cluster, cluster.loop(cluster.scaleDown(), { isForbidden: true }))
  assert.deepEqual(outcome.step, { kind: 'cooldown' })
})

test('a dry run tells what would go, and marks, evicts and removes nothing', async () => {
  const cluster = new FakeCluster().add(aNode('n'), aRoom(), aPod('p', { node: 'n', cpu: '100m' }))
  const scaleDown = cluster.scaleDown({ maxBulkSoftTaintCount: 0 }, { isDryRun: true })
  const outcome = await during(cluster, cluster.loop(scaleDown))
  assert.deepEqual(outcome.step, { kind: 'started', empty: [], drain: ['n'] })
  await cluster.clock.advance(10 * minute)
  assert.deepEqual(
    [cluster.taintKeys('n'), cluster.evictions, cluster.cloudCalls, cluster.events],
    [[], [], [], []],
  )
})

test('the counts of nodes that stay are those of the last loop', async () => {
  const cluster = new FakeCluster().add(aNode('n'), aPod('p', { node: 'n', cpu: '900m' }), aNode('o'))
  cluster.groupOf.delete('o')
  const scaleDown = cluster.scaleDown()
  await during(cluster, cluster.loop(scaleDown))
  const key = (reason: string) => cluster.figures.get(`unremovable_nodes_count{reason=${reason}}`)
  assert.deepEqual([key('NotUnderutilized'), key('NotAutoscaled')], [1, 1])
  cluster.nodes.delete('o')
  await during(cluster, cluster.loop(scaleDown))
  assert.deepEqual([key('NotUnderutilized'), key('NotAutoscaled')], [1, undefined])
})

test('a node that would undercut the minimum of cores is counted as skipped', async () => {
  const cluster = new FakeCluster().add(aNode('n', { cpu: '2' }))
  const scaleDown = cluster.scaleDown({ cores: { min: 2, max: 10 } })
  await during(cluster, cluster.loop(scaleDown))
  assert.equal(cluster.figures.get('skipped_scale_events_count{direction=down,reason=CpuResourceLimit}'), 1)
})

test('nodes that are removed keep those who are left above the minimum of their group, loop after loop', async () => {
  const cluster = new FakeCluster().withGroups(aGroup('g', 6, 2))
  for (let index = 0; index < 6; index++) cluster.add(aNode(`n${index}`))
  const scaleDown = cluster.scaleDown({ maxParallelism: 3 })
  for (let loop = 0; loop < 20; loop++) {
    await during(cluster, cluster.loop(scaleDown))
    await cluster.clock.advance(5 * second)
  }
  assert.equal(cluster.groups.get('g')?.targetSize, 2)
  assert.equal(cluster.cloudCalls.flat().length, 4)
})

test('pods that only the simulation moved to a node that is drained are not told as its pods', async () => {
  const cluster = new FakeCluster().add(aNode('a'), aNode('b', { cpu: '1100m' }), aRoom('far'))
  const kept = { annotations: { [annotations.scaleDownDisabled]: 'true' } }
  cluster.add(
    aNode('full', { cpu: '1', ...kept }),
    aPod('pa', { node: 'a', cpu: '100m' }),
    aPod('pb', { node: 'b', cpu: '100m' }),
  )
  const scaleDown = cluster.scaleDown({ maxDrainParallelism: 2, maxBulkSoftTaintCount: 0 })
  await during(cluster, cluster.loop(scaleDown))
  const told = [...scaleDown.nodesBeingDrained()].map(([node, pods]) => [
    node,
    ...pods.map(({ metadata }) => metadata.name),
  ])
  assert.deepEqual(told, [
    ['a', 'pa'],
    ['b', 'pb'],
  ])
})

test('unneeded nodes that are forgotten have to wait again', async () => {
  const cluster = new FakeCluster().add(aNode('n'), aRoom())
  const scaleDown = cluster.scaleDown({ unneededTimeMs: 10 * minute })
  await during(cluster, cluster.loop(scaleDown))
  await cluster.clock.advance(11 * minute)
  scaleDown.clearUnneeded()
  const outcome = await during(cluster, cluster.loop(scaleDown))
  assert.equal(outcome.step.kind, 'nothingToDelete')
})

for (const tracksRemovalLatency of [true, false])
  test(`CAS-94 how long a due node took to be removed is told with what delayed it: flag ${tracksRemovalLatency}`, async () => {
    const cluster = new FakeCluster().add(aNode('n'), aRoom())
    const scaleDown = cluster.scaleDown({ tracksRemovalLatency })
    const lastScaleUpMs = cluster.clock.now() - 9 * minute
    await during(cluster, cluster.loop(scaleDown, { lastScaleUpMs }))
    await cluster.clock.advance(minute)
    await during(cluster, cluster.loop(scaleDown, { lastScaleUpMs }))
    const latency = cluster.figures.get('node_removal_latency_seconds{deleted=true,delay_reason=InCooldown}')
    if (tracksRemovalLatency) assert.ok(latency !== undefined && latency >= 60)
    else assert.equal(latency, undefined)
  })
