/** Nodes with devices that give way to cheaper ones (devices.md 3.18). */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { annotations, kinds, labels } from '@tenon/api'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { aType, madeClaims } from '../testing/pools.test-support.ts'
import {
  aNodeOf,
  consolidate,
  joinReplacements,
  openReplacing,
  running,
  untilBegun,
} from '../disruption/replacing-stage.test-support.ts'
import { tainted } from '../disruption/disruption-stage.test-support.ts'
import {
  allocate,
  createClaim,
  createClass,
  driver,
  forPod,
  gpuType,
  publish,
  using,
} from './device-stage.test-support.ts'

const plain = aType('plain', 2)
const one = gpuType('one-gpu', 4, 1)
const two = gpuType('two-gpus', 8, 2)
const four = gpuType('four-gpus', 16, 4)

async function open(
  t: TestContext,
  types = [plain, one, two, four],
  extendedResourceName?: string,
): Promise<Stage> {
  const stage = await openReplacing(t, { types, settings: { ignoreDraRequests: false } })
  createClass(stage, extendedResourceName)
  return stage
}

/** A node of the type whose driver has published its devices. */
async function aNodeWith(stage: Stage, name: string, type: ReturnType<typeof gpuType>): Promise<void> {
  await aNodeOf(stage, name, type)
  publish(stage, `node-${name}`, type.resourceSliceTemplates?.[0]?.devices ?? [])
  await stage.pass(seconds)
}

/** A pod that runs on a node with a device of it. */
async function withDevice(stage: Stage, pod: string, node: string, device: string): Promise<void> {
  createClaim(stage, pod)
  await running(stage, pod, node, '1', { spec: using(pod) })
  allocate(stage, pod, [node, device], [forPod(stage, pod)])
  await stage.pass(seconds)
}

const resource = 'example.com/gpu'

/** A pod that runs on a node with a device for its extended resource. */
async function withExtended(stage: Stage, pod: string, node: string, device: string): Promise<void> {
  const requests = { cpu: '1', [resource]: '1' }
  const containers = [{ name: 'app', image: 'app', resources: { requests, limits: { [resource]: '1' } } }]
  await running(stage, pod, node, '1', { spec: { containers } })
  const claim = `${pod}-extended-resources-x`
  createClaim(stage, claim)
  allocate(stage, claim, [node, device], [forPod(stage, pod)])
  const requestMappings = [{ containerName: 'app', resourceName: resource, requestName: 'gpu' }]
  const extendedResourceClaimStatus = { resourceClaimName: claim, requestMappings }
  stage.patch(kinds.pod, pod, { status: { extendedResourceClaimStatus } }, 'status', 'default')
  await stage.pass(seconds)
}

const madeTypes = (stage: Stage) =>
  madeClaims(stage).map(
    ({ spec }) => spec.requirements.find(({ key }) => key === labels.instanceType)?.values,
  )

