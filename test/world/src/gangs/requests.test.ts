/** ProvisioningRequests: room for all pods of some sets, before the pods are made (gangs.md 7.6). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { autoscalingKinds, karpenterKinds, kinds, type NodePool } from '@tenon/api'
import { bound, podSpec, podTemplate } from '../capacity-buffers/buffer-stage.test-support.ts'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { liveClaims } from './gang-stage.test-support.ts'
import {
  checkClass,
  consumers,
  messageOf,
  openRequests,
  request,
  requested,
  requestNow,
  stateOf,
} from './request-stage.test-support.ts'

/** What the condition Provisioned says, each once, while time passes. */
async function watched(stage: Stage, name: string, ms: number): Promise<readonly string[]> {
  const seen: string[] = []
  for (let at = 0; at < ms; at += 250) {
    await stage.pass(250)
    const state = `${stateOf(stage, name, 'Provisioned')} ${messageOf(stage, name, 'Provisioned')}`
    if (seen.at(-1) !== state) seen.push(state)
  }
  return seen
}

describe('an atomic request', () => {
  test('GNG-41 gets nodes for all of its pods, which they take without another node', async (t) => {
    const stage = await openRequests(t)
    requested(stage, 'train', '3', { count: 10 })
    const states = await watched(stage, 'train', 1 * minutes)
    assert.equal(stateOf(stage, 'train', 'Accepted'), 'True/Accepted')
    assert.equal(liveClaims(stage).length, 5)
    assert.ok(
      states.some((state) =>
        /^False\/CapacityIsBeingProvisioned It takes 5 nodes: \d launched, 0 ready/.test(state),
      ),
      states.join('; '),
    )
    assert.match(states.at(-1) ?? '', /^True\/CapacityIsProvisioned /)
    const { provisioningClassDetails } = requestNow(stage, 'train')?.status ?? {}
    assert.deepEqual(provisioningClassDetails, { NodePools: 'default', Zones: 'zone-a' })
    consumers(stage, 'train', 10, { cpu: '3' })
    await stage.pass(1 * minutes)
    assert.equal(bound(stage, 'train'), 10)
    assert.equal(stateOf(stage, 'train', 'BookingExpired'), 'True/CapacityBookingConsumed')
    await stage.pass(2 * minutes)
    assert.equal(liveClaims(stage).length, 5)
    assert.ok(stage.events('GroupLaunching').every(({ object }) => object === 'ProvisioningRequest/train'))
  })

  test('GNG-41 launches nothing where there is room for all of its pods', async (t) => {
    const stage = await openRequests(t)
    requested(stage, 'first', '3', { count: 2 })
    await stage.pass(1 * minutes)
    assert.equal(liveClaims(stage).length, 1)
    stage.world.cluster.server.local.delete(autoscalingKinds.provisioningRequest, 'default', 'first')
    requested(stage, 'second', '3', { count: 2 })
    await stage.pass(20 * seconds)
    assert.equal(stateOf(stage, 'second', 'Provisioned'), 'True/CapacityIsFound')
    assert.equal(liveClaims(stage).length, 1)
  })

  test('GNG-42 of sets that need different NodePools all get nodes, or none', async (t) => {
    const stage = await openRequests(t)
    const taints = [{ key: 'a', effect: 'NoSchedule' }]
    stage.patch(karpenterKinds.nodePool, 'default', { spec: { template: { spec: { taints } } } })
    await stage.pass(5 * seconds)
    podTemplate(stage, 'a', podSpec('3', { tolerations: [{ key: 'a', operator: 'Exists' }] }))
    podTemplate(stage, 'b', podSpec('3', { tolerations: [{ key: 'b', operator: 'Exists' }] }))
    request(stage, 'both', { templates: ['a', 'b'], count: 2, parameters: { noRetry: 'true' } })
    await stage.pass(30 * seconds)
    assert.deepEqual(liveClaims(stage), [])
    assert.equal(stateOf(stage, 'both', 'Failed'), 'True/CapacityIsNotFound')
    assert.match(messageOf(stage, 'both', 'Failed'), /does not tolerate a:NoSchedule/)
    const pool = stage.poolNow() as NodePool
    const { resourceVersion: _, uid: __, creationTimestamp: ___, ...metadata } = pool.metadata
    const template = {
      ...pool.spec.template,
      spec: { ...pool.spec.template.spec, taints: [{ key: 'b', effect: 'NoSchedule' as const }] },
    }
    stage.world.create(karpenterKinds.nodePool, {
      ...pool,
      metadata: { ...metadata, name: 'other' },
      spec: { ...pool.spec, template },
    })
    await stage.pass(20 * seconds)
    request(stage, 'again', { templates: ['a', 'b'], count: 2 })
    await stage.pass(1 * minutes)
    assert.equal(stateOf(stage, 'again', 'Provisioned'), 'True/CapacityIsProvisioned')
    assert.equal(requestNow(stage, 'again')?.status?.provisioningClassDetails?.['NodePools'], 'default,other')
  })

  test('GNG-44 fails when its time is over before there is room, and a time that is none counts for nothing', async (t) => {
    const stage = await openRequests(t, { limits: { cpu: '4' } })
    requested(stage, 'short', '3', { count: 2, parameters: { ValidUntilSeconds: '60' } })
    requested(stage, 'odd', '3', { count: 2, parameters: { ValidUntilSeconds: 'ten' } })
    await stage.pass(50 * seconds)
    assert.equal(stateOf(stage, 'short', 'Failed'), 'absent')
    assert.match(messageOf(stage, 'short', 'Provisioned'), /limit/)
    await stage.pass(15 * seconds)
    assert.equal(stateOf(stage, 'short', 'Failed'), 'True/Expired')
    assert.equal(stateOf(stage, 'odd', 'Failed'), 'absent')
    assert.match(stage.events('InvalidParameter')[0]?.message ?? '', /ValidUntilSeconds "ten" is ignored/)
    assert.deepEqual(liveClaims(stage), [])
  })

  test('GNG-45 waits half a minute for a PodTemplate', async (t) => {
    const stage = await openRequests(t)
    request(stage, 'late')
    request(stage, 'never', { templates: ['nothing', 'neither'] })
    await stage.pass(20 * seconds)
    assert.equal(stateOf(stage, 'never', 'Failed'), 'absent')
    podTemplate(stage, 'late', podSpec('3'))
    await stage.pass(20 * seconds)
    assert.equal(stateOf(stage, 'late', 'Provisioned'), 'True/CapacityIsProvisioned')
    assert.equal(stateOf(stage, 'never', 'Failed'), 'True/FailedToCreatePods')
    assert.match(messageOf(stage, 'never', 'Failed'), /2 PodTemplates missing: neither, nothing/)
  })

  test('a request of another class is left alone', async (t) => {
    const stage = await openRequests(t)
    requested(stage, 'theirs', '3', { class: 'queued.example.com' })
    await stage.pass(30 * seconds)
    assert.equal(requestNow(stage, 'theirs')?.status, undefined)
  })

  test('GNG-41 a process that starts later takes up a request whose nodes are on their way', async (t) => {
    const stage = await openRequests(t)
    requested(stage, 'train', '3', { count: 6 })
    while (liveClaims(stage).length < 3) await stage.pass(100)
    await stage.restart()
    await stage.pass(1 * minutes)
    assert.equal(stateOf(stage, 'train', 'Provisioned'), 'True/CapacityIsProvisioned')
    assert.equal(liveClaims(stage).length, 3)
    await stage.restart()
    await stage.pass(5 * minutes)
    assert.equal(liveClaims(stage).length, 3)
  })
})

