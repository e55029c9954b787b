import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Node, type Pod, type Toleration } from '@tenon/api'
import { conditionOf, isTerminating } from '../objects/pods.ts'
import { addNode, beat, startWorld, template, type World } from '../world.test-support.ts'

const node = (world: World, name = 'node-a') => world.api.get(kinds.node, undefined, name) as Node
const taints = (world: World) =>
  (node(world).spec?.taints ?? []).map((taint) => `${taint.key}:${taint.effect}`)
const ready = (world: World) =>
  node(world).status?.conditions?.find((condition) => condition.type === 'Ready')

function createPod(world: World, name: string, tolerations: readonly Toleration[] = []): void {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { ...template(name).spec, tolerations },
  }
  world.api.create(kinds.pod, pod)
}

const tolerate = (name: string, tolerationSeconds: number): Toleration => ({
  key: `node.kubernetes.io/${name}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds,
})

test('a node whose lease is renewed stays Ready', async () => {
  const world = startWorld()
  await world.settle(300_000)
  assert.equal(ready(world)?.status, 'True')
  assert.deepEqual(taints(world), [])
  world.stop()
})

test('a silent node becomes Unknown after 40 s, is tainted unreachable, and its pods are not ready', async () => {
  const world = startWorld()
  createPod(world, 'p', [tolerate('unreachable', 300)])
  await world.settle(12_000)
  world.alive.delete('node-a')
  await world.settle(35_000)
  assert.equal(ready(world)?.status, 'True')
  await world.settle(10_000)
  assert.equal(ready(world)?.status, 'Unknown')
  assert.equal(ready(world)?.reason, 'NodeStatusUnknown')
  assert.deepEqual(taints(world), [
    'node.kubernetes.io/unreachable:NoSchedule',
    'node.kubernetes.io/unreachable:NoExecute',
  ])
  const pod = world.api.get(kinds.pod, 'default', 'p') as Pod
  assert.equal(conditionOf(pod, 'Ready')?.status, 'False')
  assert.ok(world.events('NodeNotReady').includes('Node node-a status is now: NodeNotReady'))
  beat(world, 'node-a')
  await world.settle(1000)
  assert.deepEqual(taints(world), [])
  world.stop()
})

test('a NotReady kubelet and pressure conditions are tainted as such', async () => {
  const world = startWorld()
  beat(world, 'node-a', 'False')
  await world.settle(1000)
  assert.deepEqual(taints(world), [
    'node.kubernetes.io/not-ready:NoSchedule',
    'node.kubernetes.io/not-ready:NoExecute',
  ])
  const current = beat(world, 'node-a')
  const conditions = [
    ...(current.status?.conditions ?? []),
    { type: 'DiskPressure', status: 'True' as const },
  ]
  world.api.updateStatus(kinds.node, { ...current, status: { ...current.status, conditions } })
  await world.settle(1000)
  assert.deepEqual(taints(world), ['node.kubernetes.io/disk-pressure:NoSchedule'])
  world.stop()
})

test('cordon adds the unschedulable taint, uncordon removes it, others stay', async () => {
  const world = startWorld()
  const set = (unschedulable: boolean) => {
    const current = node(world)
    world.api.update(kinds.node, { ...current, spec: { ...current.spec, unschedulable } })
  }
  const current = node(world)
  world.api.update(kinds.node, { ...current, spec: { taints: [{ key: 'own', effect: 'NoSchedule' }] } })
  set(true)
  await world.settle(1000)
  assert.deepEqual(taints(world), ['own:NoSchedule', 'node.kubernetes.io/unschedulable:NoSchedule'])
  set(false)
  await world.settle(1000)
  assert.deepEqual(taints(world), ['own:NoSchedule'])
  world.stop()
})

test('NoExecute taints evict pods at once, after tolerationSeconds, or never', async () => {
  const world = startWorld()
  createPod(world, 'plain')
  createPod(world, 'patient', [
    { key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 },
  ])
  createPod(world, 'forever', [{ operator: 'Exists' }])
  await world.settle()
  const current = node(world)
  const now = '2026-01-01T00:00:05Z'
  const taint = { key: 'maintenance', effect: 'NoExecute' as const, timeAdded: now }
  world.api.update(kinds.node, { ...current, spec: { taints: [taint] } })
  await world.settle(10_000)
  assert.deepEqual(
    world.pods().map((pod) => pod.metadata.name),
    ['forever', 'patient'],
  )
  world.restart()
  await world.settle(60_000)
  assert.deepEqual(
    world.pods().map((pod) => pod.metadata.name),
    ['forever'],
  )
  assert.ok(world.events('TaintManagerEviction').includes('Marking for deletion Pod default/plain'))
  world.stop()
})

test('an eviction is called off when the taint goes in time', async () => {
  const world = startWorld()
  createPod(world, 'patient', [
    { key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 },
  ])
  await world.settle()
  const spec = { taints: [{ key: 'maintenance', effect: 'NoExecute' as const }] }
  world.api.update(kinds.node, { ...node(world), spec })
  await world.settle(10_000)
  world.api.update(kinds.node, { ...node(world), spec: {} })
  await world.settle(100_000)
  assert.equal(world.pods().filter(isTerminating).length, 0)
  assert.deepEqual(world.events('TaintManagerEviction'), ['Cancelling deletion of Pod default/patient'])
  world.stop()
})

test('pods of a node that is gone are removed after the quarantine', async () => {
  const world = startWorld()
  createPod(world, 'p')
  await world.settle()
  world.alive.delete('node-a')
  world.kubeletsStop = false
  world.api.delete(kinds.node, undefined, 'node-a')
  await world.settle(35_000)
  assert.equal(world.pods().length, 1)
  await world.settle(10_000)
  assert.equal(world.pods().length, 0)
  world.stop()
})

test('terminating pods of an out-of-service node are removed without their kubelet', async () => {
  const world = startWorld()
  createPod(world, 'p', [{ operator: 'Exists' }])
  await world.settle()
  world.kubeletsStop = false
  world.alive.delete('node-a')
  await world.settle(60_000)
  world.api.delete(kinds.pod, 'default', 'p')
  await world.settle(60_000)
  assert.equal(world.pods().length, 1)
  const current = node(world)
  const taint = { key: 'node.kubernetes.io/out-of-service', value: 'x', effect: 'NoExecute' as const }
  world.api.update(kinds.node, { ...current, spec: { taints: [...(current.spec?.taints ?? []), taint] } })
  await world.settle(5_000)
  assert.equal(world.pods().length, 0)
  world.stop()
})

test('finished pods beyond the threshold are removed, the oldest first', async () => {
  const world = startWorld({ settings: { terminatedPodThreshold: 2 } })
  world.endsAs = () => 'Succeeded'
  for (const name of ['a', 'b', 'c', 'd']) {
    createPod(world, name)
    await world.settle(2_000)
  }
  await world.settle(60_000)
  assert.deepEqual(
    world.pods().map((pod) => pod.metadata.name),
    ['c', 'd'],
  )
  world.stop()
})

test('nodes are announced and missed in events', async () => {
  const world = startWorld()
  addNode(world, 'node-b')
  await world.settle()
  world.api.delete(kinds.node, undefined, 'node-b')
  await world.settle()
  assert.ok(world.events('RegisteredNode').some((message) => message.includes('node-b')))
  assert.ok(world.events('RemovingNode').some((message) => message.includes('node-b')))
  world.stop()
})
