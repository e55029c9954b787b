/** NodePools whose nodes cost something beside their instances. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { costReport, pricedInstances } from '@tenon/ask/cost'
import { type InstanceType, karpenterKinds, labels } from '@tenon/api'
import { defaultSettings } from '@tenon/operator/objects'
import { aType, madeClaims, PoolCloud, waitingPod } from '../testing/pools.test-support.ts'
import { snapshotOf } from '../testing/snapshot.test-support.ts'
import { seconds, Stage } from '../testing/stage.test-support.ts'

/** Two pods of three cores, for which two small instances cost little less than a large one. */
async function twoWait(t: TestContext, perNode: string): Promise<Stage> {
  let stage: Stage | undefined
  const cloud = new PoolCloud(() => (stage as Stage).world.clock)
  const large = aType('large', 8)
  const dearer = large.offerings.map((offering) => ({ ...offering, pricePerHour: 0.405 }))
  cloud.instanceTypes = [aType('small', 4), { ...large, offerings: dearer }] satisfies InstanceType[]
  const featureGates = { ...defaultSettings.featureGates, plannedPlacement: true }
  stage = await Stage.open(t, { idle: true, provider: cloud, settings: { featureGates } })
  const annotations = { 'tenon.sh/price-per-node': perNode }
  stage.patch(karpenterKinds.nodePool, 'default', { metadata: { annotations } })
  await stage.start()
  for (const name of ['one', 'other']) waitingPod(stage, name, { cpu: '3' })
  await stage.pass(30 * seconds)
  return stage
}

/** Instance types of the first claim, which has both pods only if it must be large. */
function typesOfFirst(stage: Stage): readonly string[] | undefined {
  const [claim] = madeClaims(stage)
  return claim?.spec.requirements.find(({ key }) => key === labels.instanceType)?.values
}

test('WNT-38 what each node costs beside its instance decides for fewer nodes', async (t) => {
  const stage = await twoWait(t, '0.01')
  assert.deepEqual(typesOfFirst(stage), ['large'])
})

test('WNT-38 without it, or where it cannot be read, the instances alone decide, and an event says why', async (t) => {
  for (const perNode of ['0', 'NaN']) {
    const stage = await twoWait(t, perNode)
    assert.ok(typesOfFirst(stage)?.includes('small'))
    const [event] = stage.events('AnnotationIgnored')
    if (perNode === '0') assert.equal(event, undefined)
    else
      assert.match(
        event?.message ?? '',
        /^metadata.annotations\["tenon.sh\/price-per-node"\]: "NaN" .*; use an amount per hour/,
      )
  }
})

test('WNT-38 cost shows what nodes cost beside their instances as its own part', async (t) => {
  const stage = await twoWait(t, '0.01')
  const [claim] = madeClaims(stage)
  const tags = { [labels.instanceType]: 'large', [labels.zone]: 'zone-1', [labels.capacityType]: 'on-demand' }
  stage.patch(karpenterKinds.nodeClaim, claim?.metadata.name ?? '', { metadata: { labels: tags } })
  await stage.pass(seconds)
  const report = costReport(pricedInstances(await snapshotOf(stage)), 'nodepool')
  assert.ok(Math.abs(report.totalPerHour - 0.415) < 1e-9, String(report.totalPerHour))
  assert.ok(Math.abs(report.surchargePerHour - 0.01) < 1e-9)
})
