/** Nodes for pods that claim devices, from the claim to a driver that publishes late (devices.md 3). */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { annotations, type InstanceType, kinds, labels } from '@tenon/api'
import { aType, madeClaims, objectsWithEvent, waitingPod } from '../testing/pools.test-support.ts'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

const driver = 'gpu.example.com'

/** Sells a type with a GPU beside one without, which is cheaper. */
async function openStage(t: TestContext, settings = { ignoreDraRequests: false }): Promise<Stage> {
  const stage = await Stage.open(t, { settings })
  const withGpu: InstanceType = {
    ...aType('with-gpu', 8),
    resourceSliceTemplates: [
      { driver, pool: 'node', devices: [{ name: 'gpu-0', attributes: { model: { string: 'a100' } } }] },
    ],
  }
  stage.cloud.instanceTypes = [aType('medium', 4), withGpu]
  stage.cloud.extras = {
    labels: {
      [labels.os]: 'linux',
      [labels.instanceType]: 'with-gpu',
      [labels.zone]: 'zone-1',
      [labels.capacityType]: 'on-demand',
    },
  }
  stage.world.create(kinds.deviceClass, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'DeviceClass',
    metadata: { name: 'gpu' },
    spec: { selectors: [{ cel: { expression: `device.driver == '${driver}'` } }] },
  })
  return stage
}

function claim(stage: Stage, name: string, expression?: string): void {
  stage.world.create(kinds.resourceClaim, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name, namespace: 'default' },
    spec: {
      devices: {
        requests: [
          {
            name: 'gpu',
            exactly: {
              deviceClassName: 'gpu',
              allocationMode: 'ExactCount',
              count: 1,
              ...(expression !== undefined && { selectors: [{ cel: { expression } }] }),
            },
          },
        ],
      },
    },
  })
}

const using = (resourceClaimName: string) => ({
  spec: { resourceClaims: [{ name: 'gpu', resourceClaimName }] },
})

/** The instance types that a NodeClaim names. */
function typesOf(stage: Stage): readonly (readonly string[] | undefined)[] {
  return madeClaims(stage).map(
    ({ spec }) => spec.requirements.find(({ key }) => key === 'node.kubernetes.io/instance-type')?.values,
  )
}

describe('nodes for pods that claim devices', () => {
  test('BUF-39 a node with the device is launched, which waits for its driver', async (t) => {
    const stage = await openStage(t)
    claim(stage, 'one', `device.attributes['${driver}'].model == 'a100'`)
    waitingPod(stage, 'with-device', using('one'))
    await stage.pass(30 * seconds)
    assert.deepEqual(typesOf(stage), [['with-gpu']])
    assert.equal(madeClaims(stage)[0]?.metadata.annotations?.[annotations.requestedDraDrivers], driver)
    assert.deepEqual(objectsWithEvent(stage, 'FailedScheduling'), [])
    // However long the driver takes, no second node is launched for the pod.
    await stage.pass(3 * minutes)
    assert.equal(madeClaims(stage).length, 1)
  })

  test('BUF-43 a pod whose claim is missing waits, and gets a node once it is there', async (t) => {
    const stage = await openStage(t)
    waitingPod(stage, 'early', using('late'))
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    assert.deepEqual(objectsWithEvent(stage, 'FailedScheduling'), ['Pod/early'])
    claim(stage, 'late')
    await stage.pass(30 * seconds)
    assert.deepEqual(typesOf(stage), [['with-gpu']])
  })

  test('BUF-125 BUF-42 a claim that is still to be made is awaited; one that is not needed is left out', async (t) => {
    const stage = await openStage(t)
    const spec = { resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: 'gpu' }] }
    waitingPod(stage, 'awaiting', { spec })
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    stage.patch(
      kinds.pod,
      'awaiting',
      { status: { resourceClaimStatuses: [{ name: 'gpu' }] } },
      'status',
      'default',
    )
    await stage.pass(30 * seconds)
    assert.equal(madeClaims(stage).length, 1)
    assert.equal(madeClaims(stage)[0]?.metadata.annotations?.[annotations.requestedDraDrivers], undefined)
  })

  test('BUF-44 no node is launched for a device that no type has', async (t) => {
    const stage = await openStage(t)
    claim(stage, 'other', `device.attributes['${driver}'].model == 'h100'`)
    waitingPod(stage, 'refused', using('other'))
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    assert.deepEqual(objectsWithEvent(stage, 'FailedScheduling'), ['Pod/refused'])
  })

  test('BUF-37 where claims are not served a pod with one gets no node', async (t) => {
    const stage = await openStage(t, { ignoreDraRequests: true })
    claim(stage, 'one')
    waitingPod(stage, 'ignored', using('one'))
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    assert.deepEqual(objectsWithEvent(stage, 'FailedScheduling'), ['Pod/ignored'])
  })
})
