import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Pod } from '@tenon/api'
import { isActive } from '../objects/pods.ts'
import { type ReplicaSet, workloads } from '../objects/workloads.ts'
import { startWorld, template, type World } from '../world.test-support.ts'

function create(world: World, spec: Partial<ReplicaSet['spec']> = {}): void {
  world.api.create(workloads.replicaSet, {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'rs', namespace: 'default' },
    spec: { replicas: 3, selector: { matchLabels: { app: 'rs' } }, template: template('rs'), ...spec },
  })
}

const read = (world: World) => world.api.get(workloads.replicaSet, 'default', 'rs') as ReplicaSet

function scale(world: World, replicas: number): void {
  const set = read(world)
  world.api.update(workloads.replicaSet, { ...set, spec: { ...set.spec, replicas } })
}

const names = (world: World) =>
  world
    .pods()
    .filter(isActive)
    .map((pod) => pod.metadata.name)

test('a ReplicaSet replaces a deleted pod', async () => {
  const world = startWorld()
  create(world)
  await world.settle()
  const [first = ''] = names(world)
  world.api.delete(kinds.pod, 'default', first)
  await world.settle()
  assert.equal(names(world).length, 3)
  assert.ok(!names(world).includes(first))
  world.stop()
})

test('pods become available only after minReadySeconds', async () => {
  const world = startWorld()
  create(world, { minReadySeconds: 30 })
  await world.settle(10_000)
  assert.equal(read(world).status?.readyReplicas, 3)
  assert.equal(read(world).status?.availableReplicas, undefined)
  await world.settle(25_000)
  assert.equal(read(world).status?.availableReplicas, 3)
  world.stop()
})

test('a matching orphan is adopted, and a pod whose labels stop matching is released', async () => {
  const world = startWorld()
  const orphan: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'orphan', namespace: 'default', labels: { app: 'rs' } },
    spec: template('rs').spec,
  }
  world.api.create(kinds.pod, orphan)
  create(world)
  await world.settle()
  assert.equal(names(world).length, 3)
  assert.ok(names(world).includes('orphan'))
  const adopted = world.api.get(kinds.pod, 'default', 'orphan') as Pod
  assert.equal(adopted.metadata.ownerReferences?.[0]?.name, 'rs')
  world.api.update(kinds.pod, { ...adopted, metadata: { ...adopted.metadata, labels: { app: 'debug' } } })
  await world.settle()
  assert.equal(names(world).length, 4)
  const released = world.api.get(kinds.pod, 'default', 'orphan')
  assert.deepEqual(released?.metadata.ownerReferences ?? [], [])
  world.stop()
})

test('a scale-down removes pods that are not ready first, then those of the lowest deletion cost', async () => {
  const world = startWorld()
  create(world, { replicas: 4 })
  await world.settle()
  const [cheap = '', ...others] = names(world)
  const pod = world.api.get(kinds.pod, 'default', cheap) as Pod
  const annotations = { 'controller.kubernetes.io/pod-deletion-cost': '-10' }
  world.api.update(kinds.pod, { ...pod, metadata: { ...pod.metadata, annotations } })
  world.readyAfterMs = () => -1
  scale(world, 5)
  await world.settle()
  const unready = names(world).find((name) => name !== cheap && !others.includes(name))
  scale(world, 4)
  await world.settle()
  assert.ok(!names(world).includes(unready ?? ''))
  scale(world, 3)
  await world.settle()
  assert.deepEqual(names(world).sort(), others.sort())
  assert.equal(world.events('SuccessfulDelete').length, 2)
  world.stop()
})

test('a restart right after creations makes no second set of pods', async () => {
  const world = startWorld()
  create(world, { replicas: 20 })
  for (let i = 0; i < 12; i++) {
    await world.clock.advance(0)
    world.restart()
  }
  await world.settle()
  assert.equal(world.api.list(kinds.pod).length, 20)
  assert.equal(read(world).status?.replicas, 20)
  world.stop()
})
