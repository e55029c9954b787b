/** What the controller says of CapacityBuffers (buffers-and-dra.md 2.2). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { autoscalingKinds, kinds } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { intercepting, seconds } from '../testing/stage.test-support.ts'
import { deploymentKind } from '../world.ts'
import * as b from './buffer-stage.test-support.ts'

const ready = 'ReadyForProvisioning'
/** Nothing is launched in these stories. */
const closed = { limits: { nodes: '0' } }
const ref = (name: string, kind = 'Deployment', apiGroup?: string) => ({
  scalableRef: { kind, name, ...(apiGroup !== undefined && { apiGroup }) },
})

describe('statuses of CapacityBuffers', () => {
  test('BUF-2 BUF-3 BUF-5 BUF-6 BUF-14 BUF-115 BUF-116 of PodTemplates', async (t) => {
    const stage = await b.openBuffers(t, closed)
    b.buffer(stage, 'neither', {})
    b.buffer(stage, 'web', { podTemplateRef: { name: 'web' }, replicas: 3 })
    await stage.pass(3 * seconds)
    assert.equal(b.stateOf(stage, 'neither', ready), 'False/ResolutionFailed')
    assert.match(
      b.messageOf(stage, 'neither', ready),
      /podTemplateRef and spec\.scalableRef are both missing/,
    )
    assert.equal(b.stateOf(stage, 'web', ready), 'False/PodTemplateNotFound')
    assert.match(b.messageOf(stage, 'web', ready), /podtemplates "web" not found/)
    assert.deepEqual(stage.operator.operator.state.buffers.all(), [])
    const errors = { controller: 'capacitybuffer', result: 'error' }
    assert.equal(await total(stage, errors), 0, 'nothing to retry')

    b.podTemplate(stage, 'web')
    await stage.pass(2 * seconds)
    assert.equal(b.stateOf(stage, 'web', ready), 'True/Resolved')
    const { replicas, podTemplateRef, podTemplateGeneration, provisioningStrategy } =
      b.bufferNow(stage, 'web')?.status ?? {}
    assert.deepEqual(
      { replicas, podTemplateRef, podTemplateGeneration, provisioningStrategy },
      {
        replicas: 3,
        podTemplateRef: { name: 'web' },
        podTemplateGeneration: 1,
        provisioningStrategy: 'buffer.x-k8s.io/active-capacity',
      },
    )
    assert.equal(stage.operator.operator.state.buffers.all().length, 3)

    const template = { metadata: { labels: { app: 'other' } }, spec: b.podSpec('2') }
    stage.patch(kinds.podTemplate, 'web', { template }, undefined, 'default')
    await stage.pass(2 * seconds)
    assert.equal(b.bufferNow(stage, 'web')?.status?.podTemplateGeneration, 2)
    const [pod] = stage.operator.operator.state.buffers.all()
    assert.deepEqual(pod?.metadata.labels, { app: 'other' })
    assert.equal(pod?.spec.containers[0]?.resources?.requests?.['cpu'], '2')

    stage.world.cluster.server.local.delete(kinds.podTemplate, 'default', 'web')
    await stage.pass(2 * seconds)
    assert.equal(b.stateOf(stage, 'web', ready), 'False/PodTemplateNotFound')
    assert.equal(b.bufferNow(stage, 'web')?.status?.replicas, 3, 'the last number stays')
    assert.deepEqual(stage.operator.operator.state.buffers.all(), [])

    b.deployment(stage, 'app', 10)
    b.changeBuffer(stage, 'web', { podTemplateRef: null, replicas: null, percentage: 20, ...ref('app') })
    await stage.pass(2 * seconds)
    const { status } = b.bufferNow(stage, 'web') ?? {}
    assert.equal(b.stateOf(stage, 'web', ready), 'True/Resolved')
    assert.deepEqual(
      [status?.replicas, status?.podTemplateRef, status?.podTemplateGeneration],
      [2, undefined, undefined],
    )
  })

  for (const afterS of [1, 17, 29, 61, 118])
    test(`RPB-40 of a workload that is made ${afterS} s after its buffer, within six seconds`, async (t) => {
      const stage = await b.openBuffers(t, closed)
      b.buffer(stage, 'web', { ...ref('web'), replicas: 2 })
      await stage.pass(afterS * seconds)
      assert.equal(b.stateOf(stage, 'web', ready), 'False/ScalableRefNotFound')
      b.deployment(stage, 'web', 1)
      await stage.pass(6 * seconds)
      assert.equal(b.stateOf(stage, 'web', ready), 'True/Resolved')
    })

  test('RPB-40 a workload that never comes is looked for less often after two minutes', async (t) => {
    let looks = 0
    const apiPath = intercepting((method, path) => {
      if (method === 'GET' && path.endsWith('/deployments/web')) looks++
      return 'pass'
    })
    const stage = await b.openBuffers(t, closed, { apiPath })
    b.buffer(stage, 'web', { ...ref('web'), replicas: 2 })
    await stage.pass(120 * seconds)
    assert.ok(looks >= 20 && looks <= 30, `${looks} looks`)
    looks = 0
    await stage.pass(600 * seconds)
    assert.ok(looks >= 19 && looks <= 22, `${looks} looks`)
  })

  test('BUF-7 BUF-8 BUF-12 BUF-13 API-110 of workloads', async (t) => {
    const stage = await b.openBuffers(t, closed)
    b.buffer(stage, 'web', { ...ref('web'), percentage: 20 })
    b.buffer(stage, 'job', { ...ref('web', 'Job'), replicas: 1 })
    b.buffer(stage, 'batch', { ...ref('web', 'Deployment', 'batch'), replicas: 1 })
    b.buffer(stage, 'daemon', { ...ref('web', 'DaemonSet'), replicas: 1 })
    b.buffer(stage, 'case', { ...ref('web', 'deployment'), replicas: 1 })
    await stage.pass(3 * seconds)
    assert.equal(b.stateOf(stage, 'web', ready), 'False/ScalableRefNotFound')
    assert.match(b.messageOf(stage, 'web', ready), /deployments\.apps "web" not found/)
    for (const [name, told] of [
      ['job', /kind "Job" is not supported/],
      ['daemon', /kind "DaemonSet" is not supported/],
      ['case', /kind "deployment" is not supported/],
      ['batch', /apiGroup "batch" is not supported/],
    ] as const) {
      assert.equal(b.stateOf(stage, name, ready), 'False/ResolutionFailed')
      assert.match(b.messageOf(stage, name, ready), told)
    }
    assert.ok((await total(stage, { controller: 'capacitybuffer', result: 'error' })) >= 4)

    b.deployment(stage, 'web', 10)
    await stage.pass(31 * seconds)
    assert.equal(b.stateOf(stage, 'web', ready), 'True/Resolved', 'found at the next look')
    assert.equal(b.bufferNow(stage, 'web')?.status?.replicas, 2)
    stage.world.scale('web', 1)
    await stage.pass(31 * seconds)
    assert.equal(b.bufferNow(stage, 'web')?.status?.replicas, 1)
    stage.world.scale('web', 0)
    await stage.pass(31 * seconds)
    assert.equal(b.bufferNow(stage, 'web')?.status?.replicas, 0)
    assert.equal(b.stateOf(stage, 'web', 'Provisioning'), 'False/BufferEmpty')
  })

  test('BUF-132 a buffer that changes meanwhile is looked at again after a second, and nothing happens before', async (t) => {
    let refusals = 0
    const apiPath = intercepting((method, path) => {
      if (method !== 'PATCH' || !path.includes('capacitybuffers') || refusals > 0) return 'pass'
      refusals++
      return 'conflict'
    })
    const stage = await b.openBuffers(t, closed, { apiPath })
    b.templated(stage, 'web', 3)
    await stage.pass(500)
    assert.equal(refusals, 1)
    assert.deepEqual(stage.operator.operator.state.buffers.all(), [], 'nothing is kept, nor decided')
    await stage.pass(1 * seconds)
    assert.equal(b.stateOf(stage, 'web', ready), 'True/Resolved')
    assert.equal(stage.operator.operator.state.buffers.all().length, 3)
  })

  test('BUF-1 with the gate off nothing reads buffers, and the kind need not be served', async (t) => {
    const asked: string[] = []
    const apiPath = intercepting((method, path) => {
      if (/capacitybuffers|podtemplates/.test(path)) asked.push(`${method} ${path}`)
      return 'pass'
    })
    const featureGates = { ...defaultSettings.featureGates, capacityBuffer: false }
    const stage = await b.openBuffers(t, {}, { settings: { featureGates }, servesBuffers: false, apiPath })
    b.deployment(stage, 'web', 1)
    await stage.pass(60 * seconds)
    assert.equal(b.bound(stage, 'web'), 1)
    assert.deepEqual(asked, [])
    assert.equal(stage.operator.operator.caches.buffers, undefined)
  })

  test('with the gate on, a kind that is not served holds nothing up', async (t) => {
    const stage = await b.openBuffers(t, {}, { servesBuffers: false })
    b.deployment(stage, 'web', 1)
    await stage.pass(60 * seconds)
    assert.equal(b.bound(stage, 'web'), 1)
    stage.world.cluster.server.local.delete(deploymentKind, 'default', 'web')
    await stage.pass(180 * seconds)
    assert.deepEqual(stage.world.nodes(), [], 'empty nodes go')
  })

  test('conditions have metrics and events', async (t) => {
    const stage = await b.openBuffers(t, closed)
    b.buffer(stage, 'web', { podTemplateRef: { name: 'web' }, replicas: 1 })
    await stage.pass(3 * seconds)
    b.podTemplate(stage, 'web')
    await stage.pass(3 * seconds)
    assert.deepEqual(
      stage.events(ready).map(({ object }) => object),
      ['CapacityBuffer/web'],
    )
    const text = await stage.operator.operator.metrics.registry.metrics()
    for (const prefix of ['operator_capacitybuffer_', 'operator_'])
      assert.match(
        text,
        new RegExp(`^${prefix}status_condition_count\\{.*namespace="default",name="web".*Resolved`, 'm'),
      )
    assert.equal(
      b.bufferNow(stage, 'web')?.status?.conditions?.some(({ type }) => type === 'Ready'),
      false,
    )
    assert.equal(
      stage.world.cluster.server.local.list(autoscalingKinds.capacityBuffer).length,
      1,
      'nothing else is made',
    )
  })
})

/** Reconciles that ended so. */
async function total(
  stage: Awaited<ReturnType<typeof b.openBuffers>>,
  wanted: Readonly<Record<string, string>>,
): Promise<number> {
  const metric = stage.operator.operator.metrics.registry.getSingleMetric(
    'controller_runtime_reconcile_total',
  )
  const { values } = (await metric?.get()) ?? { values: [] }
  return values
    .filter(({ labels }) => Object.entries(wanted).every(([name, value]) => labels[name] === value))
    .reduce((sum, { value }) => sum + value, 0)
}
