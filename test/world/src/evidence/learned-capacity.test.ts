/** Instances that are smaller than their type (reports.md 1, "Learned capacity"). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, karpenterKinds } from '@tenon/api'
import { metricsHandler } from '@tenon/operator'
import { readText } from '@tenon/runtime'
import { aPool } from '../exoscale/manifests.test-support.ts'
import { EvidenceStage, hours, minutes } from './evidence-stage.test-support.ts'

const standard = ['standard.medium', 'standard.large', 'standard.extra-large']
const smallGuests = { cloudSettings: { memoryCapacityPercent: 97 } }
/** Nearly all that a standard.medium has for pods by its catalogue. */
const tight = { cpu: '1', memory: '3600Mi' }

interface SmallerType {
  readonly instanceType: string
  readonly capacity: { readonly catalogue: object; readonly found: object }
  readonly forgottenAt?: string
}

async function smallerTypes(stage: EvidenceStage): Promise<readonly SmallerType[]> {
  const handler = metricsHandler(stage.operator.operator)
  const response = await handler({ method: 'GET', path: '/debug/offerings', headers: {} })
  return (JSON.parse(await readText(response.body)) as { readonly smaller: readonly SmallerType[] }).smaller
}

test('RPT-1 a pod that does not fit into what guests see of a type runs on the next larger type', async (t) => {
  const stage = await EvidenceStage.open(t, smallGuests)
  stage.world.create(karpenterKinds.nodePool, aPool('standard', standard))
  stage.aPod('tight', tight)
  await stage.start()
  await stage.pass(hours)
  assert.deepEqual(stage.types(), ['standard.medium', 'standard.large'])
  assert.equal(stage.typeUnder('tight'), 'standard.large')
  const shown = await smallerTypes(stage)
  assert.deepEqual(
    shown.map(({ instanceType, capacity }) => [instanceType, capacity.catalogue, capacity.found]),
    [
      ['standard.large', { memory: '8Gi' }, { memory: '8136949Ki' }],
      ['standard.medium', { memory: '4Gi' }, { memory: '4068474Ki' }],
    ],
  )
  assert.equal(
    stage.events('InstanceTypeSmaller').length,
    2,
    'once for each type of which there was an instance',
  )
  assert.match(
    stage.events('InstanceTypeSmaller')[0] ?? '',
    /^NodePool\/standard: Nodes of instance type standard.medium have memory .* instead of 4Gi/,
  )
})

test('RPT-1 pods that are nominated for an instance which is smaller than planned do not keep each other from it', async (t) => {
  const stage = await EvidenceStage.open(t, {
    seed: 629965964,
    cluster: { gitVersion: 'v1.36.0' },
    cloudSettings: { memoryCapacityPercent: 80 },
  })
  stage.world.create(karpenterKinds.nodePool, aPool('standard', ['standard.small', ...standard]))
  const pods = Array.from({ length: 14 }, (_, index) => `web-${index}`)
  for (const name of pods) stage.aPod(name, { memory: '770Mi' }, { generateName: 'web-' })
  for (const name of ['a', 'b']) stage.aPod(name, { memory: '385Mi' })
  await stage.start()
  await stage.pass(6 * minutes)
  const waiting = [...pods, 'a', 'b'].filter((name) => stage.pod(name)?.spec.nodeName === undefined)
  assert.deepEqual(waiting, [])
  assert.deepEqual(stage.events('NodeRefused'), [])
})

test('RPT-1 a node that is too small is found to be so once, also while pods like the one it was for run', async (t) => {
  const stage = await EvidenceStage.open(t, { cloudSettings: { memoryCapacityPercent: 80 } })
  stage.world.create(karpenterKinds.nodePool, aPool('standard', standard))
  const web = { generateName: 'web-' }
  stage.aPod('web-1', tight, web)
  stage.aPod('unborn', { cpu: '1', memory: '1Gi' })
  await stage.start()
  await stage.until(() => stage.launched.size === 1, minutes)
  stage.remove('unborn')
  await stage.until(() => stage.pod('web-1')?.spec.nodeName !== undefined, 5 * minutes)
  await stage.pass(minutes)
  stage.aPod('web-2', tight, web)
  await stage.until(() => stage.pod('web-2')?.spec.nodeName !== undefined, 10 * minutes)
  assert.deepEqual(stage.types(), ['standard.large', 'standard.medium', 'standard.large'])
  const handler = metricsHandler(stage.operator.operator)
  const { body } = await handler({ method: 'GET', path: '/metrics', headers: {} })
  assert.match(await readText(body), /^tenon_nodes_launched_in_vain_total\{.*\} 1$/m)
})

test('RPT-2 in a pool of that type alone one node is bought, the pod is told why, and others are served', async (t) => {
  const stage = await EvidenceStage.open(t, smallGuests)
  stage.world.create(karpenterKinds.nodePool, aPool('standard', ['standard.medium']))
  stage.aPod('tight', tight)
  await stage.start()
  await stage.pass(10 * minutes)
  stage.aPod('other', { cpu: '1', memory: '3Gi' })
  await stage.pass(50 * minutes)
  assert.deepEqual(stage.types(), ['standard.medium', 'standard.medium'])
  assert.equal(stage.typeUnder('other'), 'standard.medium')
  assert.equal(stage.pod('tight')?.spec.nodeName, undefined)
  const [told] = stage.events('NodeRefused', 'Warning')
  assert.match(
    told ?? '',
    /^Pod\/tight: Node .* was launched for pod default\/tight and has less memory than/,
  )
  const condition = conditionOf(stage.pool('standard'), 'LaunchesServePods')
  assert.equal(condition?.status, 'False')
  assert.match(condition?.message ?? '', /default\/tight/)
  assert.equal(conditionOf(stage.pool('standard'), 'Ready')?.status, 'True')
})
