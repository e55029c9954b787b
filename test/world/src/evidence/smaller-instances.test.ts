/** Other ways in which instances are less than their type, on the KWOK provider (reports.md 1). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, labels, type NodeClaim } from '@tenon/api'
import { catalogueOf, pod, simulate } from '../testing/kwok-stage.test-support.ts'
import { hours, minutes, Stage } from '../testing/stage.test-support.ts'

const offerings = [
  {
    Requirements: [
      { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
      { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['zone-a'] },
    ],
    Price: 1,
    Available: true,
  },
]

function aKwokType(name: string, cpu: number, memory: string, price: number, pods = 110): object {
  return {
    name,
    architecture: 'amd64',
    operatingSystems: ['linux'],
    resources: { cpu: String(cpu), memory, pods: String(pods), 'ephemeral-storage': '20Gi' },
    offerings: offerings.map((offering) => ({ ...offering, Price: price })),
  }
}

/** Three types of 4 GiB, and one of 8. */
const likes = catalogueOf([
  aKwokType('a.small', 2, '4Gi', 1),
  aKwokType('b.small', 2, '4Gi', 1.1),
  aKwokType('c.small', 2, '4Gi', 1.2),
  aKwokType('a.large', 4, '8Gi', 2),
])

async function aStage(
  t: Parameters<typeof Stage.open>[0],
  consolidationPolicy: 'WhenEmpty' | 'WhenEmptyOrUnderutilized' = 'WhenEmpty',
): Promise<{ readonly stage: Stage; readonly types: () => readonly string[] }> {
  const stage = await Stage.open(t, {
    provider: 'kwok',
    kwok: { instanceTypes: likes },
    pool: {
      disruption: { consolidationPolicy, consolidateAfter: '30s', budgets: [{ nodes: '100%' }] },
    },
  })
  const launched = new Map<string, string>()
  const note = ({ metadata }: NodeClaim) =>
    launched.set(metadata.name, metadata.labels?.[labels.instanceType] ?? '')
  stage.world.cluster.server.local.subscribe(karpenterKinds.nodeClaim, { added: note, updated: note })
  return { stage, types: () => [...launched.values()] }
}

test('RPT-1 of types with the same figures one is tried, not each of them', async (t) => {
  const { stage, types } = await aStage(t)
  await simulate(stage, { 'machine-resources': 'memory:97%' })
  pod(stage, 'tight', { requests: { cpu: '1', memory: '4060Mi' } })
  await stage.pass(hours)
  assert.deepEqual(types(), ['a.small', 'a.large'])
})

test('RPT-1 consolidation moves no pod to a type that is likely to be as small as the one that was', async (t) => {
  const { stage, types } = await aStage(t, 'WhenEmptyOrUnderutilized')
  await simulate(stage, { 'machine-resources': 'memory:97%' })
  pod(stage, 'tight', { requests: { cpu: '1', memory: '4060Mi' } })
  await stage.pass(3 * hours)
  assert.deepEqual(types(), ['a.small', 'a.large'])
  assert.equal(stage.world.pods()[0]?.status?.phase, 'Running')
})

test('RPT-1 what was learned of a type counts for other pods, and after a restart', async (t) => {
  const { stage, types } = await aStage(t)
  await simulate(stage, { 'machine-resources': 'memory:97%' })
  pod(stage, 'tight', {
    requests: { cpu: '1', memory: '4060Mi' },
    nodeSelector: { [labels.instanceType]: 'a.small' },
  })
  await stage.pass(20 * minutes)
  stage.world.cluster.server.local.delete(kinds.pod, 'default', 'tight', { gracePeriodSeconds: 0 })
  await stage.pass(20 * minutes)
  assert.deepEqual(types(), ['a.small'])
  assert.deepEqual(stage.world.claims(), [])
  await stage.restart()
  const wanted = {
    requests: { cpu: '1500m', memory: '4050Mi' },
    nodeSelector: { [labels.instanceType]: 'a.small' },
  }
  pod(stage, 'other', wanted)
  await stage.pass(10 * minutes)
  assert.deepEqual(types(), ['a.small'], 'nothing that would be too small is launched')
})

test('RPT-1 instances that take fewer pods than their type says are filled with as many', async (t) => {
  const { stage } = await aStage(t)
  await simulate(stage, { 'machine-resources': 'pods:5%' })
  for (let i = 0; i < 12; i++) pod(stage, `small-${i}`, { requests: { cpu: '50m', memory: '50Mi' } })
  await stage.pass(30 * minutes)
  const bound = stage.world.pods().filter(({ spec }) => (spec.nodeName ?? '') !== '')
  assert.equal(bound.length, 12)
  assert.equal(stage.world.claims().length, 3)
})
