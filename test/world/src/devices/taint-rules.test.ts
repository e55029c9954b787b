/** Rules that taint devices, in a whole cluster (devices.md 3.21). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  type DeviceTaintRule,
  deviceTaintRuleKinds,
  kinds,
  type KubeObject,
  type ResourceType,
} from '@tenon/api'
import { madeClaims, objectsWithEvent } from '../testing/pools.test-support.ts'
import { catalogueOf, openKwok } from '../testing/kwok-stage.test-support.ts'
import { minutes, type Stage } from '../testing/stage.test-support.ts'
import { createClass, driver } from './device-stage.test-support.ts'

const deployment: ResourceType = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
}
const types = catalogueOf([
  {
    name: 'gpu',
    architecture: 'amd64',
    operatingSystems: ['linux'],
    resources: { cpu: '8', memory: '32Gi' },
    offerings: [{ zone: 'zone-a', capacityType: 'on-demand', price: 4 }],
    resourceSliceTemplates: [{ driver, pool: 'gpus', devices: [{ name: 'gpu-0' }, { name: 'gpu-1' }] }],
  },
])

/** A Deployment of pods that each claim a GPU. */
async function open(t: TestContext, replicas: number): Promise<Stage> {
  const stage = await openKwok(t, { kwok: { instanceTypes: types }, settings: { ignoreDraRequests: false } })
  createClass(stage)
  const labels = { app: 'training' }
  stage.world.create(kinds.resourceClaimTemplate, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    metadata: { name: 'gpu', namespace: 'default' },
    spec: { spec: { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu' } }] } } },
  })
  const object: KubeObject & { readonly spec: object } = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'training', namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [{ name: 'main', image: 'main', resources: { requests: { cpu: '1' } } }],
          resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: 'gpu' }],
        },
      },
    },
  }
  stage.world.create(deployment, object)
  return stage
}

function taint(
  stage: Stage,
  deviceSelector: NonNullable<DeviceTaintRule['spec']['deviceSelector']>,
  effect: DeviceTaintRule['spec']['taint']['effect'],
): void {
  stage.world.create(deviceTaintRuleKinds.v1beta2, {
    apiVersion: 'resource.k8s.io/v1beta2',
    kind: 'DeviceTaintRule',
    metadata: { name: 'broken' },
    spec: { deviceSelector, taint: { key: 'broken', effect } },
  })
}

const running = (stage: Stage) =>
  stage.world.cluster.server.local
    .list(kinds.pod)
    .filter(({ status, metadata }) => status?.phase === 'Running' && metadata.deletionTimestamp === undefined)
    .map(({ spec }) => spec.nodeName ?? '')

test('while a rule taints all devices of a driver no node is launched for them', async (t) => {
  const stage = await open(t, 1)
  taint(stage, { driver }, 'NoSchedule')
  await stage.pass(2 * minutes)
  assert.equal(madeClaims(stage).length, 0)
  assert.match(objectsWithEvent(stage, 'FailedScheduling').join(), /Pod\/training/)
  stage.world.cluster.server.local.delete(deviceTaintRuleKinds.v1beta2, undefined, 'broken')
  await stage.pass(2 * minutes)
  assert.equal(madeClaims(stage).length, 1)
  assert.equal(running(stage).length, 1)
})

test('pods on a pool that a rule taints with NoExecute move to one new node', async (t) => {
  const stage = await open(t, 2)
  await stage.pass(2 * minutes)
  const [first] = madeClaims(stage)
  const [node = ''] = running(stage)
  assert.deepEqual(running(stage), [node, node])
  taint(stage, { driver, pool: `${node}/gpus` }, 'NoExecute')
  await stage.pass(3 * minutes)
  const now = running(stage)
  assert.equal(now.length, 2)
  assert.ok(!now.includes(node), `${now.join()} are not on ${node}`)
  const launched = madeClaims(stage).filter(({ metadata }) => metadata.name !== first?.metadata.name)
  assert.equal(launched.length, 1)
  const rule = stage.world.cluster.server.local.get(deviceTaintRuleKinds.v1beta2, undefined, 'broken')
  assert.match(rule?.status?.conditions?.[0]?.message ?? '', /2 pods evicted since starting the controller/)
})
