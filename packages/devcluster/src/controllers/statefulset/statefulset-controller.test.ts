import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { isActive } from '../objects/pods.ts'
import { type StatefulSet, workloads } from '../objects/workloads.ts'
import { startWorld, template, type World } from '../testing-world.ts'

function create(world: World, spec: Partial<StatefulSet['spec']> = {}): void {
  world.api.create(workloads.statefulSet, {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db', namespace: 'default' },
    spec: {
      replicas: 3,
      serviceName: 'db',
      selector: { matchLabels: { app: 'db' } },
      template: template('db'),
      ...spec,
    },
  })
}

const read = (world: World) => world.api.get(workloads.statefulSet, 'default', 'db') as StatefulSet
const names = (world: World) => world.pods().map((pod) => pod.metadata.name)
const images = (world: World) => world.pods().map((pod) => pod.spec.containers[0]?.image)

function change(world: World, spec: Partial<StatefulSet['spec']>): void {
  const set = read(world)
  world.api.update(workloads.statefulSet, { ...set, spec: { ...set.spec, ...spec } })
}

test('an ordered StatefulSet starts its pods one after the other, with stable identity', async () => {
  const world = startWorld()
  create(world)
  await world.settle(500)
  assert.deepEqual(names(world), ['db-0'])
  await world.settle(1000)
  assert.deepEqual(names(world), ['db-0', 'db-1'])
  await world.settle(5000)
  assert.deepEqual(names(world), ['db-0', 'db-1', 'db-2'])
  const [pod] = world.pods()
  const spec = pod?.spec as { hostname?: string; subdomain?: string } | undefined
  assert.deepEqual([spec?.hostname, spec?.subdomain], ['db-0', 'db'])
  assert.equal(pod?.metadata.labels?.['statefulset.kubernetes.io/pod-name'], 'db-0')
  assert.equal(pod?.metadata.labels?.['apps.kubernetes.io/pod-index'], '0')
  const { currentRevision, updateRevision, readyReplicas } = read(world).status ?? {}
  assert.equal(currentRevision, updateRevision)
  assert.equal(pod?.metadata.labels?.['controller-revision-hash'], updateRevision)
  assert.equal(readyReplicas, 3)
  assert.ok(world.events('SuccessfulCreate').includes('create Pod db-0 in StatefulSet db successful'))
  world.stop()
})

test('a Parallel StatefulSet starts all pods at once', async () => {
  const world = startWorld()
  create(world, { podManagementPolicy: 'Parallel', replicas: 40 })
  await world.settle(500)
  assert.equal(world.pods().length, 40)
  world.stop()
})

test('claims are made from the templates and survive a scale-down, which goes from the highest ordinal', async () => {
  const world = startWorld()
  const data = {
    metadata: { name: 'data' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }
  create(world, { volumeClaimTemplates: [data] })
  await world.settle(10_000)
  assert.deepEqual(
    world.pods()[0]?.spec.volumes?.map((volume) => volume.persistentVolumeClaim?.claimName),
    ['data-db-0'],
  )
  change(world, { replicas: 1 })
  await world.settle(200)
  assert.deepEqual(
    world
      .pods()
      .filter(isActive)
      .map((pod) => pod.metadata.name),
    ['db-0', 'db-1'],
  )
  await world.settle(10_000)
  assert.deepEqual(names(world), ['db-0'])
  const claims = world.api.list(kinds.persistentVolumeClaim).map((claim) => claim.metadata.name)
  assert.deepEqual(claims.sort(), ['data-db-0', 'data-db-1', 'data-db-2'])
  world.stop()
})

test('a rolling update replaces pods from the highest ordinal down to the partition', async () => {
  const world = startWorld()
  create(world, { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 2 } } })
  await world.settle(10_000)
  change(world, { template: template('db', 'app:2') })
  await world.settle(20_000)
  assert.deepEqual(images(world), ['app:1', 'app:1', 'app:2'])
  assert.equal(read(world).status?.updatedReplicas, 1)
  world.api.delete(kinds.pod, 'default', 'db-0')
  await world.settle(10_000)
  assert.deepEqual(images(world), ['app:1', 'app:1', 'app:2'])
  change(world, { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } } })
  await world.settle(30_000)
  assert.deepEqual(images(world), ['app:2', 'app:2', 'app:2'])
  assert.equal(read(world).status?.currentRevision, read(world).status?.updateRevision)
  assert.equal(world.api.list(workloads.controllerRevision).length, 2)
  world.stop()
})

test('OnDelete leaves pods alone until someone deletes them', async () => {
  const world = startWorld()
  create(world, { updateStrategy: { type: 'OnDelete' } })
  await world.settle(10_000)
  change(world, { template: template('db', 'app:2') })
  await world.settle(10_000)
  assert.deepEqual(images(world), ['app:1', 'app:1', 'app:1'])
  world.api.delete(kinds.pod, 'default', 'db-1')
  await world.settle(10_000)
  assert.deepEqual(images(world), ['app:1', 'app:2', 'app:1'])
  world.stop()
})

test('a restart in the middle of an update goes on with the same revisions', async () => {
  const world = startWorld()
  create(world)
  await world.settle(10_000)
  change(world, { template: template('db', 'app:2') })
  for (let i = 0; i < 20; i++) {
    await world.clock.advance(700)
    world.restart()
  }
  await world.settle(10_000)
  assert.deepEqual(images(world), ['app:2', 'app:2', 'app:2'])
  assert.equal(world.api.list(workloads.controllerRevision).length, 2)
  world.stop()
})
