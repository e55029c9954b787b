import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { isActive } from '../objects/pods.ts'
import { type StatefulSet, workloads } from '../objects/workloads.ts'
import { startWorld, template, type World } from '../world.test-support.ts'

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

const mounted = (world: World, spec: Partial<StatefulSet['spec']> = {}): void => {
  const claim = {
    metadata: { name: 'data' },
    spec: {
      storageClassName: 'fast',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
    },
  }
  const pod = template('db')
  const containers = [{ name: 'main', image: 'app:1', volumeMounts: [{ name: 'data', mountPath: '/data' }] }]
  world.api.create(workloads.storageClass, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'fast' },
    provisioner: 'csi.example.com',
    volumeBindingMode: 'Immediate',
    reclaimPolicy: 'Delete',
  })
  create(world, { template: { ...pod, spec: { containers } }, volumeClaimTemplates: [claim], ...spec })
}

const claimNames = (world: World) =>
  world.api
    .list(kinds.persistentVolumeClaim)
    .map((claim) => claim.metadata.name)
    .sort()

test('RPT-52 a set that mounts its claim templates runs, each pod on its own bound claim', async () => {
  const world = startWorld()
  mounted(world)
  await world.settle(10_000)
  assert.deepEqual(names(world), ['db-0', 'db-1', 'db-2'])
  assert.deepEqual(
    world.pods().map((pod) => pod.status?.phase),
    ['Running', 'Running', 'Running'],
  )
  const claims = world.api.list(kinds.persistentVolumeClaim)
  assert.deepEqual(
    claims.map((claim) => claim.status?.phase),
    ['Bound', 'Bound', 'Bound'],
  )
  world.stop()
})

for (const { policy, scaled, deleted } of [
  { policy: undefined, scaled: ['data-db-0', 'data-db-1', 'data-db-2'], deleted: 3 },
  { policy: { whenScaled: 'Delete', whenDeleted: 'Retain' }, scaled: ['data-db-0'], deleted: 1 },
  {
    policy: { whenScaled: 'Retain', whenDeleted: 'Delete' },
    scaled: ['data-db-0', 'data-db-1', 'data-db-2'],
    deleted: 0,
  },
  { policy: { whenScaled: 'Delete', whenDeleted: 'Delete' }, scaled: ['data-db-0'], deleted: 0 },
] as const) {
  test(`RPT-52 claims are kept and deleted as the policy ${JSON.stringify(policy)} says`, async () => {
    const world = startWorld()
    mounted(world, policy === undefined ? {} : { persistentVolumeClaimRetentionPolicy: policy })
    await world.settle(10_000)
    change(world, { replicas: 1 })
    await world.settle(10_000)
    assert.deepEqual(names(world), ['db-0'])
    assert.deepEqual(claimNames(world), scaled)
    world.api.delete(workloads.statefulSet, 'default', 'db')
    await world.settle(10_000)
    assert.deepEqual(names(world), [])
    assert.equal(claimNames(world).length, deleted)
    world.stop()
  })
}

test('RPT-52 a policy that changes later holds for claims that exist, and back', async () => {
  const world = startWorld()
  mounted(world, { replicas: 1 })
  await world.settle(5_000)
  const owners = () =>
    world.api
      .list(kinds.persistentVolumeClaim)
      .flatMap((claim) => claim.metadata.ownerReferences ?? [])
      .map((owner) => owner.kind)
  assert.deepEqual(owners(), [])
  change(world, { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete' } })
  await world.settle(1_000)
  assert.deepEqual(owners(), ['StatefulSet'])
  change(world, { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain' } })
  await world.settle(1_000)
  assert.deepEqual(owners(), [])
  world.stop()
})

test('RPT-52 scaled down and up at once, a pod gets a new claim and not the one that is being deleted', async () => {
  const world = startWorld()
  mounted(world, { replicas: 2, persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete' } })
  await world.settle(10_000)
  const uid = () => world.api.get(kinds.persistentVolumeClaim, 'default', 'data-db-1')?.metadata.uid
  const first = uid()
  change(world, { replicas: 1 })
  await world.settle(100)
  change(world, { replicas: 2 })
  await world.settle(20_000)
  assert.deepEqual(names(world), ['db-0', 'db-1'])
  assert.notEqual(uid(), first)
  assert.notEqual(uid(), undefined)
  world.stop()
})
