/** Pods leave devices with NoExecute taints, as kube-controller-manager 1.36 makes them (devices.md 3.21). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  type DeviceTaint,
  type DeviceTaintRule,
  deviceTaintRuleKinds,
  type DeviceToleration,
  kinds,
  type Pod,
  type ResourceClaim,
} from '@tenon/api'
import { startWorld, template, type World } from '../world.test-support.ts'

const driver = 'gpu.example.com'
const ruleKind = deviceTaintRuleKinds.v1beta2

function open(t: TestContext): World {
  const world = startWorld({ nodes: ['a'] })
  t.after(() => world.stop())
  return world
}

function createSlice(world: World, taints: readonly DeviceTaint[] = []): void {
  world.api.create(kinds.resourceSlice, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: { name: 'a' },
    spec: {
      driver,
      nodeName: 'a',
      pool: { name: 'a', generation: 1, resourceSliceCount: 1 },
      devices: [{ name: 'gpu-0', ...(taints.length > 0 && { taints }) }, { name: 'gpu-1' }],
    },
  })
}

/** A pod on the node that has a device, and tolerates what its claim says. */
function createUser(
  world: World,
  name: string,
  device: string,
  tolerations: readonly DeviceToleration[] = [],
): Pod {
  const pod = world.api.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      ...template(name).spec,
      nodeName: 'a',
      resourceClaims: [{ name: 'gpu', resourceClaimName: name }],
    },
  })
  const claim = world.api.create(kinds.resourceClaim, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name, namespace: 'default' },
    spec: { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu' } }] } },
  })
  const status: ResourceClaim['status'] = {
    allocation: {
      devices: { results: [{ request: 'gpu', driver, pool: 'a', device, tolerations }] },
    },
    reservedFor: [{ resource: 'pods', name, uid: pod.metadata.uid ?? '' }],
  }
  world.api.updateStatus(kinds.resourceClaim, { ...claim, status })
  return pod
}

function createRule(
  world: World,
  taint: Partial<DeviceTaint> = {},
  deviceSelector: DeviceTaintRule['spec']['deviceSelector'] = { driver, pool: 'a', device: 'gpu-0' },
): void {
  world.api.create(ruleKind, {
    apiVersion: 'resource.k8s.io/v1beta2',
    kind: 'DeviceTaintRule',
    metadata: { name: 'broken' },
    spec: { deviceSelector, taint: { key: 'broken', effect: 'NoExecute', ...taint } },
  })
}

const isThere = (world: World, name: string) =>
  world.api.get(kinds.pod, 'default', name)?.metadata.deletionTimestamp === undefined &&
  world.api.get(kinds.pod, 'default', name) !== undefined
const conditionOf = (world: World) =>
  world.api
    .get(ruleKind, undefined, 'broken')
    ?.status?.conditions?.find(({ type }) => type === 'EvictionInProgress')

test('a rule makes the pods on its devices go, others stay, and tells so', async (t) => {
  const world = open(t)
  createSlice(world)
  createUser(world, 'sick', 'gpu-0')
  createUser(world, 'sound', 'gpu-1')
  await world.settle()
  createRule(world)
  await world.settle(1_000)
  assert.equal(isThere(world, 'sick'), false)
  assert.equal(isThere(world, 'sound'), true)
  assert.deepEqual(world.events('DeviceTaintManagerEviction'), ['Marking for deletion'])
  await world.settle(20_000)
  assert.equal(conditionOf(world)?.status, 'False')
  assert.equal(conditionOf(world)?.reason, 'Completed')
  assert.equal(conditionOf(world)?.message, '1 pod evicted since starting the controller.')
})

test('a pod that is deleted for a taint says so in its conditions', async (t) => {
  const world = open(t)
  world.kubeletsStop = false
  createSlice(world)
  createUser(world, 'sick', 'gpu-0')
  await world.settle()
  createRule(world)
  await world.settle(1_000)
  const condition = world.api
    .get(kinds.pod, 'default', 'sick')
    ?.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')
  assert.equal(condition?.reason, 'DeletionByDeviceTaintManager')
})

test('a taint that a driver publishes evicts as that of a rule does', async (t) => {
  const world = open(t)
  createSlice(world, [{ key: 'broken', effect: 'NoExecute' }])
  createUser(world, 'sick', 'gpu-0')
  createUser(world, 'sound', 'gpu-1')
  await world.settle()
  assert.equal(isThere(world, 'sick'), false)
  assert.equal(isThere(world, 'sound'), true)
})

test('tolerations count when they name the effect, and for as long as they say', async (t) => {
  const world = open(t)
  createSlice(world)
  const key = 'broken'
  createUser(world, 'always', 'gpu-0', [{ key, operator: 'Exists', effect: 'NoExecute' }])
  createUser(world, 'a-minute', 'gpu-0', [
    { key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
    { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 },
  ])
  createUser(world, 'all-effects', 'gpu-0', [{ key, operator: 'Exists' }])
  await world.settle()
  createRule(world)
  await world.settle(5_000)
  assert.deepEqual(
    ['always', 'a-minute', 'all-effects'].map((name) => isThere(world, name)),
    [true, true, false],
  )
  assert.equal(conditionOf(world)?.reason, 'PodsPendingEviction')
  assert.match(conditionOf(world)?.message ?? '', /pods? needs? to be evicted in 1 namespace\./)
  await world.settle(50_000)
  assert.equal(isThere(world, 'a-minute'), true)
  await world.settle(10_000)
  assert.deepEqual(
    ['always', 'a-minute'].map((name) => isThere(world, name)),
    [true, false],
  )
})

test('a pod whose time has not come stays when the rule is deleted', async (t) => {
  const world = open(t)
  createSlice(world)
  createUser(world, 'a-minute', 'gpu-0', [{ operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 }])
  createRule(world)
  await world.settle(30_000)
  world.api.delete(ruleKind, undefined, 'broken')
  await world.settle(120_000)
  assert.equal(isThere(world, 'a-minute'), true)
  assert.deepEqual(world.events('DeviceTaintManagerEviction'), ['Cancelling deletion'])
})

test('a rule without an effect tells once what it would do', async (t) => {
  const world = open(t)
  createSlice(world)
  createUser(world, 'sick', 'gpu-0')
  createUser(world, 'sound', 'gpu-1')
  await world.settle()
  createRule(world, { effect: 'None' }, { driver })
  await world.settle()
  assert.equal(isThere(world, 'sick'), true)
  assert.equal(conditionOf(world)?.reason, 'NoEffect')
  assert.equal(
    conditionOf(world)?.message,
    '2 published devices selected. 2 allocated devices selected. 2 pods would be evicted in 1 namespace if the ' +
      'effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.',
  )
  const rule = world.api.get(ruleKind, undefined, 'broken') as DeviceTaintRule
  const added = rule.spec.taint.timeAdded
  world.api.patch(ruleKind, undefined, 'broken', { spec: { taint: { effect: 'NoSchedule' } } })
  await world.settle(20_000)
  assert.equal(conditionOf(world)?.reason, 'OtherEffect')
  const changed = world.api.get(ruleKind, undefined, 'broken') as DeviceTaintRule
  assert.equal(changed.metadata.generation, 2)
  assert.notEqual(changed.spec.taint.timeAdded, added)
})

test('nothing is evicted twice after a restart of the controllers', async (t) => {
  const world = open(t)
  createSlice(world)
  createUser(world, 'sick', 'gpu-0')
  createRule(world)
  await world.settle()
  world.restart()
  await world.settle(30_000)
  assert.deepEqual(world.events('DeviceTaintManagerEviction'), ['Marking for deletion'])
})
