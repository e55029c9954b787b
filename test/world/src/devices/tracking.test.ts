/** What of the devices is in use, as claims come and change (devices.md 3.3, 3.4). */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { kinds, labels } from '@tenon/api'
import { aType, madeClaims, objectsWithEvent, waitingPod } from '../testing/pools.test-support.ts'
import { type Interception, minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'
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

const settings = { ignoreDraRequests: false }

async function open(
  t: TestContext,
  types = [aType('medium', 4)],
  decide: Interception = () => 'pass',
): Promise<Stage> {
  const stage = await Stage.open(t, { settings, idle: true, apiPath: intercepting(decide) })
  stage.cloud.instanceTypes = types
  createClass(stage)
  await stage.start()
  return stage
}

/** A device that every node reaches. */
function publishInNetwork(stage: Stage, devices: readonly string[], owner?: string): void {
  stage.world.create(kinds.resourceSlice, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: {
      name: 'network',
      ...(owner !== undefined && {
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: owner, uid: 'unknown' }],
      }),
    },
    spec: {
      driver,
      pool: { name: 'network', generation: 1, resourceSliceCount: 1 },
      allNodes: true,
      devices: devices.map((name) => ({ name })),
    },
  })
}

/** A claim that has the device, reserved for whom the test says. */
function heldBy(stage: Stage, claim: string, reservedFor: Parameters<typeof allocate>[3]): void {
  createClaim(stage, claim)
  allocate(stage, claim, ['network', 'gpu-0'], reservedFor)
}

describe('devices in use', () => {
  test('BUF-47 a slice that an unknown node owns gives nothing', async (t) => {
    const stage = await open(t)
    publishInNetwork(stage, ['gpu-0'], 'gone')
    createClaim(stage, 'one')
    waitingPod(stage, 'p', { spec: using('one') })
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    assert.deepEqual(objectsWithEvent(stage, 'FailedScheduling'), ['Pod/p'])
  })

  test('BUF-92 a device is free once no claim has it any more', async (t) => {
    const stage = await open(t)
    publishInNetwork(stage, ['gpu-0'])
    const others = [{ apiGroup: 'example.com', resource: 'jobs', name: 'job', uid: 'job' }]
    for (const name of ['first', 'second']) heldBy(stage, name, others)
    createClaim(stage, 'one')
    waitingPod(stage, 'p', { spec: using('one') })
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    allocate(stage, 'first', undefined)
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    allocate(stage, 'second', undefined)
    await stage.pass(30 * seconds)
    assert.equal(madeClaims(stage).length, 1)
  })

  for (const isForPodsAlone of [false, true])
    test(`BUF-93 the device of a pod that leaves is free when its claim is for pods alone: ${isForPodsAlone}`, async (t) => {
      // The pod must move, and is kept where it is for the time being.
      const stage = await open(t, [aType('medium', 4), aType('large', 8)], (_, path) =>
        path.endsWith('/eviction') ? 'error' : 'pass',
      )
      publishInNetwork(stage, ['gpu-0'])
      await stage.ready('a')
      await stage.pod('p', 'node-a', { spec: using('held') })
      const other = { apiGroup: 'example.com', resource: 'jobs', name: 'job', uid: 'job' }
      heldBy(stage, 'held', [other, forPod(stage, 'p')])
      createClaim(stage, 'one')
      waitingPod(stage, 'waiting', { cpu: '6', spec: using('one') })
      await stage.pass(30 * seconds)
      assert.equal(objectsWithEvent(stage, 'FailedScheduling').includes('Pod/waiting'), true)
      if (isForPodsAlone) allocate(stage, 'held', ['network', 'gpu-0'], [forPod(stage, 'p')])
      await stage.deleteClaim('a')
      await stage.pass(minutes)
      assert.equal(launchesLarge(stage), isForPodsAlone)
    })

  test('BUF-91 nothing is decided before every claim is known', async (t) => {
    let isOpen = false
    const stage = await Stage.open(t, {
      settings,
      idle: true,
      apiPath: intercepting((method, path) =>
        !isOpen && method === 'GET' && path.includes('/resourceclaims') ? 'error' : 'pass',
      ),
    })
    stage.cloud.instanceTypes = [aType('medium', 4)]
    waitingPod(stage, 'plain')
    const openedAt = stage.now + 30 * seconds
    stage.world.clock.after(30 * seconds, () => {
      isOpen = true
    })
    await stage.start()
    await stage.pass(30 * seconds)
    const [made] = madeClaims(stage)
    assert.ok(Date.parse(made?.metadata.creationTimestamp ?? '') >= openedAt)
  })
})

