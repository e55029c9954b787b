import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { hours, seconds, Stage } from '../testing/stage.test-support.ts'
import { aType } from '../testing/pools.test-support.ts'

/** A type of this price. */
function priced(pricePerHour: number) {
  const type = aType('medium', 4)
  return { ...type, offerings: type.offerings.map((offering) => ({ ...offering, pricePerHour })) }
}

const cost = async (stage: Stage) => {
  await stage.pass(11 * seconds)
  return await stage.metric('nodepools_cost_total', { nodepool: 'default' })
}

test('STA-61 a metric tells what the instances of a NodePool cost', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.instanceTypes = [priced(1.5)]
  assert.equal(await cost(stage), 0)
  await stage.ready('a')
  await stage.claim('b')
  assert.equal(await cost(stage), 3)
  await stage.deleteClaim('b')
  assert.equal(await cost(stage), 1.5)
  stage.delete(karpenterKinds.nodePool, 'default')
  await stage.pass(12 * seconds)
  const { registry } = stage.operator.operator.metrics
  assert.deepEqual((await registry.getSingleMetric('karpenter_nodepools_cost_total')?.get())?.values, [])
})

test('STA-63 STA-64 prices are read again every hour, with the overlays of that time', async (t) => {
  const featureGates = { ...defaultSettings.featureGates, nodeOverlay: true }
  const stage = await Stage.open(t, { settings: { featureGates } })
  stage.cloud.instanceTypes = [priced(1.5)]
  await stage.ready('a')
  assert.equal(await cost(stage), 1.5)
  stage.world.create(karpenterKinds.nodeOverlay, {
    apiVersion: 'karpenter.sh/v1alpha1',
    kind: 'NodeOverlay',
    metadata: { name: 'dearer' },
    spec: { requirements: [], priceAdjustment: '+2.5' },
  })
  assert.equal(await cost(stage), 1.5)
  await stage.pass(hours)
  assert.equal(await cost(stage), 4)
})
