/** Gangs and ProvisioningRequests beside a controller that only observes, and after a start that reads late. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { rfc3339, type Transport } from '@tenon/runtime'
import { podSpec, podTemplate } from '../capacity-buffers/buffer-stage.test-support.ts'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { waitingPod } from '../testing/pools.test-support.ts'
import { type GangOptions, liveClaims, group, members, openGangs } from './gang-stage.test-support.ts'
import { openRequests, request, requested, requestNow, stateOf } from './request-stage.test-support.ts'

const featureGates = { ...defaultSettings.featureGates, groupScheduling: true }
const observing: GangOptions = { settings: { featureGates, observeOnly: true } }

/** Somebody else has made the NodePool ready. */
function makeReady(stage: Stage): void {
  const conditions = ['Ready', 'ValidationSucceeded', 'NodeClassReady'].map((type) => ({
    type,
    status: 'True',
    reason: type,
    message: '',
    lastTransitionTime: rfc3339(stage.now),
  }))
  stage.patch(karpenterKinds.nodePool, 'default', { status: { conditions } }, 'status')
}

/** What the last pass said of a pod. */
function toldOf(stage: Stage, pod: string): string {
  const uid = stage.podNow(pod)?.metadata.uid ?? ''
  return stage.operator.operator.state.podDecisions.get(uid).failure ?? ''
}

test('GNG-1 a process that only observes knows groups: one that is short is left, and a whole one would get nodes', async (t) => {
  const { stage } = await openGangs(t, observing)
  makeReady(stage)
  group(stage, 'train', 3)
  members(stage, 'train', 2)
  await stage.pass(30 * seconds)
  const launches = () => stage.operator.operator.journal.entries().filter(({ kind }) => kind === 'launch')
  assert.deepEqual([...launches()], [])
  assert.equal(toldOf(stage, 'train-0'), '')
  members(stage, 'train', 1, 2)
  await stage.pass(1 * minutes)
  assert.match(toldOf(stage, 'train-0'), /would launch a node for it/)
  assert.equal([...launches()].length, 3)
  assert.ok([...launches()].every(({ observed }) => observed === true))
  assert.deepEqual(liveClaims(stage), [])
})

test('GNG-41 a process that only observes decides about requests, and writes nothing on them', async (t) => {
  const { stage } = await openGangs(t, {
    ...observing,
    areServed: false,
    world: { servesRequests: true },
  })
  makeReady(stage)
  podTemplate(stage, 'train', podSpec('3'))
  request(stage, 'train', { count: 3 })
  await stage.pass(1 * minutes)
  assert.deepEqual(requestNow(stage, 'train')?.status?.conditions ?? [], [])
  assert.deepEqual(liveClaims(stage), [])
})

test('GNG-47 after a restart the room of a booking is not given to others while requests are still to be read', async (t) => {
  let heldMs = 0
  let stage: Stage | undefined
  const apiPath = (inner: Transport): Transport => ({
    send: async (sent, signal) => {
      const isRead = sent.method === 'GET' && sent.path.includes('/provisioningrequests')
      if (isRead && heldMs > 0) await stage?.world.clock.sleep(heldMs)
      return await inner.send(sent, signal)
    },
  })
  stage = await openRequests(t, {}, { apiPath })
  requested(stage, 'train', '3', { count: 1 })
  await stage.pass(1 * minutes)
  assert.equal(stateOf(stage, 'train', 'Provisioned'), 'True/CapacityIsProvisioned')
  const [claim, ...more] = liveClaims(stage)
  assert.deepEqual(more, [])
  const booked = [claim?.metadata.name ?? '', claim?.status?.nodeName ?? '']
  heldMs = 20 * seconds
  await stage.world.bury(stage.operator)
  waitingPod(stage, 'other', { cpu: '3' })
  await stage.start()
  await stage.pass(10 * seconds)
  assert.equal(liveClaims(stage).length, 1)
  await stage.pass(30 * seconds)
  assert.equal(liveClaims(stage).length, 2)
  const uid = stage.podNow('other')?.metadata.uid ?? ''
  const target = stage.operator.operator.state.plans.get(uid)?.target.name ?? ''
  assert.notEqual(target, '')
  assert.ok(!booked.includes(target), target)
})
