import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Node } from '@tenon/api'
import { FakeCluster } from '../testing/fake-cluster.test-support.ts'
import { aGroup } from '../testing/fake-groups.test-support.ts'
import { aNode, aPod, pods } from '../testing/objects.test-support.ts'

const minute = 60_000

function nodes(prefix: string, count: number, fields: Parameters<typeof aNode>[1] = {}): Node[] {
  return Array.from({ length: count }, (_, index) => aNode(`${prefix}${index}`, fields))
}

/** A pod that keeps each node from being removed. */
function keepers(of: readonly Node[]) {
  return of.map(({ metadata: { name } }) =>
    aPod(`keep-${name}`, { cpu: '3', nodeName: name, owner: `keep-${name}` }),
  )
}

describe('one iteration', () => {
  test('CAS-40 a pod without room grows a group; its node on the way is counted on', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('g')],
      nodes: { g: nodes('g', 1) },
      pods: [...keepers(nodes('g', 1)), aPod('p', { cpu: '3' })],
    })
    assert.deepEqual(await cluster.loop(), { kind: 'done' })
    assert.equal(cluster.size('g'), 2)
    await cluster.loopFor(5 * minute)
    assert.equal(cluster.size('g'), 2)
    assert.equal(cluster.events.of('TriggeredScaleUp').length, 1)
    assert.equal(cluster.metrics.of('unschedulable_pods_count', { type: 'unschedulable' }), 1)
    assert.equal(cluster.metrics.of('skipped_pods_count', { requestor: 'filter-out-pod-list-processor' }), 0)
  })

  test('CAS-30 a node that never comes makes the group rest, and another one takes its place', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('a'), aGroup('b')],
      nodes: { a: nodes('a', 1), b: nodes('b', 1, { cpu: '8' }) },
      pods: [...keepers(nodes('a', 1)), aPod('kb', { cpu: '7', nodeName: 'b0' }), aPod('p', { cpu: '3' })],
    })
    await cluster.loop()
    assert.deepEqual([cluster.size('a'), cluster.size('b')], [2, 1])
    await cluster.loopFor(16 * minute)
    assert.equal(cluster.events.of('ScaleUpTimedOut').length, 1)
    assert.equal(cluster.size('b'), 2)
    const report = cluster.reports.at(-1)
    assert.ok(report?.kind === 'running')
    assert.equal(report.groups.find(({ id }) => id === 'a')?.backoff?.code, 'timeout')
  })

  test('CAS-39 CAS-12 a cloud that cannot be read fails the loop, and no status is written', async () => {
    const cluster = new FakeCluster({ groups: [aGroup('g')], nodes: { g: nodes('g', 1) } })
    cluster.cloud.refreshError = new Error('GET /instance-pool/g answered 500')
    const outcome = await cluster.loop()
    assert.deepEqual(outcome, {
      kind: 'failed',
      type: 'cloudProviderError',
      message: 'GET /instance-pool/g answered 500',
    })
    assert.equal(cluster.metrics.of('errors_total', { type: 'cloudProviderError' }), 1)
    assert.deepEqual(cluster.reports, [])
  })

  test('CAS-12 a group that cannot be read, or whose node is gone, leaves the others to grow', async () => {
    const all = [...nodes('bad', 1), ...nodes('gone', 1), ...nodes('ok', 1)]
    const cluster = new FakeCluster({
      groups: [aGroup('bad'), aGroup('ok')],
      nodes: { bad: [all[0] as Node], '': [all[1] as Node], ok: [all[2] as Node] },
      pods: [...keepers(all), ...pods('p', 3, { cpu: '3' })],
    })
    cluster.cloud.faults.push({ groupId: 'bad', reason: 'GET /instance-pool/bad answered 500' })
    cluster.cloud.unresolved.set('gone0', 'GET /instance/x answered 404')
    assert.deepEqual(await cluster.loop(), { kind: 'done' })
    assert.deepEqual([cluster.size('bad'), cluster.size('ok')], [1, 4])
    assert.deepEqual(cluster.events.of('NodeGroupUnavailable'), [
      'NodeGroupUnavailable status: node group bad is not scaled: GET /instance-pool/bad answered 500',
    ])
    assert.equal(cluster.events.of('NodeGroupUnknown').length, 1)
    const report = cluster.reports.at(-1)
    assert.ok(report?.kind === 'running')
    assert.equal(report.faults.get('bad'), 'GET /instance-pool/bad answered 500')
  })

  test('CAS-23 an unhealthy cluster is left alone, and that is no error', async () => {
    const bad = nodes('u', 5, { isReady: false })
    const cluster = new FakeCluster({
      groups: [aGroup('g', { targetSize: 10, maxSize: 20 })],
      nodes: { g: [...bad, ...nodes('r', 5)] },
      pods: [aPod('p', { cpu: '4' }), ...keepers(nodes('r', 5))],
    })
    assert.deepEqual(await cluster.loop(), { kind: 'done' })
    assert.equal(cluster.events.of('ClusterUnhealthy').length, 1)
    assert.deepEqual(cluster.cloud.calls, [])
  })

  test('CAS-26 a startup taint makes a node not ready; new nodes will not have it', async () => {
    const taints = [
      { key: 'startup-taint.cluster-autoscaler.kubernetes.io/cni', effect: 'NoSchedule' },
      { key: 'status-taint.cluster-autoscaler.kubernetes.io/patch', effect: 'NoSchedule' },
    ] as const
    const cluster = new FakeCluster({
      groups: [aGroup('g')],
      nodes: { g: nodes('g', 1, { taints }) },
      pods: [aPod('p', { cpu: '3' })],
    })
    await cluster.loop()
    const report = cluster.reports.at(-1)
    assert.ok(report?.kind === 'running')
    assert.equal(report.cluster.counts.ready, 0)
    assert.equal(cluster.metrics.of('node_taints_count', { type: 'startup-taint' }), 1)
    assert.equal(cluster.size('g'), 2)
  })

  test('CAS-28 a node that is there but not ready yet is stood in for, and does not go', async () => {
    const young: Node = {
      ...aNode('y', { isReady: false }),
      metadata: { ...aNode('y').metadata, creationTimestamp: '2026-01-01T00:00:00Z' },
    }
    const cluster = new FakeCluster({
      groups: [aGroup('g', { targetSize: 2 })],
      nodes: { g: [...nodes('g', 1), young] },
      pods: [...keepers(nodes('g', 1)), aPod('p', { cpu: '3' })],
    })
    await cluster.loop()
    assert.equal(cluster.size('g'), 2)
    assert.equal(cluster.metrics.of('unneeded_nodes_count'), 0)
  })

  test('CAS-45 very new pods hold everything up', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('g')],
      nodes: { g: nodes('g', 1) },
      pods: [...keepers(nodes('g', 1)), aPod('p', { cpu: '3', ageMs: 1500 })],
    })
    await cluster.loop()
    assert.equal(cluster.size('g'), 1)
    assert.equal(cluster.metrics.of('scale_down_in_cooldown'), 1)
    await cluster.loopFor(10_000)
    assert.equal(cluster.size('g'), 2)
  })

  test('CAS-52 as many ready nodes as there may be in all', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('g', { targetSize: 2 })],
      nodes: { g: nodes('g', 2) },
      pods: [...keepers(nodes('g', 2)), aPod('p', { cpu: '3' })],
      options: { scaleUp: { maxNodesTotal: 2 } },
    })
    await cluster.loop()
    assert.equal(cluster.size('g'), 2)
    assert.equal(cluster.events.of('MaxNodesTotalReached').length, 1)
    assert.deepEqual(cluster.events.of('NotTriggerScaleUp'), [
      "NotTriggerScaleUp Pod/p: pod didn't trigger scale-up: max total nodes in cluster reached",
    ])
  })

  test('CAS-63 a group below its minimum is raised without pods', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('g', { minSize: 3 })],
      nodes: { g: nodes('g', 1) },
      pods: keepers(nodes('g', 1)),
      options: { loop: { enforceNodeGroupMinSize: true } },
    })
    await cluster.loop()
    assert.equal(cluster.size('g'), 3)
  })

  test('a pod that cannot be read does not stop others', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('g')],
      nodes: { g: nodes('g', 1) },
      pods: [...keepers(nodes('g', 1)), aPod('odd', { cpu: 'much' }), aPod('p', { cpu: '3' })],
    })
    assert.deepEqual(await cluster.loop(), { kind: 'done' })
    assert.equal(cluster.size('g'), 2)
  })

  test('without nodes nothing is scaled when --scale-up-from-zero is off', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('g')],
      nodes: { g: nodes('g', 1, { isReady: false }) },
      options: { loop: { scaleUpFromZero: false } },
    })
    await cluster.loop()
    assert.deepEqual(cluster.reports, [{ kind: 'initializing', message: 'Cluster has no ready nodes.' }])
    assert.equal(cluster.events.of('ClusterUnhealthy').length, 0)
    await cluster.loopFor(11 * minute)
    assert.ok(cluster.events.of('ClusterUnhealthy').length > 0)
  })
})

