/** ProvisioningRequests that nobody would write on purpose (gangs.md 1, 8); a node holds one pod of five cores. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { autoscalingKinds } from '@tenon/api'
import { podSpec, podTemplate } from '../capacity-buffers/buffer-stage.test-support.ts'
import { minutes, seconds } from '../testing/stage.test-support.ts'
import { liveClaims } from './gang-stage.test-support.ts'
import {
  messageOf,
  openRequests,
  request,
  requested,
  requestNow,
  stateOf,
} from './request-stage.test-support.ts'

test('two sets of one PodTemplate count both', async (t) => {
  const stage = await openRequests(t)
  podTemplate(stage, 'one', podSpec('5'))
  request(stage, 'twice', { templates: ['one', 'one'], count: 2 })
  await stage.pass(2 * minutes)
  assert.equal(stateOf(stage, 'twice', 'Provisioned'), 'True/CapacityIsProvisioned')
  assert.equal(liveClaims(stage).length, 4)
})

test('a request for more pods than can be fails, and others are served', async (t) => {
  const stage = await openRequests(t)
  requested(stage, 'vast', '1m', { count: 2_000_000_000 })
  requested(stage, 'usual', '3', { parameters: { maxRunDurationSeconds: '86400' } })
  await stage.pass(2 * minutes)
  assert.equal(stateOf(stage, 'vast', 'Failed'), 'True/FailedToCreatePods')
  assert.match(messageOf(stage, 'vast', 'Failed'), /it is for 2000000000 pods; at most 10000 can be/)
  assert.equal(stateOf(stage, 'usual', 'Provisioned'), 'True/CapacityIsProvisioned')
})

test('what a template says that is for one pod alone is left out', async (t) => {
  const stage = await openRequests(t)
  requested(
    stage,
    'gated',
    '3',
    {},
    {
      nodeName: 'nowhere',
      schedulingGates: [{ name: 'kueue.x-k8s.io/admission' }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'not-yet' } }],
    },
  )
  await stage.pass(2 * minutes)
  assert.equal(stateOf(stage, 'gated', 'Provisioned'), 'True/CapacityIsProvisioned')
})

test('a request that is made again under its name is another one', async (t) => {
  const stage = await openRequests(t)
  requested(stage, 'again', '5', { count: 1 })
  await stage.pass(2 * minutes)
  const first = requestNow(stage, 'again')?.metadata.uid
  stage.world.cluster.server.local.delete(autoscalingKinds.provisioningRequest, 'default', 'again')
  request(stage, 'again', { count: 3 })
  await stage.pass(2 * minutes)
  assert.notEqual(requestNow(stage, 'again')?.metadata.uid, first)
  assert.equal(stateOf(stage, 'again', 'Provisioned').split('/')[0], 'True')
  assert.equal(liveClaims(stage).length, 3)
  await stage.pass(30 * seconds)
  assert.equal(liveClaims(stage).length, 3)
})
