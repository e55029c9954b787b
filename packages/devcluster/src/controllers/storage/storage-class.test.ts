import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Claim, type PersistentVolumeObject, workloads } from '../objects/workloads.ts'
import { startWorld, type World } from '../world.test-support.ts'

const marker = 'storageclass.kubernetes.io/is-default-class'

function createClass(world: World, name: string, annotations: Readonly<Record<string, string>> = {}): void {
  world.api.create(workloads.storageClass, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name, annotations },
    provisioner: `${name}.csi.example.com`,
    volumeBindingMode: 'Immediate',
  })
}

function createClaim(world: World, more: { annotation?: string; className?: string } = {}): void {
  const { annotation, className } = more
  world.api.create(workloads.claim, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'data',
      namespace: 'default',
      ...(annotation !== undefined && {
        annotations: { 'volume.beta.kubernetes.io/storage-class': annotation },
      }),
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      ...(className !== undefined && { storageClassName: className }),
    },
  })
}

const claim = (world: World) => world.api.get(workloads.claim, 'default', 'data') as Claim
const driver = (world: World) =>
  world.api.list<PersistentVolumeObject>(workloads.volume).map(({ spec }) => spec.csi?.driver)

test('RPT-61 a claim without a class gets the newest default class', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  createClass(world, 'a-older', { [marker]: 'true' })
  await world.settle()
  createClass(world, 'z-newer', { [marker]: 'true' })
  createClass(world, 'not-default', { [marker]: 'false' })
  createClaim(world)
  await world.settle()
  assert.equal(claim(world).spec.storageClassName, 'z-newer')
  assert.deepEqual(driver(world), ['z-newer.csi.example.com'])
})

test('RPT-61 a default class is known by its beta annotation too', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  createClass(world, 'disks', { 'storageclass.beta.kubernetes.io/is-default-class': 'true' })
  createClaim(world)
  await world.settle()
  assert.equal(claim(world).status?.phase, 'Bound')
})

test('RPT-61 a claim that was there before the default class gets it afterwards; one of class "" never', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  createClaim(world)
  await world.settle()
  assert.deepEqual([claim(world).status?.phase, claim(world).spec.storageClassName], ['Pending', undefined])
  createClass(world, 'disks', { [marker]: 'true' })
  await world.settle()
  assert.deepEqual([claim(world).status?.phase, claim(world).spec.storageClassName], ['Bound', 'disks'])
  world.api.delete(workloads.claim, 'default', 'data')
  await world.settle()
  createClaim(world, { className: '' })
  await world.settle()
  assert.deepEqual([claim(world).status?.phase, claim(world).spec.storageClassName], ['Pending', ''])
})

test('RPT-61 the beta annotation of a claim names its class', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  createClass(world, 'standard', { [marker]: 'true' })
  createClass(world, 'special')
  createClaim(world, { annotation: 'special' })
  await world.settle()
  assert.deepEqual([claim(world).status?.phase, claim(world).spec.storageClassName], ['Bound', undefined])
  assert.deepEqual(driver(world), ['special.csi.example.com'])
})

test('a bound claim grows where its class lets it', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  for (const allowVolumeExpansion of [true, false]) {
    const name = allowVolumeExpansion ? 'growing' : 'fixed'
    const storageClass = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name },
      provisioner: 'csi.example.com',
      volumeBindingMode: 'Immediate',
      allowVolumeExpansion,
    }
    world.api.create(workloads.storageClass, storageClass)
  }
  const grow = () =>
    world.api.patch(workloads.claim, 'default', 'data', {
      spec: { resources: { requests: { storage: '3Gi' } } },
    })
  createClaim(world, { className: 'growing' })
  await world.settle()
  grow()
  await world.settle()
  assert.equal(claim(world).status?.capacity?.['storage'], '3Gi')
  world.api.delete(workloads.claim, 'default', 'data')
  await world.settle()
  createClaim(world, { className: 'fixed' })
  await world.settle()
  assert.throws(grow, /the storageclass that provisions the pvc must support resize/)
})
