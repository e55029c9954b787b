/** Drift without surge where what should follow does not come (quotas.md 1). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { autoscalingKinds, karpenterKinds } from '@tenon/api'
import {
  cpu,
  left,
  mediumLabels,
  openDisruption,
  setDrifted,
} from '../disruption/disruption-stage.test-support.ts'
import { waitingPod } from '../testing/pools.test-support.ts'
import { minutes, seconds } from '../testing/stage.test-support.ts'

test('WNT-7 with drift-without-surge, no node goes first while instances of its NodePool do not become nodes', async (t) => {
  const stage = await openDisruption(t, {
    idle: true,
    servesQuotas: true,
    disruption: { consolidateAfter: 'Never' },
  })
  const annotations = { 'tenon.sh/drift-without-surge': 'true' }
  stage.patch(karpenterKinds.nodePool, 'default', { metadata: { annotations } })
  stage.world.create(autoscalingKinds.capacityQuota, {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityQuota',
    metadata: { name: 'ceiling' },
    spec: { limits: { resources: { nodes: '2' } } },
  })
  await stage.start()
  await stage.ready('a', {}, { labels: mediumLabels })
  await stage.pod('pod-a', 'node-a', cpu('3'))
  // What follows a node that went first. Its instance never joins, so there is another one every 15 minutes.
  waitingPod(stage, 'pod-b', { cpu: '3' })
  await stage.pass(30 * seconds)
  setDrifted(stage, 'a')
  await stage.pass(70 * minutes)
  assert.ok(left(stage).includes('a'), left(stage).join(' '))
})
