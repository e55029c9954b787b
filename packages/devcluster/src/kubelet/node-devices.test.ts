import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Device, kinds, type ResourceSliceTemplate } from '@tenon/api'
import { KubeletFixture } from './kubelet-fixture.test-support.ts'

const driver = 'gpu.example.com'
const devices: readonly ResourceSliceTemplate[] = [
  {
    driver,
    pool: 'gpus',
    devices: [{ name: 'gpu-0' }, { name: 'gpu-1' }],
    sharedCounters: [{ name: 'card', counters: { memory: { value: '80Gi' } } }],
  },
]

const fixture = () => new KubeletFixture({ deviceDelay: [10_000, 10_000] })

test('drivers publish the devices of a node once it is Ready, as a whole pool that the Node owns', async () => {
  const world = fixture()
  world.kubelet('a', { devices })
  await world.seconds(12)
  assert.equal(world.ready(), 'True')
  assert.deepEqual(world.api.list(kinds.resourceSlice), [])
  await world.seconds(2)
  const slices = world.api.list(kinds.resourceSlice)
  assert.deepEqual(
    slices.map(({ metadata, spec }) => [metadata.name, spec.pool, spec.nodeName, spec.devices?.length]),
    [0, 1].map((at) => [
      `a-gpu.example.com-gpus-${at}`,
      { name: 'a/gpus', generation: 1, resourceSliceCount: 2 },
      'a',
      at === 0 ? undefined : 2,
    ]),
  )
  assert.deepEqual(
    slices.map(({ metadata }) => metadata.ownerReferences?.[0]?.uid),
    slices.map(() => world.node()?.metadata.uid),
  )
})

test('more devices than a slice holds are published in several slices', async () => {
  const world = fixture()
  const many = Array.from({ length: 300 }, (_, index): Device => ({ name: `d${index}` }))
  world.kubelet('a', { devices: [{ driver, pool: 'gpus', devices: many }] })
  await world.seconds(20)
  const slices = world.api.list(kinds.resourceSlice)
  assert.deepEqual(
    slices.map(({ spec }) => [spec.devices?.length, spec.pool.resourceSliceCount]),
    [
      [128, 3],
      [128, 3],
      [44, 3],
    ],
  )
})

test('a pod starts when its claim has a device that is reserved for it, and the driver runs', async () => {
  const world = fixture()
  world.kubelet('a', { devices })
  world.pod('training', { resourceClaims: [{ name: 'gpu', resourceClaimName: 'one' }] })
  const claim = world.api.create(kinds.resourceClaim, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name: 'one', namespace: 'default' },
    spec: { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu' } }] } },
  })
  await world.seconds(5)
  assert.equal(world.brief('training'), 'Pending waiting ContainerCreating')
  const uid = world.api.get(kinds.pod, 'default', 'training')?.metadata.uid ?? ''
  world.api.updateStatus(kinds.resourceClaim, {
    ...claim,
    status: {
      allocation: { devices: { results: [{ request: 'gpu', driver, pool: 'a/gpus', device: 'gpu-0' }] } },
      reservedFor: [{ resource: 'pods', name: 'training', uid }],
    },
  })
  await world.seconds(5)
  assert.equal(world.brief('training'), 'Pending waiting ContainerCreating')
  await world.seconds(10)
  assert.equal(world.brief('training'), 'Running running')
})
