/** What groups say of themselves: options, holds, instances. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type GroupHold, NodeGroupError } from '@tenon/provider'
import { FakeCluster } from '../testing/fake-cluster.test-support.ts'
import { aGroup } from '../testing/fake-groups.test-support.ts'
import { aNode, aPod } from '../testing/objects.test-support.ts'

const minute = 60_000
const rolling: GroupHold = { forbids: 'shrinking', reason: 'MachineDeployment a/md is rolling out' }
const paused: GroupHold = { forbids: 'all', reason: 'Cluster a/c is paused' }

/** A pod that keeps a node. */
function keeper(nodeName: string) {
  return aPod(`keep-${nodeName}`, { cpu: '3', nodeName, owner: `keep-${nodeName}` })
}

function idle(
  groups: readonly string[],
  options: ConstructorParameters<typeof FakeCluster>[0]['options'] = {},
) {
  return new FakeCluster({
    groups: groups.map((id) => aGroup(id, { minSize: 0 })),
    nodes: Object.fromEntries(groups.map((id) => [id, [aNode(`${id}0`)]])),
    options,
  })
}

function report(cluster: FakeCluster) {
  const last = cluster.reports.at(-1)
  assert.ok(last?.kind === 'running')
  return last
}

describe('options of a group', () => {
  test('CAG-52 replace the unneeded time of that group alone', async () => {
    const cluster = idle(['a', 'b'], { scaleDown: { unneededTimeMs: 2 * minute, delayAfterAddMs: 0 } })
    cluster.cloud.options.set('a', { scaleDownUnneededMs: 10 * minute })
    await cluster.loopFor(3 * minute)
    assert.deepEqual([cluster.size('a'), cluster.size('b')], [1, 0])
    assert.match(
      cluster.explanations.of({ kind: 'node', name: 'a0' }),
      /it stays: not needed for \d+ s, which must be more than 600 s/,
    )
    await cluster.loopFor(8 * minute)
    assert.equal(cluster.size('a'), 0)
  })

  test('CAG-52 replace the unready time', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('a', { minSize: 0 }), aGroup('b', { minSize: 0 })],
      nodes: { a: [aNode('a0', { isReady: false })], b: [aNode('b0', { isReady: false })] },
    })
    cluster.cloud.options.set('a', { scaleDownUnreadyMs: 2 * minute })
    await cluster.loopFor(4 * minute)
    assert.deepEqual([cluster.size('a'), cluster.size('b')], [0, 1])
  })

  test('CAG-52 replace the utilization threshold, as the explanation says', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('a', { minSize: 0 }), aGroup('b', { minSize: 0 })],
      nodes: { a: [aNode('a0')], b: [aNode('b0')] },
      pods: ['a0', 'b0'].map((name) => aPod(`p-${name}`, { cpu: '1', nodeName: name, owner: name })),
    })
    cluster.cloud.options.set('a', { scaleDownUtilizationThreshold: 0.1 })
    await cluster.loop()
    assert.match(
      cluster.explanations.of({ kind: 'node', name: 'a0' }),
      /utilization \(cpu 25%, memory 0%\) is above the threshold 0\.1/,
    )
    assert.match(cluster.explanations.of({ kind: 'node', name: 'b0' }), /not needed since/)
  })

  test('CAG-52 replace the time in which nodes must register', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('a')],
      nodes: { a: [aNode('a0')] },
      pods: [keeper('a0'), aPod('p', { cpu: '3' })],
    })
    cluster.cloud.options.set('a', { maxNodeProvisionMs: 30 * minute })
    await cluster.loopFor(29 * minute)
    assert.deepEqual(cluster.events.of('ScaleUpTimedOut'), [])
    await cluster.loopFor(2 * minute)
    assert.equal(cluster.events.of('ScaleUpTimedOut').length, 1)
  })

  test('CAG-52 replace the time in which a new node must be ready', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('a'), aGroup('b')],
      nodes: { a: [aNode('a0', { isReady: false })], b: [aNode('b0', { isReady: false })] },
    })
    // The nodes are an hour old.
    cluster.cloud.options.set('a', { maxNodeStartupMs: 90 * minute })
    await cluster.loop()
    const counts = new Map(report(cluster).groups.map(({ id, counts: each }) => [id, each]))
    assert.equal(counts.get('a')?.notStarted, 1)
    assert.equal(counts.get('b')?.unready, 1)
  })
})

