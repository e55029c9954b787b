/** Pods with devices from a template to the end, in a whole cluster: controllers, scheduler, kubelets and drivers. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { annotations, type DeviceClaim, kinds } from '@tenon/api'
import { madeClaims } from '../testing/pools.test-support.ts'
import { catalogueOf, openKwok, pod, type PodParts, simulate } from '../testing/kwok-stage.test-support.ts'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { createClass, driver } from './device-stage.test-support.ts'

const offerings = [{ zone: 'zone-a', capacityType: 'on-demand', price: 1 }]
const models = ['a100', 'h100', 'l4', 'l4']

const types = catalogueOf([
  {
    name: 'plain',
    architecture: 'amd64',
    operatingSystems: ['linux'],
    resources: { cpu: '8', memory: '32Gi' },
    offerings,
  },
  {
    name: 'gpu',
    architecture: 'amd64',
    operatingSystems: ['linux'],
    resources: { cpu: '8', memory: '32Gi' },
    offerings: [{ ...offerings[0], price: 4 }],
    resourceSliceTemplates: [
      {
        driver,
        pool: 'gpus',
        devices: models.map((model, index) => ({
          name: `gpu-${index}`,
          attributes: { model: { string: model } },
        })),
      },
    ],
  },
])

async function open(t: TestContext, extendedResourceName?: string): Promise<Stage> {
  const stage = await openKwok(t, { kwok: { instanceTypes: types }, settings: { ignoreDraRequests: false } })
  createClass(stage, extendedResourceName)
  return stage
}

const cel = (model: string) => ({
  selectors: [{ cel: { expression: `device.attributes['${driver}'].model == '${model}'` } }],
})

/** A template whose claims ask for this. */
function template(stage: Stage, name: string, devices: DeviceClaim): void {
  stage.world.create(kinds.resourceClaimTemplate, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    metadata: { name, namespace: 'default' },
    spec: { spec: { devices } },
  })
}

