import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ConfigMap, kinds, type OwnerReference } from '@tenon/api'
import { startWorld, type World } from '../world.test-support.ts'

function create(
  world: World,
  name: string,
  owners: readonly OwnerReference[] = [],
  finalizers: readonly string[] = [],
): ConfigMap {
  return world.api.create(kinds.configMap, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'default', ownerReferences: owners, finalizers },
  })
}

function owned(owner: ConfigMap, more: Partial<OwnerReference> = {}): OwnerReference {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: owner.metadata.name,
    uid: owner.metadata.uid ?? '',
    ...more,
  }
}

const names = (world: World) =>
  world.api
    .list(kinds.configMap, { namespace: 'default' })
    .map((each) => each.metadata.name)
    .filter((name) => name !== 'kube-root-ca.crt')

const remove = (world: World, name: string, propagationPolicy: 'Background' | 'Foreground' | 'Orphan') =>
  world.api.delete(kinds.configMap, 'default', name, { propagationPolicy })

test('background: dependents of dependents go after their owner', async () => {
  const world = startWorld()
  const top = create(world, 'top')
  const middle = create(world, 'middle', [owned(top)])
  create(world, 'bottom', [owned(middle)])
  await world.settle()
  remove(world, 'top', 'Background')
  assert.deepEqual(names(world), ['bottom', 'middle'])
  await world.settle()
  assert.deepEqual(names(world), [])
  world.stop()
})

test('foreground: the owner goes last, after dependents that block it', async () => {
  const world = startWorld()
  const top = create(world, 'top')
  create(world, 'held', [owned(top, { blockOwnerDeletion: true })], ['example.com/hold'])
  create(world, 'free', [owned(top, { blockOwnerDeletion: true })])
  await world.settle()
  remove(world, 'top', 'Foreground')
  await world.settle()
  assert.deepEqual(names(world), ['held', 'top'])
  world.restart()
  await world.settle()
  const held = world.api.get(kinds.configMap, 'default', 'held') as ConfigMap
  assert.ok(held.metadata.deletionTimestamp)
  world.api.update(kinds.configMap, { ...held, metadata: { ...held.metadata, finalizers: [] } })
  await world.settle()
  assert.deepEqual(names(world), [])
  world.stop()
})

test('foreground: a dependent that does not block does not hold its owner up', async () => {
  const world = startWorld()
  const top = create(world, 'top')
  create(world, 'held', [owned(top)], ['example.com/hold'])
  await world.settle()
  remove(world, 'top', 'Foreground')
  await world.settle()
  assert.deepEqual(names(world), ['held'])
  world.stop()
})

test('orphan: dependents stay and lose the reference', async () => {
  const world = startWorld()
  const top = create(world, 'top')
  create(world, 'child', [owned(top)])
  await world.settle()
  remove(world, 'top', 'Orphan')
  await world.settle()
  assert.deepEqual(names(world), ['child'])
  const child = world.api.get(kinds.configMap, 'default', 'child')
  assert.deepEqual(child?.metadata.ownerReferences ?? [], [])
  world.stop()
})

test('an object with one owner left stays and drops the other', async () => {
  const world = startWorld()
  const one = create(world, 'one')
  const two = create(world, 'two')
  create(world, 'child', [owned(one), owned(two)])
  await world.settle()
  remove(world, 'one', 'Background')
  await world.settle()
  assert.deepEqual(names(world), ['child', 'two'])
  const child = world.api.get(kinds.configMap, 'default', 'child')
  assert.deepEqual(
    child?.metadata.ownerReferences?.map((owner) => owner.name),
    ['two'],
  )
  world.stop()
})

test('an object whose owner never existed, or only by name, is collected', async () => {
  const world = startWorld()
  const namesake = create(world, 'namesake')
  create(world, 'child', [owned(namesake, { uid: 'another-uid' })])
  await world.settle()
  assert.deepEqual(names(world), ['namesake'])
  world.stop()
})

test('an owner of a kind that is not served keeps its dependents', async () => {
  const world = startWorld()
  create(world, 'child', [{ apiVersion: 'example.com/v1', kind: 'Ghost', name: 'g', uid: 'u' }])
  await world.settle(60_000)
  assert.deepEqual(names(world), ['child'])
  world.stop()
})