describe('a booking', () => {
  test('GNG-47 keeps empty nodes until its time is over', async (t) => {
    const stage = await openRequests(t)
    requested(stage, 'train', '3', { count: 4 })
    await stage.pass(9 * minutes)
    assert.equal(stateOf(stage, 'train', 'Provisioned'), 'True/CapacityIsProvisioned')
    assert.equal(liveClaims(stage).length, 2)
    await stage.pass(4 * minutes)
    assert.equal(stateOf(stage, 'train', 'BookingExpired'), 'True/CapacityReservationTimeExpired')
    assert.deepEqual(liveClaims(stage), [])
  })

  test('GNG-48 shrinks with the pods that have a node, and is not bought again for those that wait', async (t) => {
    const stage = await openRequests(t)
    requested(stage, 'train', '3', { count: 10 })
    await stage.pass(30 * seconds)
    consumers(stage, 'train', 3, { cpu: '3' })
    await stage.pass(20 * seconds)
    assert.equal(bound(stage, 'train'), 3)
    // What nobody schedules waits, and is no reason for a node.
    consumers(stage, 'train', 2, { cpu: '3', from: 3, scheduler: 'nobody' })
    await stage.pass(3 * minutes)
    assert.equal(liveClaims(stage).length, 5)
    const served = stage.operator.operator.state.requests.all()
    assert.equal(served[0]?.pods.length, 7)
    const other = podSpec('3')
    stage.world.create(kinds.pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'stranger', namespace: 'default' },
      spec: { ...other, nodeSelector: { 'example.com/none': 'x' } },
    })
    await stage.pass(30 * seconds)
    assert.equal(liveClaims(stage).length, 5)
  })

  test('a node that is lost is bought again', async (t) => {
    const stage = await openRequests(t)
    requested(stage, 'train', '3', { count: 4 })
    await stage.pass(30 * seconds)
    const [first] = liveClaims(stage)
    stage.world.cluster.server.local.delete(karpenterKinds.nodeClaim, undefined, first?.metadata.name ?? '')
    await stage.pass(1 * minutes)
    assert.equal(liveClaims(stage).length, 2)
    assert.ok(!liveClaims(stage).some(({ metadata }) => metadata.name === first?.metadata.name))
    assert.equal(stateOf(stage, 'train', 'Provisioned'), 'True/CapacityIsProvisioned')
  })

  test('a deleted request keeps nothing', async (t) => {
    const stage = await openRequests(t)
    requested(stage, 'train', '3', { count: 4 })
    await stage.pass(30 * seconds)
    stage.world.cluster.server.local.delete(autoscalingKinds.provisioningRequest, 'default', 'train')
    await stage.pass(2 * minutes)
    assert.deepEqual(liveClaims(stage), [])
  })
})

