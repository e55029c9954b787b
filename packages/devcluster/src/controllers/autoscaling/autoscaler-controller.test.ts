import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { kinds, type KubeObject, type ResourceType } from '@tenon/api'
import { findCondition } from '../objects/conditions.ts'
import { isActive } from '../objects/pods.ts'
import { type Autoscaler, type MetricSpec, workloads } from '../objects/workloads.ts'
import { startWorld, template, type World } from '../world.test-support.ts'

const minutes = 60_000
const requests = { cpu: '200m', memory: '100Mi' }

function open(t: TestContext): World {
  const world = startWorld()
  t.after(() => world.stop())
  return world
}

/** A Deployment whose pods use what the annotations of their template say. */
function deploy(world: World, replicas: number, usage: Readonly<Record<string, string>> = {}): void {
  const { metadata, spec } = template('web')
  const [container] = spec.containers
  world.api.create(workloads.deployment, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: metadata.labels },
      template: {
        metadata: { ...metadata, annotations: usage },
        spec: { containers: [{ ...container, name: 'main', resources: { requests } }] },
      },
    },
  })
}

function autoscale(world: World, spec: Partial<Autoscaler['spec']> = {}): void {
  world.api.create<Autoscaler>(workloads.autoscaler, {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      maxReplicas: 20,
      ...spec,
    },
  })
}

const cpu = (averageUtilization: number): MetricSpec => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
})
const replicas = (world: World) => world.api.get(workloads.deployment, 'default', 'web')?.spec.replicas
const autoscaler = (world: World) => world.api.get(workloads.autoscaler, 'default', 'web') as Autoscaler
const condition = (world: World, type: string) => {
  const found = findCondition(autoscaler(world).status?.conditions, type)
  return `${found?.status} ${found?.reason}`
}

/** All pods use so much from now on. */
function use(world: World, usage: string): void {
  for (const { metadata } of world.pods().filter(isActive))
    world.api.patch(kinds.pod, 'default', metadata.name, {
      metadata: { annotations: { 'tenon.sh/cpu-usage': usage } },
    })
}

test('RPT-57 the target has minReplicas at least, within a sync period, and maxReplicas at most', async (t) => {
  const world = open(t)
  deploy(world, 1)
  autoscale(world, { minReplicas: 3, maxReplicas: 5 })
  await world.settle(15_000)
  assert.equal(replicas(world), 3)
  assert.deepEqual(world.events('SuccessfulRescale'), [
    'New size: 3; reason: Current number of replicas below Spec.MinReplicas',
  ])
  world.api.patch(workloads.deployment, 'default', 'web', { spec: { replicas: 9 } })
  await world.settle(15_000)
  assert.equal(replicas(world), 5)
})

test('RPT-57 utilization above its target adds replicas, in proportion', async (t) => {
  const world = open(t)
  deploy(world, 4)
  autoscale(world, { metrics: [cpu(50)] })
  await world.settle(1 * minutes)
  assert.equal(replicas(world), 4)
  use(world, '90%')
  await world.settle(15_000)
  assert.equal(replicas(world), 8)
  const { status } = autoscaler(world)
  assert.equal(condition(world, 'ScalingActive'), 'True ValidMetricFound')
  assert.equal(condition(world, 'AbleToScale').split(' ')[0], 'True')
  assert.ok(status?.lastScaleTime)
  assert.deepEqual(status.currentMetrics, [
    {
      type: 'Resource',
      resource: { name: 'cpu', current: { averageUtilization: 90, averageValue: '180m' } },
    },
  ])
  assert.match(
    world.events('SuccessfulRescale')[0] ?? '',
    /^New size: 8; reason: cpu resource utilization \(percentage of request\) above target$/,
  )
})

test('RPT-57 within the tolerance nothing is scaled, and behavior may narrow it', async (t) => {
  const world = open(t)
  deploy(world, 10, { 'tenon.sh/cpu-usage': '54%' })
  autoscale(world, { metrics: [cpu(50)] })
  await world.settle(2 * minutes)
  assert.equal(replicas(world), 10)
  world.api.patch(workloads.autoscaler, 'default', 'web', {
    spec: { behavior: { scaleUp: { tolerance: '50m' } } },
  })
  await world.settle(5_000)
  assert.equal(replicas(world), 11)
})

