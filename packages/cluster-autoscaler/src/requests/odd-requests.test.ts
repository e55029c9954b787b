/** ProvisioningRequests that nobody would write on purpose, in the loop (gangs.md 1, 8). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodTemplate } from '@tenon/api'
import { aGroup } from '../testing/fake-groups.test-support.ts'
import { aNode, aPod } from '../testing/objects.test-support.ts'
import { RequestStage } from './request-stage.test-support.ts'

const minute = 60_000

/** One group of nodes with 4 cores, whose only node is full. */
function oneGroup(): RequestStage {
  return new RequestStage({
    groups: [aGroup('g', { maxSize: 100 })],
    nodes: { g: [aNode('g0')] },
    pods: [aPod('keep', { cpu: '4', nodeName: 'g0', owner: 'keep' })],
  })
}

test('two sets of one PodTemplate count both', async () => {
  const stage = oneGroup()
  stage.template('t', '3')
  stage.request('r', { templates: ['t', 't'], count: 2 })
  await stage.loop()
  assert.deepEqual(stage.cloud.calls, ['increase g 4'])
})

test('parameters that nobody knows are ignored, and so is a deadline, which this mode does not have', async () => {
  const stage = oneGroup()
  const parameters = { maxRunDurationSeconds: '86400', ValidUntilSeconds: '0', noRetry: 'TRUE' }
  stage.request('r', { parameters, cpu: '5' })
  await stage.loopFor(20 * minute)
  assert.equal(stage.state('r', 'Provisioned'), 'False/CapacityIsNotFound')
  assert.equal(stage.state('r', 'Failed'), 'absent')
})

test('a request for more pods than can be fails, and the others are served', async () => {
  const stage = oneGroup()
  stage.request('vast', { count: 2_000_000_000, cpu: '1m' })
  stage.request('r', { cpu: '3' })
  await stage.loopFor(minute)
  assert.equal(stage.state('vast', 'Failed'), 'True/FailedToCreatePods')
  assert.match(stage.message('vast', 'Failed'), /it is for 2000000000 pods; at most 10000 can be/)
  assert.equal(stage.state('r', 'Provisioned'), 'True/CapacityIsProvisioned')
})

test('a PodTemplate that cannot be read fails its request alone', async () => {
  const stage = oneGroup()
  stage.template('odd', 'lots')
  stage.request('bad', { templates: ['odd'] })
  stage.request('r', { cpu: '3' })
  await stage.loopFor(minute)
  assert.equal(stage.state('bad', 'Failed'), 'True/FailedToCreatePods')
  assert.match(stage.message('bad', 'Failed'), /PodTemplate odd cannot be read: .*lots/)
  assert.equal(stage.state('r', 'Provisioned'), 'True/CapacityIsProvisioned')
})

test('what a template says that is for one pod alone is left out', async () => {
  const stage = oneGroup()
  stage.template('t', '3', {
    nodeName: 'g0',
    schedulingGates: [{ name: 'kueue.x-k8s.io/admission' }],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'not-yet' } }],
  })
  stage.request('r', { templates: ['t'] })
  await stage.loop()
  assert.equal(stage.state('r', 'Provisioned'), 'True/CapacityIsProvisioned')
})

test('a template of 200 kB, and a pod with the name of one that stands for room, are like others', async () => {
  const stage = oneGroup()
  stage.template('t', '3')
  const large = stage.podTemplates.get('t') as PodTemplate
  const annotations = { note: 'x'.repeat(200_000) }
  const template = { ...large.template, metadata: { ...large.template.metadata, annotations } }
  stage.podTemplates.set('t', { ...large, template })
  stage.addPod(aPod('r-0-0', { cpu: '3' }))
  stage.request('r', { templates: ['t'], count: 3 })
  await stage.loop()
  await stage.loop()
  assert.deepEqual(stage.cloud.calls.toSorted(), ['increase g 1', 'increase g 3'])
})

test('a request that is made again under its name is another one', async () => {
  const stage = oneGroup()
  stage.request('r', { count: 1 })
  await stage.loop()
  assert.equal(stage.state('r', 'Provisioned'), 'True/CapacityIsProvisioned')
  stage.request('r', { count: 4 })
  await stage.loopFor(10_000)
  assert.equal(stage.state('r', 'Provisioned'), 'True/CapacityIsProvisioned')
  // The node that was asked for the first time is room for one of the four.
  assert.deepEqual(stage.cloud.calls, ['increase g 1', 'increase g 3'])
})
