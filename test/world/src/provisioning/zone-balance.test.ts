/** Which zones new nodes go to where prices leave the choice. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { explainNodePool, Study } from '@tenon/ask'
import {
  admitsValue,
  comparePrices,
  type InstanceType,
  karpenterKinds,
  labels,
  type NodeClaim,
} from '@tenon/api'
import { balanceCost, poolWishes, type Settings } from '@tenon/operator/objects'
import { ProviderError, type ProviderInstance } from '@tenon/provider'
import { aType, madeClaims, PoolCloud, waitingPod } from '../testing/pools.test-support.ts'
import { snapshotOf } from '../testing/snapshot.test-support.ts'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

const zones = ['zone-a', 'zone-b', 'zone-c']

/** Sells the cheapest offering that a claim allows, of equal prices the last one. */
class ZonedCloud extends PoolCloud {
  readonly soldOut = new Set<string>()
  /** Launches that failed. */
  refusals = 0

  override async create(
    claim: NodeClaim,
    _?: AbortSignal,
    types: readonly InstanceType[] = this.instanceTypes,
  ): Promise<ProviderInstance> {
    const zoneOf = ({ requirements }: InstanceType['offerings'][number]) =>
      requirements.find(({ key }) => key === labels.zone)?.values?.[0] ?? ''
    const allows = (zone: string) =>
      claim.spec.requirements.every((each) => each.key !== labels.zone || admitsValue(each, zone))
    const [chosen] = types
      .flatMap(({ offerings }) => offerings)
      .filter((offering) => offering.available && allows(zoneOf(offering)))
      .toReversed()
      .toSorted((a, b) => comparePrices(a.pricePerHour, b.pricePerHour))
    const zone = chosen && zoneOf(chosen)
    const tags = { [labels.instanceType]: 'medium', [labels.capacityType]: 'on-demand' }
    if (zone === undefined) throw new ProviderError('insufficientCapacity', 'nothing is for sale')
    if (this.soldOut.has(zone)) {
      this.refusals++
      const offering = { instanceType: 'medium', zone, capacityType: 'on-demand' }
      throw new ProviderError('insufficientCapacity', `${zone} is sold out`, { offerings: [offering] })
    }
    this.extras = { labels: { ...tags, [labels.os]: 'linux', [labels.zone]: zone } }
    return await super.create(claim)
  }
}

async function open(
  t: TestContext,
  {
    annotations = {},
    prices = [0.2, 0.2, 0.2],
    settings = {},
  }: {
    readonly annotations?: Readonly<Record<string, string>>
    readonly prices?: readonly number[]
    readonly settings?: Partial<Settings>
  } = {},
): Promise<{ readonly stage: Stage; readonly cloud: ZonedCloud }> {
  let stage: Stage | undefined
  const cloud = new ZonedCloud(() => (stage as Stage).world.clock)
  const type = aType('medium', 4, zones)
  const offerings = type.offerings.map((each, i) => ({ ...each, pricePerHour: prices[i] ?? 0 }))
  cloud.instanceTypes = [{ ...type, offerings }]
  stage = await Stage.open(t, { idle: true, provider: cloud, settings })
  stage.patch(karpenterKinds.nodePool, 'default', { metadata: { annotations } })
  await stage.start()
  return { stage, cloud }
}

/** Pods of which each needs a node for itself. */
async function wait(stage: Stage, count: number, prefix = 'pod'): Promise<void> {
  for (let i = 0; i < count; i++) waitingPod(stage, `${prefix}-${i}`, { cpu: '3' })
  await stage.pass(40 * seconds)
}

function perZone(stage: Stage): readonly number[] {
  const claims = madeClaims(stage)
  return zones.map((zone) => claims.filter(({ metadata }) => metadata.labels?.[labels.zone] === zone).length)
}

test('WNT-33 nine pods of which each needs a node get three nodes in each zone', async (t) => {
  const { stage } = await open(t)
  await wait(stage, 9)
  assert.deepEqual(perZone(stage), [3, 3, 3])
})