describe('a group that is rolling', () => {
  test('CAG-55 loses no node, and the reason is told; it grows', async () => {
    const cluster = idle(['a'], { scaleDown: { unneededTimeMs: minute, delayAfterAddMs: 0 } })
    cluster.cloud.holds.set('a', rolling)
    await cluster.loopFor(5 * minute)
    assert.equal(cluster.size('a'), 1)
    assert.match(
      cluster.explanations.of({ kind: 'node', name: 'a0' }),
      /its node group a is held: MachineDeployment a\/md is rolling out/,
    )
    assert.match(cluster.explanations.of({ kind: 'group', name: 'a' }), /it is not shrunk: MachineDeployment/)
    assert.deepEqual(report(cluster).holds.get('a'), rolling)
    cluster.addPod(keeper('a0'))
    cluster.addPod(aPod('p', { cpu: '3' }))
    await cluster.loop()
    assert.equal(cluster.size('a'), 2)
    cluster.cloud.holds.delete('a')
  })

  test('CAG-55 keeps instances that never registered or failed, and its size', async () => {
    const cluster = idle(['a'])
    cluster.addPod(keeper('a0'))
    cluster.cloud.canDecrease = true
    cluster.cloud.groups.set('a', aGroup('a', { targetSize: 4 }))
    cluster.cloud.members.set('a', [
      { providerId: 'cloud://a0', state: 'running' },
      { providerId: 'pending', state: 'creating' },
      { providerId: 'failed', state: 'creating', error: { code: 'Failed', message: 'no image' } },
    ])
    cluster.cloud.holds.set('a', rolling)
    await cluster.loopFor(20 * minute)
    assert.equal(cluster.cloud.calls.length, 0, cluster.cloud.calls.join())
    cluster.cloud.holds.delete('a')
    await cluster.loopFor(minute)
    assert.ok(cluster.cloud.calls.includes('delete a pending'), cluster.cloud.calls.join())
    assert.ok(cluster.cloud.calls.includes('delete a failed'), cluster.cloud.calls.join())
  })

  test('CAG-55 a request that ends in vain lowers nothing', async () => {
    const cluster = idle(['a'])
    cluster.addPod(keeper('a0'))
    cluster.addPod(aPod('p', { cpu: '3' }))
    cluster.cloud.canDecrease = true
    cluster.cloud.holds.set('a', rolling)
    await cluster.loopFor(17 * minute)
    assert.equal(cluster.events.of('ScaleUpTimedOut').length, 1)
    assert.deepEqual(cluster.cloud.calls, ['increase a 1'])
  })

  test('CAG-56 one node more than the size, for 20 minutes behind a PDB, changes nothing', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('a', { targetSize: 1 })],
      nodes: { a: [aNode('old'), aNode('surge')] },
      pods: [keeper('old')],
    })
    cluster.cloud.holds.set('a', rolling)
    await cluster.loopFor(20 * minute)
    assert.deepEqual(cluster.cloud.calls, [])
    assert.equal(report(cluster).groups[0]?.isHealthy, true)
    cluster.cloud.holds.delete('a')
    await cluster.loopFor(20 * minute)
    // At its minimum: the node beyond the size is not taken for surplus.
    assert.deepEqual(cluster.cloud.calls, [])
  })

  test('CAG-55 a rollout that begins while a node drains keeps the node', async () => {
    const cluster = idle(['a'], {
      scaleDown: { unneededTimeMs: 0, delayAfterAddMs: 0, deleteDelayAfterTaintMs: minute },
    })
    await cluster.loop()
    assert.equal(cluster.nodes.get('a0')?.spec?.taints?.[0]?.key, 'ToBeDeletedByClusterAutoscaler')
    cluster.cloud.holds.set('a', rolling)
    await cluster.clock.advance(2 * minute)
    assert.equal(cluster.size('a'), 1)
    assert.match(cluster.events.of('ScaleDownFailed').join(), /node group a is held: MachineDeployment a\/md/)
  })
})

