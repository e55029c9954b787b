import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Node, type Pod } from '@tenon/api'
import { isActive } from '../objects/pods.ts'
import { type DaemonSetObject, workloads } from '../objects/workloads.ts'
import { addNode, startWorld, template, type World } from '../world.test-support.ts'
import { nodeOf } from './daemon-pod.ts'

function create(world: World, spec: Partial<DaemonSetObject['spec']> = {}): void {
  world.api.create(workloads.daemonSet, {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'agent', namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'agent' } }, template: template('agent'), ...spec },
  })
}

interface Counters {
  readonly desiredNumberScheduled: number
  readonly currentNumberScheduled: number
  readonly numberAvailable: number
  readonly updatedNumberScheduled: number
}

const status = (world: World) =>
  world.api.get(workloads.daemonSet, 'default', 'agent')?.status as DaemonSetObject['status'] & Counters
const nodesOf = (world: World) =>
  world
    .pods()
    .filter(isActive)
    .map((pod) => nodeOf(pod) ?? '')
    .toSorted()

function change(world: World, spec: Partial<DaemonSetObject['spec']>): void {
  const set = world.api.get(workloads.daemonSet, 'default', 'agent') as DaemonSetObject
  world.api.update(workloads.daemonSet, { ...set, spec: { ...set.spec, ...spec } })
}

function taint(world: World, name: string, effect: 'NoSchedule' | 'NoExecute'): void {
  const node = world.api.get(kinds.node, undefined, name) as Node
  world.api.update(kinds.node, {
    ...node,
    spec: { ...node.spec, taints: [{ key: 'dedicated', value: 'x', effect }] },
  })
}

test('every node gets one pod, pinned by node affinity, with the daemon tolerations', async () => {
  const world = startWorld({ nodes: [] })
  for (const name of ['n1', 'n2', 'n3']) addNode(world, name)
  create(world)
  await world.settle()
  assert.deepEqual(nodesOf(world), ['n1', 'n2', 'n3'])
  const [pod] = world.pods()
  const terms =
    pod?.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  assert.deepEqual(terms?.[0]?.matchFields?.[0]?.key, 'metadata.name')
  const keys = pod?.spec.tolerations?.map((toleration) => `${toleration.key}:${toleration.effect}`)
  assert.deepEqual(keys, [
    'node.kubernetes.io/not-ready:NoExecute',
    'node.kubernetes.io/unreachable:NoExecute',
    'node.kubernetes.io/disk-pressure:NoSchedule',
    'node.kubernetes.io/memory-pressure:NoSchedule',
    'node.kubernetes.io/pid-pressure:NoSchedule',
    'node.kubernetes.io/unschedulable:NoSchedule',
  ])
  const { desiredNumberScheduled, numberAvailable, updatedNumberScheduled } = status(world)
  assert.deepEqual([desiredNumberScheduled, numberAvailable, updatedNumberScheduled], [3, 3, 3])
  world.stop()
})

test('nodes that come get a pod, nodes that cease to fit lose it', async () => {
  const world = startWorld({ nodes: [] })
  addNode(world, 'n1', { labels: { disk: 'ssd' } })
  addNode(world, 'n2')
  create(world, {
    template: { ...template('agent'), spec: { ...template('agent').spec, nodeSelector: { disk: 'ssd' } } },
  })
  await world.settle()
  assert.deepEqual(nodesOf(world), ['n1'])
  addNode(world, 'n3', { labels: { disk: 'ssd' } })
  await world.settle()
  assert.deepEqual(nodesOf(world), ['n1', 'n3'])
  const node = world.api.get(kinds.node, undefined, 'n1') as Node
  world.api.update(kinds.node, { ...node, metadata: { ...node.metadata, labels: {} } })
  await world.settle()
  assert.deepEqual(nodesOf(world), ['n3'])
  world.stop()
})