describe('a request to check capacity', () => {
  test('GNG-46 of two for the same room one has it until its booking ends, and nothing is launched', async (t) => {
    const stage = await openRequests(t, { disruption: { consolidateAfter: 'Never' } })
    requested(stage, 'maker', '3', { count: 2 })
    await stage.pass(30 * seconds)
    stage.world.cluster.server.local.delete(autoscalingKinds.provisioningRequest, 'default', 'maker')
    requested(stage, 'first', '3', { class: checkClass, count: 2 })
    await stage.pass(2 * seconds)
    requested(stage, 'second', '3', { class: checkClass, count: 2 })
    requested(stage, 'once', '3', { class: checkClass, count: 2, parameters: { noRetry: 'true' } })
    await stage.pass(20 * seconds)
    assert.equal(stateOf(stage, 'first', 'Provisioned'), 'True/CapacityIsFound')
    assert.equal(stateOf(stage, 'second', 'Provisioned'), 'False/CapacityIsNotFound')
    assert.equal(stateOf(stage, 'once', 'Failed'), 'True/CapacityIsNotFound')
    assert.equal(liveClaims(stage).length, 1)
    stage.world.cluster.server.local.delete(autoscalingKinds.provisioningRequest, 'default', 'first')
    await stage.pass(70 * seconds)
    assert.equal(stateOf(stage, 'second', 'Provisioned'), 'True/CapacityIsFound')
    assert.equal(liveClaims(stage).length, 1)
  })
})

describe('pods made for a request', () => {
  test('GNG-49 never get a node where it only checks, and are told once', async (t) => {
    const stage = await openRequests(t)
    requested(stage, 'check', '3', { class: checkClass })
    consumers(stage, 'check', 1, { cpu: '3', of: checkClass })
    await stage.pass(12 * minutes)
    assert.deepEqual(liveClaims(stage), [])
    assert.equal(stage.events('ConsumesProvisioningRequest').length, 1)
  })

  test('GNG-49 tell the class of a request that is gone with the keys of older Kueue as well', async (t) => {
    const stage = await openRequests(t)
    consumers(stage, 'gone', 1, { cpu: '3', of: checkClass, keys: 'cluster-autoscaler.kubernetes.io' })
    await stage.pass(2 * minutes)
    assert.deepEqual(liveClaims(stage), [])
  })

  test('GNG-49 are like other pods once their atomic request is gone', async (t) => {
    const stage = await openRequests(t)
    consumers(stage, 'gone', 1, { cpu: '3' })
    await stage.pass(30 * seconds)
    assert.equal(liveClaims(stage).length, 1)
    assert.equal(stage.events('ProvisioningRequestNotBooked').length, 1)
  })
})
