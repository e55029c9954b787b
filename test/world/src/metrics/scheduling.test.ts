/** What is measured of scheduling decisions (operations.md 9.1). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { anOversizedNode, consolidate, untilBegun } from '../disruption/replacing-stage.test-support.ts'
import { seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, waitingPod } from '../testing/pools.test-support.ts'

const duration = 'scheduler_scheduling_duration_seconds'

async function depths(stage: Stage) {
  const { registry } = stage.operator.operator.metrics
  const family = await registry.getSingleMetric('karpenter_scheduler_queue_depth')?.get()
  return (family?.values ?? []).map(({ labels, value }) => ({ id: labels['scheduling_id'], value }))
}

function remove(stage: Stage, pod: string): void {
  stage.world.cluster.server.local.delete(kinds.pod, 'default', pod, { gracePeriodSeconds: 0 })
}

test('a pass with pods is measured as decision and as pass, an empty one as pass alone', async (t) => {
  const stage = await Stage.open(t)
  const passes = async () => await stage.metric(duration, { controller: 'provisioner' })
  const before = await passes()
  waitingPod(stage, 'p', { cpu: '100' })
  await stage.pass(2 * seconds)
  assert.equal(await passes(), before + 2)
  remove(stage, 'p')
  await stage.pass(60 * seconds)
  const since = await passes()
  waitingPod(stage, 'brief', { cpu: '100' })
  await stage.pass(500)
  remove(stage, 'brief')
  await stage.pass(2 * seconds)
  assert.equal(await passes(), since + 1)
})

test('the depth of a decision is shown until the next one begins', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  stage.cloud.instanceTypes = [aType('medium', 4)]
  waitingPod(stage, 'p')
  await stage.start()
  await stage.pass(3 * seconds)
  const [first, ...others] = await depths(stage)
  assert.deepEqual([first?.value, others], [0, []])
  await stage.pass(100)
  assert.equal((await depths(stage))[0]?.id, first?.id)
  waitingPod(stage, 'q')
  await stage.pass(5 * seconds)
  const later = await depths(stage)
  assert.equal(later.length, 1)
  assert.notEqual(later[0]?.id, first?.id)
  assert.equal(await stage.metric('scheduler_unfinished_work_seconds'), 0)
})

test('questions about removing nodes are measured apart', async (t) => {
  const stage = await anOversizedNode(t)
  assert.equal(await stage.metric(duration, { controller: 'disruption' }), 0)
  consolidate(stage)
  await untilBegun(stage)
  assert.ok((await stage.metric(duration, { controller: 'disruption' })) > 0)
})
