import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Node, Pod } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { FakeCluster } from '../testing/fake-cluster.test-support.ts'
import { aGroup } from '../testing/fake-groups.test-support.ts'
import { aNode, aPod } from '../testing/objects.test-support.ts'

const minute = 60_000

/** A cluster of which the only node is full, and pods of which the large ones need the small ones to stay apart. */
async function grown(plannedPlacement = true): Promise<FakeCluster> {
  const cluster = new FakeCluster({
    groups: [aGroup('g')],
    nodes: { g: [aNode('g0')] },
    pods: [
      aPod('keep', { cpu: '4', nodeName: 'g0', owner: 'keep' }),
      aPod('small', { cpu: '1' }),
      aPod('middle-0', { cpu: '2', owner: 'middle' }),
      aPod('middle-1', { cpu: '2', owner: 'middle' }),
      aPod('large', { cpu: '3' }),
    ],
    options: { loop: { plannedPlacement } },
  })
  await cluster.loop()
  assert.equal(cluster.size('g'), 3)
  return cluster
}

function join(cluster: FakeCluster, name: string, isReady = false): void {
  const { metadata, ...rest } = aNode(name, { isReady })
  const creationTimestamp = new Date(cluster.clock.now()).toISOString()
  const node: Node = { ...rest, metadata: { ...metadata, creationTimestamp } }
  if (cluster.nodes.has(name)) cluster.nodes.set(name, node)
  else cluster.addNode(node, 'g')
}

function nominate(cluster: FakeCluster, name: string, nominatedNodeName: string): void {
  const pod = cluster.pods.get(name) as Pod
  cluster.addPod({ ...pod, status: { ...pod.status, nominatedNodeName } })
}

describe('--planned-placement', () => {
  test('nominates pods for the nodes they were planned on, as soon as these have come', async () => {
    const cluster = await grown()
    await cluster.look()
    assert.deepEqual(cluster.nominated, [])
    join(cluster, 'n1')
    await cluster.look()
    assert.deepEqual(cluster.nominated, ['large n1', 'small n1'])
    join(cluster, 'n2')
    await cluster.look(minute)
    assert.deepEqual(cluster.nominated.slice(2), ['middle-0 n2', 'middle-1 n2'])
  })

  test('writes nothing unless it is asked for', async () => {
    const cluster = await grown(false)
    join(cluster, 'n1')
    join(cluster, 'n2')
    await cluster.look(minute)
    await cluster.loop()
    assert.deepEqual(cluster.nominated, [])
  })

  test('CAS-43 pods that were nominated by it still count as waiting, on the nodes they are for', async () => {
    const cluster = await grown()
    join(cluster, 'n1')
    join(cluster, 'n2')
    await cluster.look()
    assert.equal(cluster.nominated.length, 4)
    await cluster.loopFor(5 * minute)
    assert.equal(cluster.size('g'), 3)
    assert.equal(cluster.metrics.of('unschedulable_pods_count', { type: 'unschedulable' }), 4)
    // The nodes never get ready: the pods must not wait for them for ever.
    await cluster.loopFor(20 * minute)
    assert.ok((cluster.size('g') ?? 0) > 3)
  })

  test('sets a nomination again that the scheduler has taken back, until the node has been open for a while', async () => {
    const cluster = await grown()
    join(cluster, 'n1')
    await cluster.look()
    nominate(cluster, 'large', '')
    await cluster.look(100)
    assert.equal(cluster.nominated.length, 2, 'not at once')
    await cluster.look(1000)
    assert.deepEqual(cluster.nominated.slice(2), ['large n1'])
    join(cluster, 'n1', true)
    nominate(cluster, 'large', '')
    await cluster.look(minute)
    assert.equal(cluster.nominated.length, 3)
  })

  test('leaves nominations of others and pods that are bound or going alone', async () => {
    const cluster = await grown()
    nominate(cluster, 'large', 'g0')
    const small = cluster.pods.get('small') as Pod
    cluster.addPod({ ...small, spec: { ...small.spec, nodeName: 'g0' } })
    const middle = cluster.pods.get('middle-0') as Pod
    cluster.addPod({
      ...middle,
      metadata: { ...middle.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    })
    join(cluster, 'n1')
    join(cluster, 'n2')
    await cluster.look(minute)
    assert.deepEqual(cluster.nominated, ['middle-1 n2'])
  })

  test('without the right it warns once and goes on', async () => {
    const cluster = await grown()
    cluster.nominationError = new KubeError('forbidden', 403, 'pods "small" is forbidden')
    join(cluster, 'n1')
    join(cluster, 'n2')
    await cluster.look(minute)
    await cluster.loopFor(25 * minute)
    const told = cluster.warnings.filter((text) => text.includes('--planned-placement'))
    assert.deepEqual(told, [
      '--planned-placement has no effect: grant the verb update on pods/status to nominate pods, or leave the flag out',
    ])
    assert.ok(cluster.nominated.length <= 16, `${cluster.nominated.length} were tried`)
    assert.equal(cluster.reports.at(-1)?.kind, 'running')
  })

  test('tries again after a conflict', async () => {
    const cluster = await grown()
    cluster.nominationError = new KubeError('conflict', 409, 'the pod has been modified')
    join(cluster, 'n1')
    await cluster.look()
    assert.equal(cluster.nominated.length, 2)
    cluster.nominationError = undefined
    await cluster.clock.advance(1000)
    assert.deepEqual(cluster.nominated.slice(2), ['large n1', 'small n1'])
  })
})