describe('why', () => {
  const scene = () =>
    new FakeCluster({
      groups: [aGroup('g', { targetSize: 3, maxSize: 3 })],
      nodes: { g: nodes('g', 3), '': [aNode('lone')] },
      pods: [...keepers(nodes('g', 2)), aPod('p', { cpu: '5' }), aPod('bare', { nodeName: 'g2' })],
    })

  test('a pod that no group helps, a node that stays, a group that is full', async () => {
    const cluster = scene()
    assert.equal(cluster.explanations.of({ kind: 'pod', name: 'default/p' }), 'no loop has run yet')
    await cluster.loop()
    const of = (kind: 'pod' | 'node' | 'group', name: string) => cluster.explanations.of({ kind, name })
    assert.equal(
      of('pod', 'default/p'),
      'pod default/p, as of 2026-01-01T00:00:00.000Z: no node group helps: 1 max node group size reached',
    )
    assert.match(of('pod', 'default/other'), /it does not wait for a node/)
    assert.match(
      of('node', 'g0'),
      /in node group g; it stays: its utilization .* is above the threshold 0\.5/,
    )
    assert.match(of('node', 'g2'), /pod default\/bare may not be moved: no controller would create it again/)
    assert.match(of('node', 'lone'), /in no node group/)
    assert.match(
      of('group', 'pool-g'),
      /^node group pool-g \(g\): size 3, between 1 and 3; it has its maximum/,
    )
    assert.match(of('group', 'zzz'), /^node group zzz is not known/)
  })

  test('a pod that was helped, and a node that is not needed', async () => {
    const cluster = scene()
    cluster.cloud.groups.set('g', aGroup('g', { targetSize: 3, maxSize: 4 }))
    cluster.pods.delete('p')
    cluster.pods.delete('bare')
    cluster.addPod(aPod('q', { cpu: '4', owner: 'q', nodeName: 'lone' }))
    cluster.addPod(aPod('r', { cpu: '3500m', owner: 'r', nodeName: 'g2' }))
    cluster.addPod(aPod('s', { cpu: '3' }))
    await cluster.loop()
    const helped = cluster.explanations.of({ kind: 'pod', name: 'default/s' })
    assert.match(helped, /nodes were asked for: \{g 3->4 \(max: 4\)\}/)
    cluster.pods.delete('s')
    cluster.pods.delete('r')
    await cluster.loopFor(10_000)
    assert.match(
      cluster.explanations.of({ kind: 'node', name: 'g2' }),
      /in node group g, not needed since 2026-01-01T00:00:10/,
    )
  })
})

