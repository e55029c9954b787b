/** NodeOverlays on prices that are multiples of a 2XS (reports-2.md 10). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, karpenterKinds, type NodeOverlay } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { aPool, CleverStage, minutes, plenty, seconds } from './stage.test-support.ts'

test('RPB-27 an overlay with an absolute price is told and does not decide', async (t) => {
  const stage = await CleverStage.open(t, {
    pool: aPool(['XS', 'M']),
    cleverCloud: { settings: { quota: plenty } },
    settings: { featureGates: { ...defaultSettings.featureGates, nodeOverlay: true } },
  })
  const overlay: NodeOverlay = {
    apiVersion: 'karpenter.sh/v1alpha1',
    kind: 'NodeOverlay',
    metadata: { name: 'negotiated' },
    // Euros; an XS of 1.85 times a 2XS would be the dearer one.
    spec: {
      requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: ['M'] }],
      price: '0.1167',
    },
  }
  stage.world.create(karpenterKinds.nodeOverlay, overlay)
  await stage.pass(10 * seconds)
  const told = stage.world.cluster.server.local.get(karpenterKinds.nodeOverlay, undefined, 'negotiated')
  assert.equal(told && conditionOf(told, 'Ready')?.status, 'False')
  assert.match((told && conditionOf(told, 'ValidationSucceeded')?.message) ?? '', /no currency/)
  stage.deploy('web', 1, { cpu: '1', memory: '1Gi' })
  assert.ok(await stage.until(() => stage.allRun(1), 5 * minutes))
  assert.deepEqual(stage.flavors(), ['XS'])
})