test('a NoSchedule taint keeps new pods off a node but leaves those that are there', async () => {
  const world = startWorld({ nodes: [] })
  addNode(world, 'n1')
  create(world)
  await world.settle()
  addNode(world, 'n2', { spec: { taints: [{ key: 'dedicated', effect: 'NoSchedule' }] } })
  taint(world, 'n1', 'NoSchedule')
  await world.settle()
  assert.deepEqual(nodesOf(world), ['n1'])
  assert.equal(status(world).desiredNumberScheduled, 0)
  taint(world, 'n1', 'NoExecute')
  await world.settle()
  assert.deepEqual(nodesOf(world), [])
  world.stop()
})

test('a rolling update keeps all but maxUnavailable nodes served', async () => {
  const world = startWorld({ nodes: [] })
  for (let i = 0; i < 6; i++) addNode(world, `n${i}`)
  create(world, { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 2 } } })
  await world.settle()
  change(world, { template: template('agent', 'app:2') })
  let fewest = 6
  const done = await world.clock.advanceUntil(() => {
    const active = world.pods().filter(isActive)
    fewest = Math.min(fewest, active.filter((pod) => pod.status?.phase === 'Running').length)
    return active.length === 6 && active.every((pod) => pod.spec.containers[0]?.image === 'app:2')
  }, 60_000)
  assert.ok(done)
  assert.equal(fewest, 4)
  await world.settle()
  assert.equal(status(world).updatedNumberScheduled, 6)
  world.stop()
})

test('with maxSurge the new pod is available before the old one goes', async () => {
  const world = startWorld({ nodes: [] })
  for (let i = 0; i < 4; i++) addNode(world, `n${i}`)
  create(world, {
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
  })
  await world.settle()
  change(world, { template: template('agent', 'app:2') })
  let fewest = 4
  const done = await world.clock.advanceUntil(() => {
    const active = world.pods().filter(isActive)
    fewest = Math.min(fewest, active.filter((pod) => pod.status?.phase === 'Running').length)
    return active.length === 4 && active.every((pod) => pod.spec.containers[0]?.image === 'app:2')
  }, 60_000)
  assert.ok(done)
  assert.equal(fewest, 4)
  world.stop()
})

test('a failed daemon pod is replaced', async () => {
  const world = startWorld({ nodes: [] })
  addNode(world, 'n1')
  create(world)
  await world.settle()
  const [pod] = world.pods()
  world.api.updateStatus(kinds.pod, { ...pod, status: { ...pod?.status, phase: 'Failed' } } as never)
  await world.settle()
  assert.equal(world.pods().filter(isActive).length, 1)
  assert.equal(world.events('FailedDaemonPod').length, 1)
  world.stop()
})

test('a pod that fits the selector no more is let go and replaced, and is taken back when it fits again', async () => {
  const world = startWorld({ nodes: [] })
  for (const name of ['n1', 'n2']) addNode(world, name)
  create(world)
  await world.settle()
  const relabel = (name: string, app: string) => {
    const pod = world.api.get(kinds.pod, 'default', name) as Pod
    const labels = { ...pod.metadata.labels, app }
    world.api.update(kinds.pod, { ...pod, metadata: { ...pod.metadata, labels } })
  }
  const ownersOf = (name: string) => world.api.get(kinds.pod, 'default', name)?.metadata.ownerReferences ?? []
  const [pod] = world.pods()
  const name = pod?.metadata.name ?? ''
  relabel(name, 'other')
  await world.settle()
  assert.deepEqual(ownersOf(name), [])
  assert.deepEqual(nodesOf(world), ['n1', 'n2', (pod && nodeOf(pod)) ?? ''].toSorted())
  assert.equal(status(world).currentNumberScheduled, 2)
  relabel(name, 'agent')
  await world.settle()
  assert.deepEqual(nodesOf(world), ['n1', 'n2'])
  assert.ok(world.pods().every(({ metadata }) => ownersOf(metadata.name).length === 1))
  world.stop()
})
