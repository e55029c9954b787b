import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { karpenterKinds, kinds, type KubeObject, type Pod, type ResourceType } from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { aDeployment, aKwokPool, deploymentKind, World } from '../world.ts'

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

function policy(kind: string, plural: string) {
  return { group: '', version: 'v1', kind, plural, namespaced: true }
}

test('RPT-59 nodes are sized by what a LimitRange makes pods ask for, and a quota bounds their number', async (t) => {
  const world = await open(t)
  const metadata = { name: 'bounds', namespace: 'default' }
  const limits = [{ type: 'Container', defaultRequest: { cpu: '3', memory: '1Gi' } }]
  const range = { apiVersion: 'v1', kind: 'LimitRange', metadata, spec: { limits } }
  world.create<KubeObject>(policy('LimitRange', 'limitranges'), range)
  const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: { hard: { 'requests.cpu': '7' } } }
  world.create<KubeObject>(policy('ResourceQuota', 'resourcequotas'), quota)
  world.create(deploymentKind, aDeployment('web', 5, {}))
  const running = () => world.pods().filter(({ status }) => status?.phase === 'Running')
  await world.clock.advanceUntil(() => running().length === 2, 5 * minutes)
  await world.clock.advance(1 * minutes)
  assert.deepEqual([running().length, world.pods().length], [2, 2])
  const cpu = world.claims().map(({ spec }) => Number(spec.resources?.requests?.['cpu']))
  assert.equal(
    cpu.reduce((sum, each) => sum + each, 0),
    6,
  )
  const refusals = world.cluster.server.local
    .list(kinds.event)
    .map((event) => (event as KubeObject & { readonly message?: string }).message ?? '')
    .filter((message) => message.includes('exceeded quota: bounds'))
  assert.notEqual(refusals.length, 0)
})

const autoscalerKind: ResourceType = {
  group: 'autoscaling',
  version: 'v2',
  kind: 'HorizontalPodAutoscaler',
  plural: 'horizontalpodautoscalers',
  namespaced: true,
}

test('RPT-57 an autoscaler adds replicas for their usage, and nodes follow', async (t) => {
  const world = await open(t)
  const { local } = world.cluster.server
  world.create(deploymentKind, aDeployment('web', 1, { cpu: '3', memory: '1Gi' }))
  const target = { type: 'Utilization', averageUtilization: 50 }
  world.create<KubeObject>(autoscalerKind, {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      minReplicas: 2,
      maxReplicas: 6,
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target } }],
    },
  } as KubeObject)
  const running = () => world.pods().filter(({ status }) => status?.phase === 'Running').length
  await world.clock.advanceUntil(() => running() === 2, 5 * minutes)
  await world.clock.advance(2 * minutes)
  assert.equal(running(), 2)
  for (const { metadata } of world.pods())
    local.patch(kinds.pod, 'default', metadata.name, {
      metadata: { annotations: { 'tenon.sh/cpu-usage': '150%' } },
    })
  await world.clock.advanceUntil(() => running() === 6, 5 * minutes)
  assert.equal(running(), 6)
  const cpu = world.claims().map(({ spec }) => Number(spec.resources?.requests?.['cpu']))
  assert.equal(
    cpu.reduce((sum, each) => sum + each, 0),
    18,
  )
})
