/** Devices that all pods of a gang share (gangs.md 5.2, GNG-34). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { kinds, type Pod, type PodGroup, podGroupKinds, type ResourceClaim } from '@tenon/api'
import { createClass, driver } from '../devices/device-stage.test-support.ts'
import { catalogueOf, openKwok } from '../testing/kwok-stage.test-support.ts'
import { madeClaims } from '../testing/pools.test-support.ts'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'

const types = catalogueOf([
  {
    name: 'gpu',
    architecture: 'amd64',
    operatingSystems: ['linux'],
    resources: { cpu: '8', memory: '32Gi' },
    offerings: [{ zone: 'zone-a', capacityType: 'on-demand', price: 4 }],
    resourceSliceTemplates: [{ driver, pool: 'gpus', devices: [{ name: 'gpu-0' }] }],
  },
])
const podGroupKind = podGroupKinds.kubernetes.find(({ version }) => version === 'v1alpha2')
const entry = { name: 'gpu', resourceClaimTemplateName: 'gpu' }

async function open(t: TestContext): Promise<Stage> {
  const stage = await openKwok(t, { kwok: { instanceTypes: types }, settings: { ignoreDraRequests: false } })
  createClass(stage)
  stage.world.create(kinds.resourceClaimTemplate, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    metadata: { name: 'gpu', namespace: 'default' },
    spec: { spec: { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu' } }] } } },
  })
  return stage
}

function group(stage: Stage, minCount: number, isShared = true): void {
  assert.ok(podGroupKind !== undefined)
  stage.world.create<PodGroup>(podGroupKind, {
    apiVersion: 'scheduling.k8s.io/v1alpha2',
    kind: 'PodGroup',
    metadata: { name: 'train', namespace: 'default' },
    spec: { schedulingPolicy: { gang: { minCount } }, ...(isShared && { resourceClaims: [entry] }) },
  })
}

function members(stage: Stage, count: number, from = 0): void {
  for (let at = from; at < from + count; at++)
    stage.world.create<Pod>(kinds.pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `train-${at}`, namespace: 'default' },
      spec: {
        containers: [{ name: 'main', image: 'main', resources: { requests: { cpu: '1' } } }],
        resourceClaims: [entry],
        schedulingGroup: { podGroupName: 'train' },
      },
    })
}

const claims = (stage: Stage): readonly ResourceClaim[] =>
  stage.world.cluster.server.local.list(kinds.resourceClaim)

const running = (stage: Stage): number =>
  stage.world.pods().filter(({ status }) => status?.phase === 'Running').length

test('GNG-34 four members take the device of the one claim that their group makes', async (t) => {
  const stage = await open(t)
  group(stage, 4)
  members(stage, 4)
  await stage.pass(3 * minutes)
  assert.equal(running(stage), 4)
  assert.equal(madeClaims(stage).length, 1)
  const [claim, ...more] = claims(stage)
  assert.deepEqual(more, [])
  assert.ok(claim !== undefined)
  const [owner] = claim.metadata.ownerReferences ?? []
  assert.deepEqual([owner?.kind, owner?.name], ['PodGroup', 'train'])
  assert.deepEqual(
    claim.status?.reservedFor?.map(({ apiGroup, resource, name }) => [apiGroup, resource, name]),
    [['scheduling.k8s.io', 'podgroups', 'train']],
  )
  assert.ok(podGroupKind !== undefined)
  const { local } = stage.world.cluster.server
  const made = local.get<PodGroup>(podGroupKind, 'default', 'train')?.status?.resourceClaimStatuses
  assert.deepEqual(made, [{ name: 'gpu', resourceClaimName: claim.metadata.name }])
  for (const pod of stage.world.pods())
    assert.deepEqual(pod.status?.resourceClaimStatuses, [
      { name: 'gpu', resourceClaimName: claim.metadata.name },
    ])
})

test('GNG-34 the claim stays as long as the group, and goes with it', async (t) => {
  const stage = await open(t)
  group(stage, 2)
  members(stage, 2)
  await stage.pass(3 * minutes)
  const { local } = stage.world.cluster.server
  local.delete(kinds.pod, 'default', 'train-0', { gracePeriodSeconds: 0 })
  await stage.pass(10 * seconds)
  assert.equal(claims(stage)[0]?.status?.reservedFor?.length, 1)
  members(stage, 1, 2)
  await stage.pass(30 * seconds)
  assert.equal(running(stage), 2)
  assert.equal(claims(stage).length, 1)
  for (const { metadata } of stage.world.pods())
    local.delete(kinds.pod, 'default', metadata.name, { gracePeriodSeconds: 0 })
  assert.ok(podGroupKind !== undefined)
  local.delete(podGroupKind, 'default', 'train')
  await stage.pass(1 * minutes)
  assert.deepEqual(claims(stage), [])
})

test('GNG-34 without an entry in the group each member has a claim and a device of its own', async (t) => {
  const stage = await open(t)
  group(stage, 2, false)
  members(stage, 2)
  await stage.pass(3 * minutes)
  assert.equal(running(stage), 2)
  assert.equal(claims(stage).length, 2)
  assert.equal(madeClaims(stage).length, 2)
})

test('GNG-34 members made before their group share its claim all the same', async (t) => {
  const stage = await open(t)
  members(stage, 3)
  await stage.pass(20 * seconds)
  assert.deepEqual(claims(stage), [])
  group(stage, 3)
  await stage.pass(3 * minutes)
  assert.equal(running(stage), 3)
  assert.equal(claims(stage).length, 1)
})