describe('over time', () => {
  test('CAS-69 CAS-94 a node that is not needed goes after ten minutes, down to the minimum', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('g', { targetSize: 3 })],
      nodes: { g: nodes('g', 3) },
      pods: keepers(nodes('g', 1)),
    })
    await cluster.loopFor(9 * minute)
    assert.equal(cluster.size('g'), 3)
    await cluster.loopFor(3 * minute)
    assert.equal(cluster.size('g'), 1)
    const deleted = cluster.cloud.calls.filter((call) => call.startsWith('delete')).join(' ')
    assert.match(deleted, /cloud:\/\/g1/)
    assert.match(deleted, /cloud:\/\/g2/)
    assert.doesNotMatch(deleted, /cloud:\/\/g0/)
  })

  test('CAS-73 no node goes for ten minutes after one came', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('a'), aGroup('b', { targetSize: 2 })],
      nodes: { a: nodes('a', 1, { cpu: '8' }), b: nodes('b', 2) },
      pods: [aPod('ka', { cpu: '7', nodeName: 'a0', owner: 'ka' }), ...keepers(nodes('b', 1))],
      options: { scaleDown: { unneededTimeMs: minute } },
    })
    cluster.addPod(aPod('p', { cpu: '6' }))
    await cluster.loop()
    assert.equal(cluster.size('a'), 2)
    cluster.pods.delete('p')
    cluster.addNode(aNode('a1', { cpu: '8' }), 'a')
    cluster.addPod(aPod('ka1', { cpu: '7', nodeName: 'a1', owner: 'ka1' }))
    await cluster.loopFor(9 * minute)
    assert.equal(cluster.size('b'), 2)
    await cluster.loopFor(2 * minute)
    assert.equal(cluster.size('b'), 1)
  })

  test('a group grows from zero for pods that its example takes, and back to zero when they are gone', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('g', { minSize: 0, targetSize: 0 })],
      nodes: {},
      pods: [aPod('p', { cpu: '3', owner: 'p' })],
    })
    await cluster.loop()
    assert.equal(cluster.size('g'), 0)
    cluster.cloud.examples.set('g', { node: aNode('first-node-of-g') })
    await cluster.loopFor(10_000)
    assert.equal(cluster.size('g'), 1)
    cluster.addNode(aNode('g0'), 'g')
    cluster.addPod(aPod('p', { cpu: '3', owner: 'p', nodeName: 'g0' }))
    await cluster.loopFor(5 * minute)
    assert.equal(cluster.size('g'), 1)
    cluster.pods.delete('p')
    await cluster.loopFor(25 * minute)
    assert.equal(cluster.size('g'), 0)
  })

  test('a dry run decides and writes nothing', async () => {
    const cluster = new FakeCluster({
      groups: [aGroup('g', { targetSize: 3 })],
      nodes: { g: nodes('g', 3) },
      pods: [...keepers(nodes('g', 1)), aPod('p', { cpu: '5' })],
      options: { isDryRun: true },
    })
    await cluster.loopFor(20 * minute)
    assert.deepEqual(cluster.cloud.calls, [])
    assert.deepEqual(cluster.evicted, [])
  })
})
