/** What a shortage in the cloud does to launches. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  admitsValue,
  comparePrices,
  type InstanceType,
  labels,
  type NodeClaim,
  type NodePool,
} from '@tenon/api'
import { metricsHandler, type Settings } from '@tenon/operator'
import { ProviderError, type ProviderInstance } from '@tenon/provider'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, createPool, madeClaims, PoolCloud, waitingPod } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'

const firstPauseMs = 3 * minutes

interface Attempt {
  readonly offering: string
  readonly isRefused: boolean
  readonly atMs: number
}

/** A cloud that launches the cheapest offering a claim allows, as far as it is not sold out. */
class SellingCloud extends PoolCloud {
  readonly soldOut = new Set<string>()
  readonly attempts: Attempt[] = []
  /** Time until the cloud says no, and yes. */
  refusalMs = 200
  launchMs = 1000
  clockOf!: () => { sleep(ms: number): Promise<void>; now(): number }

  override async create(
    claim: NodeClaim,
    _?: AbortSignal,
    instanceTypes: readonly InstanceType[] = this.instanceTypes,
  ): Promise<ProviderInstance> {
    const [cheapest] = offers(claim, instanceTypes)
    if (cheapest === undefined) throw new ProviderError('insufficientCapacity', 'nothing is to be had')
    const { instanceType, zone, capacityType } = cheapest
    const offering = `${instanceType}/${zone}/${capacityType}`
    const isRefused = this.soldOut.has(offering)
    this.attempts.push({ offering, isRefused, atMs: this.clockOf().now() })
    await this.clockOf().sleep(isRefused ? this.refusalMs : this.launchMs)
    if (isRefused) {
      throw new ProviderError('insufficientCapacity', `${offering} is sold out`, {
        offerings: [{ instanceType, zone, capacityType }],
      })
    }
    this.extras = {
      labels: {
        [labels.os]: 'linux',
        [labels.instanceType]: instanceType,
        [labels.zone]: zone,
        [labels.capacityType]: capacityType,
      },
    }
    return await super.create(claim)
  }

  launches(): readonly string[] {
    return this.attempts.filter(({ isRefused }) => !isRefused).map(({ offering }) => offering)
  }

  refusals(): readonly Attempt[] {
    return this.attempts.filter(({ isRefused }) => isRefused)
  }
}

function offers(claim: NodeClaim, types: readonly InstanceType[]) {
  const allows = (key: string, value: string) =>
    claim.spec.requirements.every((each) => each.key !== key || admitsValue(each, value))
  return types
    .filter(({ name }) => allows(labels.instanceType, name))
    .flatMap(({ name, offerings }) =>
      offerings
        .filter(({ available }) => available)
        .map(({ requirements, pricePerHour }) => {
          const valueOf = (wanted: string) =>
            requirements.find(({ key }) => key === wanted)?.values?.[0] ?? ''
          return {
            instanceType: name,
            zone: valueOf(labels.zone),
            capacityType: valueOf(labels.capacityType),
            pricePerHour,
          }
        }),
    )
    .filter(
      ({ zone, capacityType }) => allows(labels.zone, zone) && allows(labels.capacityType, capacityType),
    )
    .toSorted((a, b) => comparePrices(a.pricePerHour, b.pricePerHour))
}

/** A type that is to be had on the spot market too, for a third of its price. */
function aSpotType(name: string, cpu: number): InstanceType {
  const type = aType(name, cpu)
  const [offering] = type.offerings
  if (offering === undefined) throw new Error('a type without offerings')
  const is = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values })
  return {
    ...type,
    requirements: [
      ...type.requirements.filter(({ key }) => key !== labels.capacityType),
      is(labels.capacityType, 'spot', 'on-demand'),
    ],
    offerings: [
      {
        ...offering,
        requirements: [is(labels.zone, 'zone-1'), is(labels.capacityType, 'spot')],
        pricePerHour: (offering.pricePerHour ?? 0) / 3,
      },
      offering,
    ],
  }
}

function poolSpec(
  requirements: NodePool['spec']['template']['spec']['requirements'],
  spec: Partial<NodePool['spec']> = {},
): Partial<NodePool['spec']> {
  const { template } = aKwokPool().spec
  return {
    disruption: { consolidateAfter: 'Never' },
    template: { ...template, spec: { ...template.spec, requirements } },
    ...spec,
  }
}

async function open(
  t: TestContext,
  types: readonly InstanceType[],
  pool: Partial<NodePool['spec']>,
  settings: Partial<Settings> = {},
): Promise<{ readonly stage: Stage; readonly cloud: SellingCloud }> {
  let stage: Stage | undefined
  const clock = () => (stage as Stage).world.clock
  const cloud = new SellingCloud(clock)
  cloud.clockOf = clock
  cloud.instanceTypes = types
  stage = await Stage.open(t, { idle: true, provider: cloud, pool, settings })
  return { stage, cloud }
}

function someWait(stage: Stage, count: number, prefix = 'pod'): void {
  for (let i = 0; i < count; i++) waitingPod(stage, `${prefix}-${i}`)
}

