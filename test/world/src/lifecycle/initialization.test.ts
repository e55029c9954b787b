import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, labels, type Taint } from '@tenon/api'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

test('LIF-38 LIF-44 a claim is initialized once its node is Ready', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a')
  await stage.join('a')
  assert.equal(stage.state('a', 'Initialized'), 'Unknown/NodeNotReady')
  await stage.report('node-a')
  assert.equal(stage.state('a', 'Initialized'), 'True/Initialized')
  assert.equal(stage.nodeNow('node-a')?.metadata.labels?.[labels.initialized], 'true')
  assert.equal(stage.state('a', 'Ready'), 'True/Ready')
})

test('LIF-39 a startup taint holds initialization back, whatever its value', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a', { startupTaints: [{ key: 'boot', value: 'x', effect: 'NoSchedule' }] })
  await stage.join('a', { taints: [{ key: 'boot', value: 'other', effect: 'NoSchedule' }] })
  await stage.report('node-a')
  assert.equal(stage.state('a', 'Initialized'), 'Unknown/StartupTaintsExist')
  assert.match(stage.condition('a', 'Initialized')?.message ?? '', /boot=other:NoSchedule/)
  await stage.pass(10 * minutes)
  assert.equal(stage.state('a', 'Initialized'), 'Unknown/StartupTaintsExist')
  stage.patch(kinds.node, 'node-a', { spec: { taints: null } })
  await stage.pass(seconds)
  assert.equal(stage.state('a', 'Initialized'), 'True/Initialized')
})

const ephemeral: readonly Taint[] = [
  { key: 'node.cloudprovider.kubernetes.io/uninitialized', effect: 'NoSchedule' },
  { key: 'readiness.k8s.io/x', effect: 'PreferNoSchedule' },
]
for (const taint of ephemeral) {
  test(`LIF-40 LIF-41 taint ${taint.key} holds initialization back`, async (t) => {
    const stage = await Stage.open(t)
    await stage.claim('a')
    await stage.join('a', { taints: [taint] })
    await stage.report('node-a')
    assert.equal(stage.state('a', 'Initialized'), 'Unknown/KnownEphemeralTaintsExist')
    assert.ok(stage.condition('a', 'Initialized')?.message.includes(taint.key))
    stage.patch(kinds.node, 'node-a', { spec: { taints: null } })
    await stage.pass(seconds)
    assert.equal(stage.state('a', 'Initialized'), 'True/Initialized')
  })
}

test('LIF-42 LIF-43 a requested resource must be offered, in any amount; a request of zero is none', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a', {
    resources: { requests: { cpu: '100', 'example.com/gpu': '1', 'example.com/none': '0' } },
  })
  await stage.join('a')
  await stage.report('node-a', 'True', { 'example.com/gpu': '0' })
  assert.equal(stage.state('a', 'Initialized'), 'Unknown/ResourceNotRegistered')
  assert.match(stage.condition('a', 'Initialized')?.message ?? '', /example.com\/gpu/)
  await stage.report('node-a', 'True', { 'example.com/gpu': '1' })
  assert.equal(stage.state('a', 'Initialized'), 'True/Initialized')
})

const draSettings = { ignoreDraRequests: false }
const wantsDevices = {
  annotations: { 'karpenter.sh/requested-dra-drivers': ' gpu.example.com , net.example.com,' },
}

interface SliceOptions {
  readonly count?: number
  readonly generation?: number
  readonly pool?: string
  /** Which nodes it is for; `node-a` when nothing is said. */
  readonly owner?: string
  readonly on?: {
    readonly nodeName?: string
    readonly allNodes?: boolean
    readonly perDeviceNodeSelection?: boolean
  }
}

/** A slice that driver `driver` publishes for `node-a`; the pool has `count` of them. */
function publish(
  stage: Stage,
  name: string,
  driver: string,
  { count = 1, generation = 1, pool = 'node-a', on = { nodeName: 'node-a' }, owner }: SliceOptions = {},
): void {
  stage.world.create(kinds.resourceSlice, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: {
      name,
      ...(owner !== undefined && {
        ownerReferences: [
          { apiVersion: 'v1', kind: 'Node', name: owner, uid: stage.nodeNow(owner)?.metadata.uid ?? '' },
        ],
      }),
    },
    spec: { driver, pool: { name: pool, generation, resourceSliceCount: count }, ...on },
  })
}

