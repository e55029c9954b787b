/** Why a pod waits whose ResourceClaim no node can meet, and which single change would help (ask.md 2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Device,
  type DeviceClaim,
  type DeviceSubRequest,
  type DeviceTaint,
  type InstanceType,
  type KubeObject,
  labels,
  type NodePool,
  type Pod,
  type ResourceClaim,
} from '@tenon/api'
import { patchOf } from '../misses/patch.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { Study } from '../study/study.ts'
import { aPending, aPool, aSnapshot, aType } from '../testing/clusters.test-support.ts'
import { explainPending, type PendingExplanation } from './pending.ts'

const driver = 'gpu.example.com'

function aGpuType(name: string, count: number, model: string, more: Partial<Device> = {}): InstanceType {
  const devices = Array.from({ length: count }, (_, index) => ({
    name: `gpu-${index}`,
    attributes: { model: { string: model } },
    capacity: { memory: { value: '40Gi' } },
    ...more,
  }))
  return { ...aType(name, 8), resourceSliceTemplates: [{ driver, pool: 'gpus', devices }] }
}

const gpuClass = {
  apiVersion: 'resource.k8s.io/v1',
  kind: 'DeviceClass',
  metadata: { name: 'gpu' },
  spec: { selectors: [{ cel: { expression: `device.driver == '${driver}'` } }] },
} as KubeObject

const model = (name: string): Pick<DeviceSubRequest, 'selectors'> => ({
  selectors: [{ cel: { expression: `device.attributes['${driver}'].model == '${name}'` } }],
})

const asking = (more: Partial<DeviceSubRequest>): DeviceClaim => ({
  requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu', ...more } }],
})

/** Pods of one workload, each with a claim made from the template `gpu`. */
function workload(devices: DeviceClaim, count: number): readonly KubeObject[] {
  return Array.from({ length: count }, (_, index) => `train-${index}`).flatMap((name) => {
    const claim: ResourceClaim = {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceClaim',
      metadata: { name: `${name}-gpu`, namespace: 'default', uid: `${name}-gpu` },
      spec: { devices },
    }
    const pod: Pod = aPending(
      name,
      { cpu: '1', memory: '1Gi' },
      { resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: 'gpu' }] },
      'train',
    )
    const resourceClaimStatuses = [{ name: 'gpu', resourceClaimName: `${name}-gpu` }]
    return [claim, { ...pod, status: { ...pod.status, resourceClaimStatuses } }]
  })
}

async function explained(
  devices: DeviceClaim,
  types: readonly InstanceType[],
  { pool = aPool('default'), count = 1 }: { readonly pool?: NodePool; readonly count?: number } = {},
): Promise<PendingExplanation> {
  const whole: Snapshot = aSnapshot([pool, gpuClass, ...workload(devices, count)], types)
  const study = await Study.open({ ...whole, settings: { ...whole.settings, ignoreDraRequests: false } })
  const pod = study.operator.caches.pods.get({ namespace: 'default', name: 'train-0' })
  assert.ok(pod)
  const answer = await explainPending(study, await study.decide(), pod)
  await study.close()
  assert.equal(answer?.case, 'waits')
  assert.equal(answer.code, 'devices')
  return answer
}

const words = ({ misses }: PendingExplanation) => misses.map(({ change }) => change.words)
const again = '(make ResourceClaimTemplate default/gpu again)'
const plain = aType('plain', 8)