describe('a group that is paused', () => {
  test('CAG-54 is not written, whether pods wait or nodes are idle', async () => {
    const cluster = idle(['a', 'b'], { scaleDown: { unneededTimeMs: minute, delayAfterAddMs: 0 } })
    cluster.cloud.holds.set('a', paused)
    cluster.addPod(aPod('p', { cpu: '3', spec: { nodeSelector: { 'kubernetes.io/hostname': 'nowhere' } } }))
    await cluster.loopFor(5 * minute)
    assert.deepEqual([cluster.size('a'), cluster.size('b')], [1, 0])
    for (const name of ['a0']) cluster.addPod(keeper(name))
    cluster.cloud.holds.set('b', paused)
    cluster.addPod(aPod('q', { cpu: '3' }))
    await cluster.loop()
    assert.deepEqual([cluster.size('a'), cluster.size('b')], [1, 0])
    assert.match(
      cluster.events.of('NotTriggerScaleUp').join(),
      /not ready for scale-up \(Cluster a\/c is paused\)/,
    )
  })

  test('CAG-54 a group below its minimum is raised when the pause ends', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('a', { minSize: 2 })],
      nodes: { a: [aNode('a0')] },
      options: { loop: { enforceNodeGroupMinSize: true } },
    })
    cluster.cloud.holds.set('a', paused)
    await cluster.loopFor(minute)
    assert.equal(cluster.size('a'), 1)
    cluster.cloud.holds.delete('a')
    await cluster.loop()
    assert.equal(cluster.size('a'), 2)
  })

  test('CAG-54 the clock of a scale-up stands while the group is paused', async () => {
    const cluster = idle(['a'])
    cluster.addPod(keeper('a0'))
    cluster.addPod(aPod('p', { cpu: '3' }))
    await cluster.loop()
    cluster.cloud.members.set('a', [
      { providerId: 'cloud://a0', state: 'running' },
      { providerId: 'pending', state: 'creating' },
    ])
    await cluster.loopFor(5 * minute)
    cluster.cloud.holds.set('a', paused)
    await cluster.loopFor(60 * minute)
    assert.deepEqual(cluster.events.of('ScaleUpTimedOut'), [])
    assert.equal(report(cluster).groups[0]?.isScalingUp, true)
    cluster.cloud.holds.delete('a')
    await cluster.loopFor(9 * minute)
    assert.deepEqual(cluster.cloud.calls, ['increase a 1'])
    await cluster.loopFor(2 * minute)
    assert.equal(cluster.events.of('ScaleUpTimedOut').length, 1)
  })
})

describe('nodes and instances', () => {
  test('CAG-29 a node whose instance is gone counts as deleted, and takes no pods', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('a', { targetSize: 2 })],
      nodes: { a: [aNode('a0'), aNode('a1')] },
    })
    cluster.cloud.existing.set('a0', false).set('a1', true)
    await cluster.loop()
    const { counts } = report(cluster).cluster
    assert.deepEqual([counts.beingDeleted, counts.ready], [1, 1])
    assert.match(cluster.explanations.of({ kind: 'node', name: 'a0' }), /it is being deleted/)
    cluster.addPod(keeper('a1'))
    cluster.addPod(aPod('p', { cpu: '3' }))
    await cluster.loop()
    assert.equal(cluster.size('a'), 3)
  })

  test('CAG-29 a node that drains is there until its instance is gone; if unknown, the taint tells, and nothing is logged', async () => {
    const taints = [{ key: 'ToBeDeletedByClusterAutoscaler', value: '1', effect: 'NoSchedule' }] as const
    const cluster = new FakeCluster({
      groups: [aGroup('a', { targetSize: 2 })],
      nodes: { a: [aNode('a0', { taints }), aNode('a1', { taints })] },
      pods: [keeper('a0'), keeper('a1')],
      options: { isDryRun: true },
    })
    cluster.cloud.existing.set('a0', true)
    await cluster.loop()
    const { counts } = report(cluster).cluster
    assert.deepEqual([counts.beingDeleted, counts.ready], [1, 1])
    assert.deepEqual(cluster.warnings, [])
  })

  test('a failed instance that has a node counts once (trap 12)', async () => {
    const cluster = idle(['a'])
    cluster.addPod(keeper('a0'))
    cluster.cloud.members.set('a', [{ providerId: 'failed-a_m', nodeName: 'a0' }])
    await cluster.loopFor(20 * minute)
    const { counts } = report(cluster).cluster
    assert.deepEqual([counts.registered, counts.unregistered, counts.longUnregistered], [1, 0, 0])
    assert.deepEqual(cluster.cloud.calls, [])
  })
})

