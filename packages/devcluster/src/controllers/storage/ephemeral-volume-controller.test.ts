import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Pod } from '@tenon/api'
import { type Claim, workloads } from '../objects/workloads.ts'
import { startWorld, template, type World } from '../world.test-support.ts'

function createPod(world: World, name = 'cache'): Pod {
  return world.api.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      ...template('cache').spec,
      volumes: [
        {
          name: 'scratch',
          ephemeral: {
            volumeClaimTemplate: {
              metadata: { labels: { tier: 'fast' }, annotations: { note: 'kept' } },
              spec: {
                storageClassName: 'disks',
                accessModes: ['ReadWriteOnce'],
                resources: { requests: { storage: '2Gi' } },
              },
            },
          },
        },
      ],
    },
  })
}

function createClass(world: World): void {
  world.api.create(workloads.storageClass, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'disks' },
    provisioner: 'csi.example.com',
    volumeBindingMode: 'WaitForFirstConsumer',
  })
}

const claims = (world: World) => world.api.list<Claim>(workloads.claim)

test('RPT-58 a generic ephemeral volume gets a claim that its pod owns, is bound, and goes with it', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  createClass(world)
  const pod = createPod(world)
  await world.settle()
  const [claim] = claims(world)
  assert.equal(claim?.metadata.name, 'cache-scratch')
  assert.deepEqual(claim.metadata.labels, { tier: 'fast' })
  assert.equal(claim.metadata.annotations?.['note'], 'kept')
  assert.deepEqual(claim.metadata.ownerReferences, [
    {
      apiVersion: 'v1',
      kind: 'Pod',
      name: 'cache',
      uid: pod.metadata.uid,
      controller: true,
      blockOwnerDeletion: true,
    },
  ])
  assert.equal(claim.status?.phase, 'Bound')
  assert.equal(world.api.list(workloads.volume).length, 1)
  world.restart()
  await world.settle()
  assert.equal(claims(world).length, 1)
  world.api.delete(kinds.pod, 'default', 'cache')
  await world.settle(10_000)
  assert.deepEqual([world.pods().length, claims(world).length], [0, 0])
  assert.equal(world.api.list(workloads.volume).length, 0)
})

test("RPT-58 a claim of that name that is not the pod's own is left alone", async (t) => {
  const world = startWorld({ nodes: [] })
  t.after(() => world.stop())
  createClass(world)
  world.api.create(workloads.claim, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'cache-scratch', namespace: 'default' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '9Gi' } } },
  })
  createPod(world)
  await world.settle()
  assert.deepEqual(
    claims(world).map(({ metadata, spec }) => [metadata.ownerReferences, spec.resources?.requests]),
    [[undefined, { storage: '9Gi' }]],
  )
})
