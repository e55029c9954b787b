import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { karpenterKinds, kinds, type KubeObject, type Pod } from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { aKwokPool, World } from '../world.ts'

const minutes = 60_000

/** A fresh cluster with a pool, as `npm start` gives it, and Tenon at work. */
async function open(t: TestContext): Promise<World> {
  const world = await World.start({ seed: 1, provider: 'kwok' })
  t.after(() => world.stop())
  world.create(kwokNodeClassKind, {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
  })
  world.create(karpenterKinds.nodePool, aKwokPool())
  await world.startOperator()
  return world
}

function aPod(name: string, spec: Partial<Pod['spec']> = {}): Pod {
  const resources = { requests: { cpu: '500m' } }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { containers: [{ name: 'app', image: 'app:1', resources }], ...spec },
  }
}

const phase = (world: World, name: string) =>
  world.pods().find(({ metadata }) => metadata.name === name)?.status?.phase

const claimSpec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }

test('RPT-61 a claim without a class binds on a fresh cluster, where its pod runs', async (t) => {
  const world = await open(t)
  const { local } = world.cluster.server
  local.create<KubeObject>(kinds.persistentVolumeClaim, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'default' },
    spec: claimSpec,
  } as KubeObject)
  world.create(
    kinds.pod,
    aPod('db', { volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'data' } }] }),
  )
  await world.clock.advanceUntil(() => phase(world, 'db') === 'Running', 5 * minutes)
  assert.equal(phase(world, 'db'), 'Running')
  const claim = local.get(kinds.persistentVolumeClaim, 'default', 'data')
  assert.equal(claim?.spec.storageClassName, 'exoscale-sbs')
  assert.equal(claim.status?.phase, 'Bound')
})

test('RPT-58 a pod with a generic ephemeral volume gets a node, and its claim ends with it', async (t) => {
  const world = await open(t)
  const { local } = world.cluster.server
  const ephemeral = { volumeClaimTemplate: { spec: claimSpec } }
  world.create(kinds.pod, aPod('cache', { volumes: [{ name: 'scratch', ephemeral }] }))
  await world.clock.advanceUntil(() => phase(world, 'cache') === 'Running', 5 * minutes)
  assert.equal(phase(world, 'cache'), 'Running')
  assert.equal(local.get(kinds.persistentVolumeClaim, 'default', 'cache-scratch')?.status?.phase, 'Bound')
  local.delete(kinds.pod, 'default', 'cache')
  await world.clock.advance(1 * minutes)
  assert.deepEqual(local.list(kinds.persistentVolumeClaim), [])
})