describe('GPUs', () => {
  const gpuLabel = 'cluster-api/accelerator'
  const gpuNode = (name: string, count: string) =>
    aNode(name, {
      labels: { [gpuLabel]: 'g' },
      ...(count !== '0' && {
        capacity: { 'nvidia.com/gpu': count },
        allocatable: { 'nvidia.com/gpu': count },
      }),
    })
  const gpuPod = (name: string, nodeName?: string) =>
    aPod(name, {
      owner: name,
      ...(nodeName !== undefined && { nodeName }),
      spec: {
        containers: [
          {
            name: 'main',
            image: 'x',
            resources: { requests: { 'nvidia.com/gpu': '1' }, limits: { 'nvidia.com/gpu': '1' } },
          },
        ],
      },
    })

  test('CAG-53 a node with the label but without its GPU is not ready', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('a', { targetSize: 2 })],
      nodes: { a: [gpuNode('a0', '0'), gpuNode('a1', '1')] },
    })
    await cluster.loop()
    assert.equal(report(cluster).cluster.counts.ready, 2)
    cluster.cloud.gpuLabel = gpuLabel
    await cluster.loop()
    assert.deepEqual([report(cluster).cluster.counts.ready, report(cluster).cluster.counts.unready], [1, 1])
  })

  test('CAG-53 --gpu-total limits the GPUs of a type, from above and from below', async () => {
    const gpus = [{ type: 'g', min: 2, max: 2 }]
    const cluster = new FakeCluster({
      groups: [aGroup('a', { targetSize: 1 })],
      nodes: { a: [gpuNode('a0', '1')] },
      pods: [gpuPod('u', 'a0'), gpuPod('p'), gpuPod('q')],
      options: { scaleUp: { gpus }, scaleDown: { gpus, unneededTimeMs: minute, delayAfterAddMs: 0 } },
    })
    cluster.cloud.gpuLabel = gpuLabel
    await cluster.loop()
    assert.equal(cluster.size('a'), 2)
    cluster.addNode(gpuNode('a1', '1'), 'a')
    cluster.pods.set('p', gpuPod('p', 'a1'))
    await cluster.loop()
    assert.equal(cluster.size('a'), 2)
    assert.match(
      cluster.events.of('NotTriggerScaleUp').join(),
      /exceeded quota: "cluster-wide", resources: g/,
    )
    cluster.pods.clear()
    await cluster.loopFor(5 * minute)
    assert.equal(cluster.size('a'), 2)
    assert.match(cluster.explanations.of({ kind: 'node', name: 'a1' }), /fall below its minimum of g/)
  })
})

describe('sizes', () => {
  test('a group whose new nodes cannot be described does not stop others', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('a', { minSize: 0, targetSize: 0 }), aGroup('b', { minSize: 0, targetSize: 0 })],
      nodes: {},
      pods: [aPod('p', { cpu: '3' })],
    })
    cluster.cloud.examples.set('a', new NodeGroupError('the template cannot be read'))
    cluster.cloud.examples.set('b', { node: aNode('first-node-of-b') })
    assert.deepEqual(await cluster.loop(), { kind: 'done' })
    await cluster.loop()
    assert.deepEqual([cluster.size('a'), cluster.size('b')], [0, 1])
    assert.deepEqual(cluster.warnings, ['a new node of a node group cannot be described'])
  })

  test('CAG-20 a group above its maximum may shrink, and one far below its minimum may grow', async () => {
    const cluster = new FakeCluster({
      groups: [
        aGroup('big', { minSize: 0, maxSize: 1, targetSize: 2 }),
        aGroup('small', { minSize: 5, maxSize: 9, targetSize: 1 }),
      ],
      nodes: { big: [aNode('b0'), aNode('b1')], small: [aNode('s0')] },
      pods: [keeper('s0'), keeper('b0'), aPod('p', { cpu: '5' })],
      options: { scaleDown: { unneededTimeMs: minute, delayAfterAddMs: 0 } },
    })
    await cluster.loopFor(3 * minute)
    assert.equal(cluster.size('big'), 1)
    cluster.addPod(aPod('q', { cpu: '3' }))
    await cluster.loop()
    assert.deepEqual([cluster.size('big'), cluster.size('small')], [1, 2])
  })

  test('nodes that never join: the size returns to what is registered, and the group is in failure back-off (trap 13)', async () => {
    const cluster = idle(['a'])
    cluster.addPod(keeper('a0'))
    cluster.addPod(aPod('p', { cpu: '3' }))
    cluster.addPod(aPod('q', { cpu: '3' }))
    cluster.cloud.canDecrease = true
    await cluster.loop()
    assert.equal(cluster.size('a'), 3)
    cluster.addNode(aNode('a1'), 'a')
    cluster.pods.set('p', keeper('a1'))
    await cluster.loopFor(16 * minute)
    assert.equal(cluster.size('a'), 2)
    assert.deepEqual(cluster.cloud.calls, ['increase a 2', 'decrease a 1'])
    await cluster.loopFor(4 * minute)
    assert.equal(report(cluster).groups[0]?.backoff?.code, 'timeout')
    assert.equal(cluster.size('a'), 2)
  })

  test('a size that the cloud keeps does not stop the loop', async () => {
    const cluster = idle(['a'])
    cluster.addPod(keeper('a0'))
    cluster.cloud.groups.set('a', aGroup('a', { targetSize: 3 }))
    cluster.cloud.decreaseTargetSize = () => Promise.resolve('done')
    await cluster.loopFor(20 * minute)
    cluster.addPod(aPod('p', { cpu: '3' }))
    await cluster.loop()
    assert.equal(cluster.size('a'), 4)
  })
})