test('the request and the selector that no type meets are told, and that it is what keeps the pod waiting', async () => {
  const answer = await explained(asking(model('b200')), [plain, aGpuType('a100', 2, 'a100')], { count: 2 })
  assert.match(
    answer.summary,
    /ResourceClaim default\/train-0-gpu: request gpu: no .* device of DeviceClass gpu meets its selector .* == 'b200'/i,
  )
  assert.deepEqual(words(answer), [
    `leave out the selector device.attributes['${driver}'].model == 'b200' of request gpu ${again}`,
  ])
  const [miss] = answer.misses
  assert.deepEqual(
    [miss?.running, miss?.waiting, miss?.place],
    [2, 2, { kind: 'claim', nodePool: 'default', instanceType: 'a100' }],
  )
  assert.deepEqual(miss?.change.target, {
    kind: 'resourceClaimTemplate',
    namespace: 'default',
    name: 'gpu',
  })
  assert.equal(miss.change.field, 'spec.spec.devices.requests[0].exactly.selectors[0]')
  // The spec of a template cannot be changed.
  assert.equal(patchOf(miss.change, aPending('any', {})), undefined)
})

test('fewer devices, a smaller amount and a toleration are changes that help', async () => {
  const count = await explained(asking({ count: 5 }), [plain, aGpuType('four', 4, 'a100')])
  assert.match(count.summary, /it asks for 5 devices of one node, and no node has more than 4 such/)
  assert.ok(
    words(count).includes(`ask for 4 devices instead of 5 in request gpu ${again}`),
    words(count).join(),
  )
  const memory = { capacity: { requests: { memory: '80Gi' } } }
  const large = await explained(asking(memory), [aGpuType('a100', 1, 'a100')])
  assert.match(large.summary, /it asks for 80Gi of capacity memory/)
  assert.deepEqual(words(large), [`ask for 40Gi of capacity memory instead of 80Gi in request gpu ${again}`])
  const taints: readonly DeviceTaint[] = [{ key: 'heat', value: 'high', effect: 'NoSchedule' }]
  const tainted = await explained(asking({}), [aGpuType('hot', 1, 'a100', { taints })])
  assert.deepEqual(words(tainted), [`tolerate heat=high:NoSchedule in the devices of request gpu ${again}`])
})

test('a constraint that keeps devices apart is one to leave out', async () => {
  const mixed: InstanceType = {
    ...aGpuType('mixed', 1, 'a100'),
    resourceSliceTemplates: [
      {
        driver,
        pool: 'gpus',
        devices: ['a100', 'h100'].map((name) => ({ name, attributes: { model: { string: name } } })),
      },
    ],
  }
  const answer = await explained(
    { ...asking({ count: 2 }), constraints: [{ matchAttribute: `${driver}/model` }] },
    [mixed],
  )
  assert.match(answer.summary, /has free devices for all of its requests together/)
  assert.ok(
    words(answer).includes(`leave out the constraint on ${driver}/model ${again}`),
    words(answer).join(),
  )
})

test('types that a NodePool does not allow are named, or allowed', async () => {
  const pool = aPool(
    'default',
    {},
    { requirements: [{ key: labels.instanceType, operator: 'In', values: ['plain'] }] },
  )
  const answer = await explained(asking({}), [plain, aGpuType('a100', 1, 'a100')], { pool })
  assert.match(
    answer.summary,
    /only instance types that do not suit the pod otherwise have its devices \(a100\)/,
  )
  assert.deepEqual(words(answer), [
    'allow a100 for node.kubernetes.io/instance-type in NodePool default',
    'leave out the requirement for node.kubernetes.io/instance-type of NodePool default',
  ])
})

test('VER-20 a pod with an extended resource is told the class that serves it, and what its nodes lack', async () => {
  const served = { ...gpuClass, spec: { extendedResourceName: 'example.com/gpu' } } as KubeObject
  const pod = aPending('train', { cpu: '1', 'example.com/gpu': '4' })
  const whole: Snapshot = aSnapshot([aPool('default'), served, pod], [plain, aGpuType('a100', 2, 'a100')])
  const study = await Study.open({ ...whole, settings: { ...whole.settings, ignoreDraRequests: false } })
  const answer = await explainPending(study, await study.decide(), pod)
  await study.close()
  assert.equal(answer?.case, 'waits')
  assert.equal(answer.code, 'extendedResources')
  assert.match(
    answer.summary,
    /example\.com\/gpu, which devices serve: request container-0-request-1: it asks for 4 devices/,
  )
})