describe('daemons with devices', () => {
  for (const [ignoreDraRequests, isEnough] of [
    [true, true],
    [false, false],
  ] as const)
    test(`BUF-38 the requests of a DaemonSet with claims count only where claims are served: ${!ignoreDraRequests}`, async (t) => {
      const stage = await Stage.open(t, { settings: { ignoreDraRequests } })
      stage.cloud.instanceTypes = [aType('medium', 4), aType('large', 8)]
      stage.world.create(kinds.daemonSet, {
        apiVersion: 'apps/v1',
        kind: 'DaemonSet',
        metadata: { name: 'monitor', namespace: 'default' },
        spec: {
          selector: { matchLabels: { app: 'monitor' } },
          template: {
            metadata: { labels: { app: 'monitor' } },
            spec: {
              containers: [{ name: 'app', image: 'app', resources: { requests: { cpu: '1' } } }],
              resourceClaims: [{ name: 'gpu', resourceClaimName: 'shared' }],
            },
          },
        },
      })
      waitingPod(stage, 'p', { cpu: '3500m' })
      await stage.pass(30 * seconds)
      const types = madeClaims(stage)[0]?.spec.requirements.find(({ key }) => key === labels.instanceType)
      assert.equal(types?.values?.includes('medium'), isEnough)
    })
})

/** Whether some NodeClaim was made for what fits no medium node. */
function launchesLarge(stage: Stage): boolean {
  return madeClaims(stage).some(({ spec }) => {
    const types = spec.requirements.find(({ key }) => key === labels.instanceType)?.values
    return types?.includes('medium') === false
  })
}

test('VER-44 a pod whose device is being attached to its node is served for five minutes; if that fails it is planned anew', async (t) => {
  const stage = await open(t, [aType('medium', 4), gpuType('with-gpu', 8, 1)])
  stage.cloud.extras = {
    labels: {
      [labels.os]: 'linux',
      [labels.instanceType]: 'with-gpu',
      [labels.zone]: 'zone-1',
      [labels.capacityType]: 'on-demand',
    },
  }
  await stage.ready('a')
  publish(stage, 'node-a', [{ name: 'gpu-0' }])
  createClaim(stage, 'one')
  waitingPod(stage, 'p', { spec: using('one') })
  const report = (status: object) => {
    stage.patch(kinds.pod, 'p', { status }, 'status', 'default')
  }
  // As kube-scheduler does before it waits for the binding conditions of a device.
  allocate(stage, 'one', ['node-a', 'gpu-0'], [forPod(stage, 'p')])
  report({ nominatedNodeName: 'node-a' })
  await stage.pass(5 * minutes)
  assert.deepEqual([madeClaims(stage), stage.claimNow('a')?.metadata.deletionTimestamp], [[], undefined])
  // Attaching fails: the device is given back, and the pod waits again; then somebody else takes the device.
  allocate(stage, 'one', undefined)
  report({ nominatedNodeName: null })
  await stage.pass(30 * seconds)
  assert.deepEqual(madeClaims(stage), [], 'the node has room for it')
  createClaim(stage, 'other')
  allocate(
    stage,
    'other',
    ['node-a', 'gpu-0'],
    [{ apiGroup: 'example.com', resource: 'jobs', name: 'job', uid: 'job' }],
  )
  await stage.pass(30 * seconds)
  assert.equal(madeClaims(stage).length, 1)
})
