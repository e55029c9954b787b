/** Other names that a provider has for labels (scheduling.md 1), and what can be disabled (operations.md 9.2). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { labels } from '@tenon/api'
import { seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, createPool, madeClaims, PoolCloud, waitingPod } from '../testing/pools.test-support.ts'
import { aKwokPool, type WorldOptions } from '../world.ts'

const alias = 'topology.csi.example.com/zone'

class AliasingCloud extends PoolCloud {
  readonly labelAliases: Readonly<Record<string, string>> = { [alias]: labels.zone }
}

async function open(t: TestContext, settings: WorldOptions['settings'] = {}): Promise<Stage> {
  let stage: Stage | undefined
  const cloud = new AliasingCloud(() => (stage as Stage).world.clock)
  cloud.instanceTypes = [aType('medium', 4, ['zone-1', 'zone-2'])]
  cloud.extras = { labels: { [labels.instanceType]: 'medium', [labels.zone]: 'zone-2' } }
  stage = await Stage.open(t, { idle: true, provider: cloud, settings })
  return stage
}

function zonesOf(stage: Stage): readonly (readonly string[] | undefined)[] {
  return madeClaims(stage).map(({ spec }) => spec.requirements.find(({ key }) => key === labels.zone)?.values)
}

test("a pod that chooses its zone by the name of the provider's driver gets a node there", async (t) => {
  const stage = await open(t)
  waitingPod(stage, 'pod', { spec: { nodeSelector: { [alias]: 'zone-2' } } })
  await stage.start()
  await stage.pass(10 * seconds)
  assert.deepEqual(zonesOf(stage), [['zone-2']])
})

test('so does every pod of a NodePool that is kept to a zone by that name', async (t) => {
  const stage = await open(t)
  const { template } = aKwokPool().spec
  const requirements = [{ key: alias, operator: 'In' as const, values: ['zone-2'] }]
  const spec = { template: { ...template, spec: { ...template.spec, requirements } }, weight: 100 }
  createPool(stage, aKwokPool('zonal', spec))
  waitingPod(stage, 'pod')
  await stage.start()
  await stage.pass(10 * seconds)
  assert.deepEqual(zonesOf(stage), [['zone-2']])
})

test('without observability of the cluster state there are no costs of NodePools among the metrics', async (t) => {
  for (const clusterStateObservability of [true, false]) {
    const stage = await open(t, { clusterStateObservability })
    await stage.start()
    await stage.pass(30 * seconds)
    const { registry } = stage.operator.operator.metrics
    const lines = (await registry.metrics()).split('\n')
    const isShown = lines.some((line) => line.startsWith('karpenter_nodepools_cost_total{'))
    assert.equal(isShown, clusterStateObservability)
    assert.ok(lines.some((line) => line.startsWith('karpenter_cluster_state_synced')))
  }
})