test('WNT-33 after an outage of a zone, new nodes make up for it, over a restart too', async (t) => {
  const { stage, cloud } = await open(t)
  await wait(stage, 10, 'first')
  assert.deepEqual(perZone(stage), [4, 3, 3])
  cloud.soldOut.add('zone-b')
  await wait(stage, 10, 'second')
  assert.deepEqual(perZone(stage), [9, 3, 8])
  cloud.soldOut.clear()
  await stage.restart()
  await stage.pass(10 * minutes)
  await wait(stage, 10, 'third')
  assert.deepEqual(perZone(stage), [10, 10, 10])
})

test('WNT-33 nodes that are being replaced do not count', async (t) => {
  const { stage } = await open(t)
  await wait(stage, 3)
  const leaving = madeClaims(stage).filter(({ metadata }) => metadata.labels?.[labels.zone] === 'zone-b')
  for (const { metadata } of leaving) await stage.deleteClaim(metadata.name)
  await wait(stage, 1, 'next')
  assert.deepEqual(
    madeClaims(stage)
      .slice(3)
      .map(({ metadata }) => metadata.labels?.[labels.zone]),
    ['zone-b'],
  )
})

test('WNT-34 with zone-balance, nodes may cost that much more, and explain says how much', async (t) => {
  const prices = [0.2, 0.202, 0.202]
  const { stage } = await open(t, { prices, annotations: { 'tenon.sh/zone-balance': '2%' } })
  await wait(stage, 9)
  assert.deepEqual(perZone(stage), [3, 3, 3])
  const pool = stage.poolNow() ?? assert.fail('default')
  const costs = madeClaims(stage).map((claim) => balanceCost(claim, poolWishes(pool)))
  assert.ok(Math.abs(costs.reduce((sum, cost) => sum + cost, 0) - 6 * 0.002) < 1e-6, String(costs))
  const study = await Study.open(await snapshotOf(stage))
  const found = await explainNodePool(study, 'default', new AbortController().signal)
  assert.deepEqual(found?.zoneBalance, { nodes: 6, pricePerHour: 0.012 })
  await study.close()
})

test('WNT-34 what balance costs counts while it is wanted, so that consolidation does not save it', () => {
  const [price, none] = ['0.1', 'NaN'].map(
    (cost): NodeClaim => ({
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      metadata: { name: 'a', annotations: { 'tenon.sh/zone-balance-cost': cost } },
      spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements: [] },
    }),
  )
  assert.equal(price && balanceCost(price, { zoneBalance: 0.02 }), 0.1)
  assert.equal(price && balanceCost(price, {}), 0)
  assert.equal(none && balanceCost(none, { zoneBalance: 0.02 }), 0)
})

test('WNT-34 without the annotation, or with one that cannot be read, the cheapest zone is taken', async (t) => {
  for (const annotations of [{}, { 'tenon.sh/zone-balance': '-2%' }]) {
    const { stage } = await open(t, { prices: [0.2, 0.202, 0.202], annotations })
    await wait(stage, 6)
    assert.deepEqual(perZone(stage), [6, 0, 0])
  }
})

test('WNT-33 in compatibility mode the provider chooses', async (t) => {
  const { stage } = await open(t, { settings: { compatibility: 'karpenter' } })
  await wait(stage, 3)
  assert.deepEqual(perZone(stage), [0, 0, 3])
})

test('SCA-8 a zone that is sold out under 5,000 pods costs few launches, and all pods get nodes elsewhere', async (t) => {
  const { stage, cloud } = await open(t)
  cloud.soldOut.add('zone-b')
  for (let i = 0; i < 5000; i++) waitingPod(stage, `pod-${i}`, { cpu: '100m' })
  await stage.pass(40 * seconds)
  assert.ok(cloud.refusals <= 20, `${cloud.refusals} launches refused`)
  const [a = 0, b, c = 0] = perZone(stage)
  assert.equal(b, 0)
  assert.ok(Math.abs(a - c) <= 1)
  // 38 pods fit a node beside what the kubelet keeps.
  assert.ok((a + c) * 38 >= 5000, `${a + c} nodes`)
})