function placed(stage: Stage): number {
  return stage.world.pods().filter((pod) => stage.operator.operator.state.plans.get(pod.metadata.uid ?? ''))
    .length
}

const anyCapacity = [{ key: labels.capacityType, operator: 'In' as const, values: ['spot', 'on-demand'] }]
const onDemand = [{ key: labels.capacityType, operator: 'In' as const, values: ['on-demand'] }]

test('an offering that fails under 500 pods is found out by few launches; all pods have a node after one pass', async (t) => {
  const { stage, cloud } = await open(
    t,
    [aSpotType('medium', 4), aSpotType('large', 8)],
    poolSpec(anyCapacity),
  )
  cloud.soldOut.add('large/zone-1/spot').add('medium/zone-1/spot')
  someWait(stage, 500)
  await stage.start()
  await stage.pass(40 * seconds)
  assert.ok(cloud.refusals().length > 0)
  for (const [offering, failed] of Map.groupBy(cloud.refusals(), (attempt) => attempt.offering))
    assert.ok(failed.length <= 5, `${failed.length} launches of ${offering} failed`)
  assert.equal(placed(stage), 500)
  assert.equal(stage.events('InsufficientCapacityError').length, 0)
  assert.ok(cloud.launches().every((offering) => offering.endsWith('on-demand')))
  assert.equal(madeClaims(stage).length, cloud.instances.length)
})

test('a pool of higher weight that has nothing left makes way for the next one', async (t) => {
  const only = (name: string) => ({ key: labels.instanceType, operator: 'In' as const, values: [name] })
  const types = [aType('medium', 4), aType('other', 4)]
  const { stage, cloud } = await open(t, types, poolSpec([...onDemand, only('medium')], { weight: 50 }))
  createPool(stage, aKwokPool('second', poolSpec([...onDemand, only('other')], { weight: 1 })))
  cloud.soldOut.add('medium/zone-1/on-demand')
  someWait(stage, 100)
  await stage.start()
  await stage.pass(60 * seconds)
  assert.ok(cloud.refusals().length <= 5)
  assert.equal(placed(stage), 100)
  assert.deepEqual([...new Set(cloud.launches())], ['other/zone-1/on-demand'])
})

test('one launch tries the offering after its pause, and the others follow when it has succeeded', async (t) => {
  const { stage, cloud } = await open(t, [aType('medium', 4)], poolSpec(onDemand))
  const offering = 'medium/zone-1/on-demand'
  cloud.soldOut.add(offering)
  someWait(stage, 40)
  await stage.start()
  await stage.pass(firstPauseMs - 10 * seconds)
  const first = cloud.refusals()
  assert.ok(first.length <= 5, `${first.length} launches failed`)
  // The pause is over: one try, which fails, and then a pause of twice the length.
  await stage.pass(30 * seconds)
  assert.equal(cloud.refusals().length, first.length + 1)
  await stage.pass(2 * firstPauseMs - 60 * seconds)
  assert.equal(cloud.refusals().length, first.length + 1)
  cloud.soldOut.clear()
  await stage.pass(2 * minutes)
  assert.equal(placed(stage), 40)
  const [probe, second] = cloud.attempts.filter(({ isRefused }) => !isRefused)
  assert.ok((second?.atMs ?? 0) - (probe?.atMs ?? 0) >= cloud.launchMs, 'the others waited for the first')
})

test('what is avoided is shown in a metric and under /debug/offerings', async (t) => {
  const { stage, cloud } = await open(t, [aSpotType('medium', 4)], poolSpec(anyCapacity))
  cloud.soldOut.add('medium/zone-1/spot')
  someWait(stage, 1)
  await stage.start()
  await stage.pass(20 * seconds)
  const { operator } = stage.operator
  const lines = (await operator.metrics.registry.metrics()).split('\n')
  const series = '{instance_type="medium",zone="zone-1",capacity_type="spot"'
  assert.ok(lines.includes(`tenon_offerings_avoided${series},phase="waiting"} 1`))
  assert.ok(lines.includes(`tenon_offerings_launch_refusals_total${series}} 1`))
  const answer = await metricsHandler(operator)(
    { method: 'GET', path: '/debug/offerings', headers: {} },
    new AbortController().signal,
  )
  let text = ''
  for await (const chunk of answer.body) text += String(chunk)
  const { avoided } = JSON.parse(text) as { avoided: readonly Record<string, unknown>[] }
  assert.deepEqual(
    avoided.map(({ instanceType, capacityType, failures, phase }) => [
      instanceType,
      capacityType,
      failures,
      phase,
    ]),
    [['medium', 'spot', 1, 'waiting']],
  )
})

test('as Karpenter does it, every claim of a failing offering fails', async (t) => {
  const { stage, cloud } = await open(t, [aType('medium', 4)], poolSpec(onDemand), {
    compatibility: 'karpenter',
  })
  cloud.soldOut.add('medium/zone-1/on-demand')
  someWait(stage, 40)
  await stage.start()
  await stage.pass(5 * seconds)
  assert.ok(cloud.refusals().length > 5)
  assert.deepEqual(stage.operator.operator.offerings(), [])
})