test('LIF-46 BUF-86 BUF-87 devices that pods ask for must be published as a whole, by every driver', async (t) => {
  const stage = await Stage.open(t, { settings: draSettings })
  await stage.ready('a', {}, wantsDevices)
  const missing = (driver: string) => {
    assert.equal(stage.state('a', 'Initialized'), 'Unknown/DRADriverPoolsNotPublished')
    assert.match(stage.condition('a', 'Initialized')?.message ?? '', new RegExp(driver))
  }
  missing('gpu.example.com')
  publish(stage, 'everywhere', 'gpu.example.com', { pool: 'all', on: { allNodes: true } })
  publish(stage, 'gpu-1', 'gpu.example.com', { count: 2 })
  await stage.pass(seconds)
  missing('gpu.example.com')
  publish(stage, 'gpu-2', 'gpu.example.com', { count: 2 })
  await stage.pass(seconds)
  missing('net.example.com')
  publish(stage, 'gpu-newer', 'gpu.example.com', { count: 2, generation: 2 })
  publish(stage, 'net-1', 'net.example.com', { owner: 'node-a', on: { perDeviceNodeSelection: true } })
  await stage.pass(seconds)
  missing('gpu.example.com')
  await stage.pass(10 * minutes)
  missing('gpu.example.com')
  publish(stage, 'gpu-newer-2', 'gpu.example.com', { count: 2, generation: 2 })
  await stage.pass(seconds)
  assert.equal(stage.state('a', 'Initialized'), 'True/Initialized')
})

test('BUF-127 more slices than a pool declares are not the whole pool, and a blank list of drivers asks for none', async (t) => {
  const stage = await Stage.open(t, { settings: draSettings })
  await stage.ready('a', {}, { annotations: { 'karpenter.sh/requested-dra-drivers': 'gpu.example.com' } })
  for (const name of ['gpu-1', 'gpu-2', 'gpu-3']) publish(stage, name, 'gpu.example.com', { count: 2 })
  await stage.pass(seconds)
  assert.equal(stage.state('a', 'Initialized'), 'Unknown/DRADriverPoolsNotPublished')
  stage.delete(kinds.resourceSlice, 'gpu-3')
  await stage.pass(seconds)
  assert.equal(stage.state('a', 'Initialized'), 'True/Initialized')
  await stage.ready('b', {}, { annotations: { 'karpenter.sh/requested-dra-drivers': ' ' } })
  assert.equal(stage.state('b', 'Initialized'), 'True/Initialized')
})

test('LIF-46 BUF-88 without support for resource claims devices are not looked at', async (t) => {
  const stage = await Stage.open(t, { settings: { ignoreDraRequests: true } })
  await stage.ready('a', {}, wantsDevices)
  assert.equal(stage.state('a', 'Initialized'), 'True/Initialized')
})

test('LIF-47 nothing is initialized before it is registered', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a')
  await stage.pass(minutes)
  assert.equal(stage.state('a', 'Initialized'), 'Unknown/AwaitingReconciliation')
})

test('LIF-154 a fresh claim lists its dependents', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onCreate = () => {
    throw new Error('not yet')
  }
  await stage.claim('a')
  assert.equal(stage.state('a', 'Ready'), 'Unknown/ReconcilingDependents')
  const message = stage.condition('a', 'Ready')?.message ?? ''
  assert.equal(
    message.split(', ').toSorted().join(),
    'Initialized=Unknown,Launched=Unknown,Registered=Unknown',
  )
})

test('a condition that another controller sets meanwhile is not overwritten', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  const conditions = stage.claimNow('a')?.status?.conditions ?? []
  assert.ok(conditions.some(({ type }) => type === 'Initialized'))
  const at = '2026-01-01T00:00:30Z'
  const mine = { type: 'Mine', status: 'True', reason: 'Mine', message: '', lastTransitionTime: at }
  stage.patch(karpenterKinds.nodeClaim, 'a', { status: { conditions: [mine, ...conditions] } }, 'status')
  await stage.pass(5 * minutes)
  assert.equal(stage.state('a', 'Mine'), 'True/Mine')
})
