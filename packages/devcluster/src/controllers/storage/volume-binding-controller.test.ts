import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Pod } from '@tenon/api'
import { type Claim, type PersistentVolumeObject, workloads } from '../objects/workloads.ts'
import { addNode, startWorld, template, type World } from '../world.test-support.ts'

function createClass(world: World, name: string, volumeBindingMode: string): void {
  world.api.create(workloads.storageClass, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: 'csi.example.com',
    volumeBindingMode,
    reclaimPolicy: 'Delete',
  })
}

function createClaim(world: World, storageClassName: string): void {
  world.api.create(workloads.claim, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'default' },
    spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '5Gi' } } },
  })
}

const claim = (world: World) => world.api.get(workloads.claim, 'default', 'data') as Claim
const volumes = (world: World) => world.api.list<PersistentVolumeObject>(workloads.volume)

test('a claim of an Immediate class is bound at once, and its volume goes with it', async () => {
  const world = startWorld()
  createClass(world, 'fast', 'Immediate')
  createClaim(world, 'fast')
  await world.settle()
  assert.equal(claim(world).status?.phase, 'Bound')
  const [volume] = volumes(world)
  assert.equal(volume?.metadata.name, `pvc-${claim(world).metadata.uid}`)
  assert.equal(volume?.status?.phase, 'Bound')
  assert.equal(volume?.spec.csi?.driver, 'csi.example.com')
  world.restart()
  await world.settle()
  assert.equal(volumes(world).length, 1)
  world.api.delete(workloads.claim, 'default', 'data')
  await world.settle()
  assert.equal(volumes(world).length, 0)
  world.stop()
})

test('a WaitForFirstConsumer claim is bound in the zone of the node its pod got', async () => {
  const world = startWorld({ nodes: [] })
  createClass(world, 'local', 'WaitForFirstConsumer')
  createClaim(world, 'local')
  await world.settle()
  assert.equal(claim(world).status?.phase, 'Pending')
  assert.deepEqual(world.events('WaitForFirstConsumer'), [
    'waiting for first consumer to be created before binding',
  ])
  addNode(world, 'node-a', { labels: { 'topology.kubernetes.io/zone': 'zone-1' } })
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'default' },
    spec: {
      ...template('p').spec,
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
    },
  }
  world.api.create(kinds.pod, pod)
  await world.settle()
  assert.equal(claim(world).status?.phase, 'Bound')
  const terms = volumes(world)[0]?.spec.nodeAffinity?.required?.nodeSelectorTerms
  assert.deepEqual(terms?.[0]?.matchExpressions?.[0]?.values, ['zone-1'])
  world.stop()
})

test('a claim without class takes the smallest volume that is large enough', async () => {
  const world = startWorld()
  for (const [name, storage] of [
    ['small', '1Gi'],
    ['large', '50Gi'],
    ['middle', '10Gi'],
  ] as const) {
    const volume: PersistentVolumeObject = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: {
        capacity: { storage },
        accessModes: ['ReadWriteOnce'],
        storageClassName: '',
        persistentVolumeReclaimPolicy: 'Retain',
        csi: { driver: 'csi.example.com', volumeHandle: name },
      },
    }
    world.api.create(workloads.volume, volume)
  }
  createClaim(world, '')
  await world.settle()
  assert.equal(claim(world).spec.volumeName, 'middle')
  world.api.delete(workloads.claim, 'default', 'data')
  await world.settle()
  const phases = volumes(world).map((volume) => `${volume.metadata.name}: ${volume.status?.phase}`)
  assert.deepEqual(phases, ['large: Available', 'middle: Released', 'small: Available'])
  world.stop()
})