test('RPT-57 replicas go down only after the stabilization window', async (t) => {
  const world = open(t)
  deploy(world, 8, { 'tenon.sh/cpu-usage': '60%' })
  autoscale(world, { minReplicas: 2, metrics: [cpu(60)] })
  await world.settle(2 * minutes)
  use(world, '15%')
  await world.settle(4 * minutes)
  assert.equal(replicas(world), 8)
  assert.equal(condition(world, 'AbleToScale'), 'True ScaleDownStabilized')
  await world.settle(2 * minutes)
  assert.equal(replicas(world), 2)
})

test('RPT-57 policies bound the rate, selectPolicy chooses among them, Disabled stops', async (t) => {
  const world = open(t)
  deploy(world, 4, { 'tenon.sh/cpu-usage': '500%' })
  const pods = { type: 'Pods', value: 1, periodSeconds: 60 } as const
  const percent = { type: 'Percent', value: 100, periodSeconds: 60 } as const
  const scaleUp = { policies: [pods, percent], selectPolicy: 'Min' } as const
  autoscale(world, { metrics: [cpu(50)], behavior: { scaleUp } })
  await world.settle(40_000)
  assert.equal(replicas(world), 5)
  assert.equal(condition(world, 'ScalingLimited'), 'True ScaleUpLimit')
  await world.settle(65_000)
  assert.equal(replicas(world), 6)
  const behavior = { scaleUp: { selectPolicy: 'Disabled' } }
  world.api.patch(workloads.autoscaler, 'default', 'web', { spec: { behavior } })
  await world.settle(5 * minutes)
  assert.equal(replicas(world), 6)
})

test('RPT-57 of several metrics the one that asks for most counts; values and memory do too', async (t) => {
  const world = open(t)
  deploy(world, 2, { 'tenon.sh/cpu-usage': '100m', 'tenon.sh/memory-usage': '150Mi' })
  const memory: MetricSpec = {
    type: 'Resource',
    resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '50Mi' } },
  }
  await world.settle(1 * minutes)
  autoscale(world, { metrics: [cpu(50), memory] })
  await world.settle(5_000)
  assert.equal(replicas(world), 6)
  assert.deepEqual(world.events('SuccessfulRescale'), ['New size: 6; reason: memory resource above target'])
})

test('RPT-57 without a metric that can be read nothing is scaled, and a condition says why', async (t) => {
  const world = open(t)
  deploy(world, 2)
  const external = {
    type: 'External',
    external: { metric: { name: 'queue' }, target: { type: 'Value', value: '1' } },
  }
  autoscale(world, { metrics: [external as MetricSpec] })
  await world.settle(1 * minutes)
  assert.equal(replicas(world), 2)
  assert.equal(condition(world, 'ScalingActive'), 'False FailedGetExternalMetric')
  world.api.delete(workloads.deployment, 'default', 'web')
  await world.settle(1 * minutes)
  assert.equal(condition(world, 'AbleToScale'), 'False FailedGetScale')
})

test('RPT-57 a target of no replicas is left alone', async (t) => {
  const world = open(t)
  deploy(world, 0)
  autoscale(world, { minReplicas: 2 })
  await world.settle(1 * minutes)
  assert.equal(replicas(world), 0)
  assert.equal(condition(world, 'ScalingActive'), 'False ScalingDisabled')
})

test('RPT-57 custom resources with a scale subresource are scaled', async (t) => {
  const world = open(t)
  const group = 'games.example.com'
  world.api.create(workloads.customResourceDefinition, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `fleets.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind: 'Fleet', plural: 'fleets', singular: 'fleet' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          },
          subresources: {
            status: {},
            scale: {
              specReplicasPath: '.spec.size',
              statusReplicasPath: '.status.size',
              labelSelectorPath: '.status.selector',
            },
          },
        },
      ],
    },
  } as KubeObject)
  await world.settle(1000)
  const fleet: ResourceType = { group, version: 'v1', kind: 'Fleet', plural: 'fleets', namespaced: true }
  world.api.create(fleet, {
    apiVersion: `${group}/v1`,
    kind: 'Fleet',
    metadata: { name: 'arena', namespace: 'default' },
    spec: { size: 1 },
  } as KubeObject)
  const scaleTargetRef = { apiVersion: `${group}/v1`, kind: 'Fleet', name: 'arena' }
  autoscale(world, { scaleTargetRef, minReplicas: 4 })
  await world.settle(15_000)
  const found = world.api.get(fleet, 'default', 'arena') as KubeObject & { readonly spec: { size: number } }
  assert.equal(found.spec.size, 4)
})
