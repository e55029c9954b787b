import assert from 'node:assert/strict'
import { test } from 'node:test'
import { autoscalingKinds, type CapacityBuffer, kinds, type KubeObject, type PodTemplate } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { BufferPods } from '../../state/pods/buffer-pods.ts'
import { ToldCache } from '../../state/observed-cluster.test-support.ts'
import { BufferTemplates } from './buffer-templates.ts'
import { BufferHydration } from './hydration.ts'

const signal = new AbortController().signal
const spec = { containers: [{ name: 'app', resources: { requests: { cpu: '1' } } }] }

function aBuffer(name: string, refs: CapacityBuffer['spec'], replicas = 3, status = 'True'): CapacityBuffer {
  const lastTransitionTime = '2026-01-01T00:00:00Z'
  const ready = { type: 'ReadyForProvisioning', reason: 'Resolved', message: '', lastTransitionTime }
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityBuffer',
    metadata: { name, namespace: 'default', uid: `uid-${name}` },
    spec: refs,
    status: { replicas, conditions: [{ ...ready, status: status === 'True' ? 'True' : 'False' }] },
  }
}
const ofDeployment = (name: string): CapacityBuffer['spec'] => ({ scalableRef: { kind: 'Deployment', name } })

/** A process that has just started, with what its caches and the API server show. */
class Started {
  readonly capacityBuffers = new ToldCache(autoscalingKinds.capacityBuffer)
  readonly podTemplates = new ToldCache(kinds.podTemplate)
  readonly state = { buffers: new BufferPods() }
  readonly clock = new VirtualClock(0, 1)
  reads = 0
  isDown = false
  readonly hydration: BufferHydration

  constructor() {
    const buffers = { capacityBuffers: this.capacityBuffers, podTemplates: this.podTemplates }
    const get = <T extends KubeObject>(): Promise<T | undefined> => {
      this.reads++
      if (this.isDown) return Promise.reject(new KubeError('server', 500, 'down'))
      const object = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } }
      const workload: KubeObject & { readonly spec: object } = {
        ...object,
        spec: { replicas: 10, template: { metadata: { labels: { app: 'web' } }, spec } },
      }
      return Promise.resolve(workload as KubeObject as T)
    }
    const templates = new BufferTemplates({ get }, buffers)
    const { clock, state } = this
    this.hydration = new BufferHydration({ buffers, state, templates, clock, logger: silentLogger })
  }

  get names(): readonly string[] {
    return this.state.buffers.all().map(({ metadata }) => metadata.name)
  }
}

const all = [1, 2, 3].map((n) => `capacity-buffer-web-${n}`)

test('BUF-19 fifty who ask at the same time wait for one reading, and see all of it', async () => {
  const started = new Started()
  started.capacityBuffers.put(aBuffer('web', ofDeployment('web')))
  assert.deepEqual(started.names, [])
  assert.equal(started.state.buffers.isUndecided, true, 'nothing is built on there being none')
  const seen = await Promise.all(
    Array.from({ length: 50 }, async () => {
      await started.hydration.settle(signal)
      return started.names
    }),
  )
  for (const names of seen) assert.deepEqual(names, all)
  assert.equal(started.reads, 1)
  await started.hydration.settle(signal)
  assert.equal(started.reads, 1, 'it is not read again')
})

test('BUF-20 what cannot be read is missing for now, and read the next time', async () => {
  const started = new Started()
  started.isDown = true
  started.capacityBuffers.put(aBuffer('web', ofDeployment('web')))
  await started.hydration.settle(signal)
  assert.deepEqual(started.names, [])
  assert.equal(started.state.buffers.isKnown, false)
  assert.deepEqual(await started.hydration.run(signal), { kind: 'after', delayMs: 1000 })
  started.isDown = false
  const asked: string[] = []
  started.state.buffers.asked.add((uid) => asked.push(uid))
  assert.deepEqual(await started.hydration.run(signal), { kind: 'done' })
  assert.deepEqual(started.names, all)
  assert.equal(started.state.buffers.isKnown, true)
  assert.deepEqual(asked, ['hydrated'], 'a pass says where the room is')
})

test('a kind that is not served, or may not be read, holds nothing up', async () => {
  const started = new Started()
  started.capacityBuffers.isSynced = false
  await started.clock.advance(30_000)
  await started.hydration.run(signal)
  assert.equal(started.state.buffers.isKnown, false)
  started.capacityBuffers.isRefused = true
  await started.hydration.run(signal)
  assert.equal(started.state.buffers.isKnown, true)
})

test('only what was kept room for is, as much of it as there was', async () => {
  const started = new Started()
  const template: PodTemplate = {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name: 'job', namespace: 'default' },
    template: { spec },
  }
  started.podTemplates.put(template)
  for (const buffer of [
    aBuffer('web', { podTemplateRef: { name: 'job' }, replicas: 9 }),
    aBuffer('unready', { podTemplateRef: { name: 'job' } }, 3, 'False'),
    aBuffer('empty', { podTemplateRef: { name: 'job' } }, 0),
    aBuffer('gone', { podTemplateRef: { name: 'gone' } }),
    aBuffer('neither', {}),
  ])
    started.capacityBuffers.put(buffer)
  await started.hydration.settle(signal)
  assert.deepEqual(started.names, all)
  assert.equal(started.state.buffers.isKnown, true)
})

test('what the controller has found out meanwhile counts', async () => {
  const started = new Started()
  started.capacityBuffers.put(aBuffer('web', ofDeployment('web')))
  const builtAt = '2026-01-01T00:00:00Z'
  const found = { namespace: 'default', name: 'web', uid: 'uid-web', template: { spec }, builtAt }
  started.state.buffers.put({ ...found, replicas: 1 })
  await started.hydration.settle(signal)
  assert.deepEqual(started.names, ['capacity-buffer-web-1'])
})