const whole: DeviceClaim = { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu' } }] }
const bySelector: DeviceClaim = {
  requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu', ...cel('h100') } }],
}
const oneOf: DeviceClaim = {
  requests: [
    {
      name: 'gpu',
      firstAvailable: [
        { name: 'best', deviceClassName: 'gpu', ...cel('b200') },
        { name: 'old', deviceClassName: 'gpu', ...cel('l4') },
      ],
    },
  ],
}

/** A pod with a claim of each template. */
function claiming(stage: Stage, name: string, ...templates: readonly string[]): void {
  const resourceClaims = templates.map((each) => ({ name: each, resourceClaimTemplateName: each }))
  pod(stage, name, { resourceClaims })
}

const claims = (stage: Stage) => stage.world.cluster.server.local.list(kinds.resourceClaim)
const phases = (stage: Stage, ...names: readonly string[]) =>
  names.map((name) => stage.podNow(name)?.status?.phase)
const devices = (stage: Stage) =>
  claims(stage)
    .flatMap(({ status }) => status?.allocation?.devices?.results ?? [])
    .map(({ request, device }) => `${request} ${device}`)
    .toSorted((a, b) => (a < b ? -1 : 1))

describe('devices in a whole cluster', () => {
  test('pods with claims of three kinds get one node and run, although its driver is late', async (t) => {
    const stage = await open(t)
    await simulate(stage, { 'device-delay': '2m' })
    for (const [name, claim] of [
      ['whole', whole],
      ['selected', bySelector],
      ['any', oneOf],
    ] as const) {
      template(stage, name, claim)
      claiming(stage, name, name)
    }
    await stage.pass(90 * seconds)
    assert.equal(madeClaims(stage).length, 1)
    assert.deepEqual(phases(stage, 'whole', 'selected', 'any'), ['Pending', 'Pending', 'Pending'])
    const [made] = madeClaims(stage)
    assert.equal(made?.metadata.annotations?.[annotations.requestedDraDrivers], driver)
    assert.equal(stage.state(made.metadata.name, 'Initialized'), 'Unknown/DRADriverPoolsNotPublished')
    await stage.pass(2 * minutes)
    assert.equal(stage.state(made.metadata.name, 'Initialized'), 'True/Initialized')
    assert.deepEqual(phases(stage, 'whole', 'selected', 'any'), ['Running', 'Running', 'Running'])
    assert.equal(madeClaims(stage).length, 1)
    const [first, second, third] = devices(stage)
    assert.deepEqual([first, third], ['gpu gpu-0', 'gpu/old gpu-2'])
    assert.equal(second, 'gpu gpu-1')
  })

  test('devices that a pod leaves are used again; what is missing gets another node', async (t) => {
    const stage = await open(t)
    template(stage, 'whole', whole)
    const names = ['p1', 'p2', 'p3', 'p4']
    for (const name of names) claiming(stage, name, 'whole')
    await stage.pass(2 * minutes)
    assert.deepEqual(
      phases(stage, ...names),
      names.map(() => 'Running'),
    )
    assert.equal(madeClaims(stage).length, 1)
    stage.world.cluster.server.local.delete(kinds.pod, 'default', 'p1')
    await stage.pass(minutes)
    assert.equal(claims(stage).length, 3)
    claiming(stage, 'p5', 'whole')
    await stage.pass(minutes)
    assert.deepEqual(phases(stage, 'p5'), ['Running'])
    assert.equal(madeClaims(stage).length, 1)
    claiming(stage, 'p6', 'whole')
    await stage.pass(2 * minutes)
    assert.deepEqual(phases(stage, 'p6'), ['Running'])
    assert.equal(madeClaims(stage).length, 2)
  })
})

describe('extended resources that devices serve, in a whole cluster', () => {
  const resource = 'example.com/gpu'
  const asking = (stage: Stage, name: string, count = 1, parts: PodParts = {}) => {
    pod(stage, name, { requests: { cpu: '1', memory: '1Gi', [resource]: String(count) }, ...parts })
  }

  test('VER-10 VER-17 a pod gets one node, which waits for its driver, and runs on its devices', async (t) => {
    const stage = await open(t, resource)
    await simulate(stage, { 'device-delay': '2m' })
    asking(stage, 'training', 2)
    await stage.pass(90 * seconds)
    const [made] = madeClaims(stage)
    assert.equal(madeClaims(stage).length, 1)
    assert.equal(made?.metadata.annotations?.[annotations.requestedDraDrivers], driver)
    assert.equal(stage.state(made.metadata.name, 'Initialized'), 'Unknown/DRADriverPoolsNotPublished')
    await stage.pass(2 * minutes)
    assert.equal(stage.state(made.metadata.name, 'Initialized'), 'True/Initialized')
    assert.deepEqual(phases(stage, 'training'), ['Running'])
    assert.equal(madeClaims(stage).length, 1)
    assert.deepEqual(devices(stage), ['container-0-request-1 gpu-0', 'container-0-request-1 gpu-1'])
    const [special] = claims(stage)
    assert.equal(
      stage.podNow('training')?.status?.extendedResourceClaimStatus?.resourceClaimName,
      special?.metadata.name,
    )
    assert.equal(claims(stage).length, 1)
  })

  test('VER-18 others fit the node beside it, and what a pod leaves is used again', async (t) => {
    const stage = await open(t, resource)
    asking(stage, 'first', 4)
    await stage.pass(2 * minutes)
    pod(stage, 'plain')
    await stage.pass(30 * seconds)
    assert.deepEqual(phases(stage, 'first', 'plain'), ['Running', 'Running'])
    assert.equal(madeClaims(stage).length, 1)
    stage.world.cluster.server.local.delete(kinds.pod, 'default', 'first')
    await stage.pass(minutes)
    assert.equal(claims(stage).length, 0)
    asking(stage, 'second', 4)
    await stage.pass(minutes)
    assert.deepEqual(phases(stage, 'second'), ['Running'])
    assert.equal(madeClaims(stage).length, 1)
  })

  test('VER-20 without the class no node is launched, and what runs goes on; re-created, it is served', async (t) => {
    const stage = await open(t, resource)
    asking(stage, 'first', 4)
    await stage.pass(2 * minutes)
    stage.world.cluster.server.local.delete(kinds.deviceClass, undefined, 'gpu')
    await stage.pass(seconds)
    asking(stage, 'second')
    pod(stage, 'plain')
    await stage.pass(2 * minutes)
    assert.equal(madeClaims(stage).length, 1)
    assert.deepEqual(phases(stage, 'first', 'second', 'plain'), ['Running', 'Pending', 'Running'])
    const told = stage.events('FailedScheduling').filter(({ object }) => object === 'Pod/second')
    assert.ok(told.some(({ message }) => message.includes(resource)))
    createClass(stage, resource)
    await stage.pass(2 * minutes)
    assert.equal(madeClaims(stage).length, 2)
    assert.deepEqual(phases(stage, 'second'), ['Running'])
  })
})