describe('consolidation with devices', () => {
  test('BUF-89 DIS-165 the device of a candidate is found again on a cheaper node, and the plain one is none', async (t) => {
    const stage = await open(t)
    await aNodeWith(stage, 'a', four)
    await withDevice(stage, 'p', 'node-a', 'gpu-2')
    consolidate(stage)
    assert.deepEqual(await untilBegun(stage), ['a'])
    assert.deepEqual(madeTypes(stage), [['one-gpu', 'two-gpus']])
    assert.equal(madeClaims(stage)[0]?.metadata.annotations?.[annotations.requestedDraDrivers], driver)
    // The node with the pod stays until the driver of the new one has published.
    await joinReplacements(stage)
    await stage.pass(30 * seconds)
    assert.equal(stage.isLeaving('p'), false)
    publish(stage, `node-${madeClaims(stage)[0]?.metadata.name}`, [{ name: 'gpu-0' }])
    await stage.pass(30 * seconds)
    assert.equal(stage.isLeaving('p'), true)
  })

  test('BUF-89 DIS-165 a node stays whose device is found nowhere else', async (t) => {
    const stage = await open(t, [plain, four])
    await aNodeWith(stage, 'a', four)
    await withDevice(stage, 'p', 'node-a', 'gpu-0')
    consolidate(stage)
    await stage.pass(3 * minutes)
    assert.deepEqual([tainted(stage), madeTypes(stage)], [[], []])
  })

  test('VER-19 devices of an extended resource are found again on a cheaper node', async (t) => {
    const stage = await open(t, undefined, resource)
    await aNodeWith(stage, 'a', four)
    await withExtended(stage, 'p', 'node-a', 'gpu-2')
    consolidate(stage)
    assert.deepEqual(await untilBegun(stage), ['a'])
    assert.deepEqual(madeTypes(stage), [['one-gpu', 'two-gpus']])
    assert.equal(madeClaims(stage)[0]?.metadata.annotations?.[annotations.requestedDraDrivers], driver)
  })

  test('VER-19 a node stays whose devices of an extended resource are found nowhere else', async (t) => {
    const stage = await open(t, [plain, four], resource)
    await aNodeWith(stage, 'a', four)
    await withExtended(stage, 'p', 'node-a', 'gpu-0')
    consolidate(stage)
    await stage.pass(3 * minutes)
    assert.deepEqual([tainted(stage), madeTypes(stage)], [[], []])
  })

  test('BUF-90 DIS-165 a device that a live pod has elsewhere is not taken; a free one is', async (t) => {
    const stage = await open(t, [plain, four])
    for (const name of ['a', 'b']) await aNodeWith(stage, name, four)
    await withDevice(stage, 'p', 'node-a', 'gpu-0')
    await aPodWithAll(stage, 'q', 'node-b', 4)
    consolidate(stage)
    await stage.pass(3 * minutes)
    assert.deepEqual([tainted(stage), madeTypes(stage)], [[], []])
    // One device of node-b becomes free.
    allocate(stage, 'q-3', undefined)
    assert.deepEqual(await untilBegun(stage, 3 * minutes), ['a'])
    assert.deepEqual(madeTypes(stage), [])
  })

  test('DIS-165 two candidates merge onto one cheaper node with both their devices', async (t) => {
    const large = gpuType('large', 16, 1)
    const stage = await open(t, [plain, two, large])
    for (const name of ['a', 'b']) {
      await aNodeWith(stage, name, large)
      await withDevice(stage, `on-${name}`, `node-${name}`, 'gpu-0')
    }
    consolidate(stage)
    assert.deepEqual(await untilBegun(stage), ['a', 'b'])
    assert.deepEqual(madeTypes(stage), [['two-gpus']])
  })

  test('DIS-165 of a device that pods share only the part of the candidate is free', async (t) => {
    const stage = await open(t, [plain, four])
    const shared = {
      name: 'gpu-0',
      allowMultipleAllocations: true,
      capacity: { memory: { value: '16Gi' } },
    }
    await aNodeOf(stage, 'a', plain)
    await aNodeOf(stage, 'b', plain)
    // In the network, where every node reaches it.
    stage.world.create(kinds.resourceSlice, {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceSlice',
      metadata: { name: 'network' },
      spec: {
        driver,
        pool: { name: 'network', generation: 1, resourceSliceCount: 1 },
        allNodes: true,
        devices: [shared],
      },
    })
    const part = async (pod: string, node: string, memory: string) => {
      createClaim(stage, pod, { capacity: { requests: { memory } } })
      await running(stage, pod, node, '500m', { spec: using(pod) })
      allocate(stage, pod, ['network', 'gpu-0'], [forPod(stage, pod)], { memory })
    }
    await part('p', 'node-a', '10Gi')
    await part('q', 'node-b', '6Gi')
    await stage.pass(seconds)
    consolidate(stage)
    // Each pod's part fits beside the other's once more, on the other's node.
    assert.equal((await untilBegun(stage)).length, 1)
    assert.deepEqual(madeTypes(stage), [])
  })
})

/** A pod with several claims of one device each. */
async function aPodWithAll(stage: Stage, pod: string, node: string, count: number): Promise<void> {
  const names = Array.from({ length: count }, (_, index) => `${pod}-${index}`)
  for (const name of names) createClaim(stage, name)
  const resourceClaims = names.map((name) => ({ name, resourceClaimName: name }))
  await running(stage, pod, node, '15', { spec: { resourceClaims } })
  for (const [index, name] of names.entries())
    allocate(stage, name, [node, `gpu-${index}`], [forPod(stage, pod)])
  await stage.pass(seconds)
}
