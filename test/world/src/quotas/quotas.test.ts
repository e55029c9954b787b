/** CapacityQuotas hold whatever launches, also over restarts (quotas.md 1). */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import {
  autoscalingKinds,
  type CapacityQuota,
  capacityQuotaCrd,
  conditionOf,
  karpenterKinds,
  type KubeObject,
  kinds,
  parseResources,
  type ResourceType,
} from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { SeededRandom, integerBetween } from '@tenon/runtime'
import {
  aDeployment,
  aKwokPool,
  deploymentKind,
  type RunningOperator,
  World,
  type WorldOptions,
} from '../world.ts'

const second = 1000
const minute = 60 * second

interface EventObject extends KubeObject {
  readonly reason: string
  readonly message: string
}

function aQuota(
  resources: Readonly<Record<string, string>>,
  name = 'ceiling',
  selector: CapacityQuota['spec']['selector'] = {},
): CapacityQuota {
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityQuota',
    metadata: { name },
    spec: { selector, limits: { resources } },
  }
}

/** A kwok world whose cluster is watched for more than some quotas allow. */
class QuotaStory {
  readonly world: World
  operator!: RunningOperator
  readonly #ceilings = new Map<string, number>()
  /** What was exceeded. */
  readonly exceeded: string[] = []

  private constructor(world: World) {
    this.world = world
  }

  static async open(
    t: TestContext,
    options: Partial<WorldOptions> = {},
    pools = ['a', 'b', 'c'],
  ): Promise<QuotaStory> {
    const world = await World.start({ seed: 1, provider: 'kwok', servesQuotas: true, ...options })
    const story = new QuotaStory(world)
    const nodeClass = { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass' }
    world.create(kwokNodeClassKind, { ...nodeClass, metadata: { name: 'default' }, spec: {} })
    for (const name of pools) world.create(karpenterKinds.nodePool, aKwokPool(name))
    t.after(async () => {
      const stopping = story.operator.operator.stop()
      await Promise.race([stopping, world.clock.advance(minute)])
      await world.stop()
    })
    return story
  }

  async start(crashAt?: number): Promise<void> {
    this.operator = await this.world.startOperator(crashAt)
  }

  /** From now on no more than this may be in nodes, however they came about. */
  watch(resource: string, most: number): void {
    this.#ceilings.set(resource, most)
  }

  async pass(ms: number): Promise<void> {
    const { clock } = this.world
    for (let passed = 0; passed < ms; passed += second) {
      await clock.advance(second)
      for (const [resource, most] of this.#ceilings) {
        const used = this.used(resource)
        if (used > most) this.exceeded.push(`${resource}: ${used}`)
      }
    }
  }

  /** Cores for cpu. */
  used(resource: string): number {
    const capacities = this.world.nodes().map(({ status }) => parseResources(status?.capacity))
    if (resource === 'nodes') return capacities.length
    const sum = capacities.reduce((total, each) => total + (each[resource] ?? 0), 0)
    return resource === 'cpu' ? sum / 1000 : sum
  }

  get names(): readonly string[] {
    return this.world.claims().map(({ metadata }) => metadata.name)
  }

  get waiting(): number {
    return this.world.pods().filter(({ spec }) => spec.nodeName === undefined).length
  }

  quota(name = 'ceiling'): CapacityQuota {
    return this.world.cluster.server.local.get(
      autoscalingKinds.capacityQuota,
      undefined,
      name,
    ) as CapacityQuota
  }

  events(reason: string): readonly string[] {
    return this.world.cluster.server.local
      .list(kinds.event as ResourceType<EventObject>)
      .filter((event) => event.reason === reason)
      .map(({ message }) => message)
  }
}

test('WNT-1 three NodePools keep to one quota at every moment, and pods are told what is left', async (t) => {
  const story = await QuotaStory.open(t)
  story.world.create(autoscalingKinds.capacityQuota, aQuota({ cpu: '40' }))
  story.watch('cpu', 40)
  await story.start()
  story.world.create(deploymentKind, aDeployment('web', 200, { cpu: '1', memory: '1Gi' }))
  await story.pass(minute)
  assert.deepEqual(story.exceeded, [])
  assert.ok(story.used('cpu') >= 36, `${story.used('cpu')} of 40 cores are used`)
  assert.ok(story.waiting > 150)
  assert.match(story.events('FailedScheduling').join('\n'), /CapacityQuota ceiling has \d+m? of cpu left/)
  const { status } = story.quota()
  assert.equal(Number(status?.used?.resources?.['cpu']), story.used('cpu'))
  assert.equal(conditionOf(story.quota(), 'Reconciled')?.reason, 'ReconciliationSucceeded')
  assert.equal(conditionOf(story.quota(), 'cluster-autoscaler.kubernetes.io/valid')?.status, 'True')
})

describe('WNT-2 with a crash at any write', () => {
  for (let crashAt = 1; crashAt <= 22; crashAt += 7)
    test(`the quota holds, write ${crashAt}`, async (t) => {
      const story = await QuotaStory.open(t)
      story.world.create(autoscalingKinds.capacityQuota, aQuota({ cpu: '24', nodes: '4' }))
      story.watch('cpu', 24)
      story.watch('nodes', 4)
      await story.start(crashAt)
      for (let batch = 1; batch <= 8; batch++) {
        story.world.create(deploymentKind, aDeployment(`web-${batch}`, 4, { cpu: '1', memory: '1Gi' }))
        await story.pass(4 * second)
        if (batch % 3 === 1) {
          await story.world.bury(story.operator)
          await story.start(batch === 1 ? crashAt + 2 : undefined)
        }
      }
      await story.pass(minute)
      assert.deepEqual(story.exceeded, [])
      assert.ok(story.used('nodes') >= 1)
      assert.ok(story.world.claims().length <= 4)
    })
})

describe('WNT-3 static NodePools, drift and consolidation side by side', () => {
  for (let seed = 1; seed <= 2; seed++)
    test(`the quota holds, seed ${seed}`, async (t) => {
      const dice = new SeededRandom(`quota-story-${seed}`)
      const story = await QuotaStory.open(
        t,
        {
          seed,
          settings: { featureGates: { ...defaultSettings.featureGates, staticCapacity: true } },
        },
        ['a', 'b'],
      )
      const most = integerBetween(dice, 3, 6)
      story.world.create(autoscalingKinds.capacityQuota, aQuota({ nodes: String(most) }))
      story.watch('nodes', most)
      const fixed = aKwokPool('fixed')
      const { disruption: _, ...spec } = fixed.spec
      story.world.create(karpenterKinds.nodePool, { ...fixed, spec: { ...spec, replicas: 2 } })
      await story.start()
      story.world.create(deploymentKind, aDeployment('web', 30, { cpu: '1', memory: '1Gi' }))
      await story.pass(minute)
      const { local } = story.world.cluster.server
      for (let step = 0; step < 4; step++) {
        const pool = ['a', 'b', 'fixed'][integerBetween(dice, 0, 2)] ?? 'a'
        const metadata = { annotations: { 'example.com/step': `${step}` } }
        local.patch(karpenterKinds.nodePool, undefined, pool, { spec: { template: { metadata } } })
        story.world.scale('web', integerBetween(dice, 0, 60))
        await story.pass(integerBetween(dice, 1, 4) * minute)
      }
      assert.deepEqual(story.exceeded, [])
      assert.ok(story.used('nodes') > 0)
    })
})

test('WNT-5 nodes of others count; nothing is deleted and nothing launched', async (t) => {
  const story = await QuotaStory.open(t)
  for (let i = 0; i < 4; i++)
    story.world.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: `foreign-${i}` },
      spec: { unschedulable: true },
      status: { capacity: { cpu: '4' } },
    })
  await story.start()
  story.world.create(deploymentKind, aDeployment('web', 2, { cpu: '1' }))
  await story.pass(minute)
  const before = story.world.claims().map(({ metadata }) => metadata.name)
  assert.ok(before.length > 0)
  story.world.create(autoscalingKinds.capacityQuota, aQuota({ nodes: '4' }))
  story.world.scale('web', 80)
  await story.pass(2 * minute)
  assert.deepEqual(
    story.world.claims().map(({ metadata }) => metadata.name),
    before,
  )
  assert.ok(story.waiting > 0)
  assert.equal(story.quota().status?.used?.resources?.['nodes'], String(4 + before.length))
})

test('WNT-9 a kind that is installed later counts within a minute', async (t) => {
  const story = await QuotaStory.open(t, { servesQuotas: false })
  await story.start()
  await story.pass(10 * second)
  story.world.install(capacityQuotaCrd)
  await story.pass(second)
  story.world.create(autoscalingKinds.capacityQuota, aQuota({ nodes: '1' }))
  await story.pass(minute)
  story.watch('nodes', 1)
  story.world.create(deploymentKind, aDeployment('web', 300, { cpu: '1' }))
  await story.pass(minute)
  assert.deepEqual(story.exceeded, [])
  assert.equal(story.used('nodes'), 1)
})

test('WNT-10 decisions follow a quota that is raised, lowered and deleted', async (t) => {
  const story = await QuotaStory.open(t, {}, ['a'])
  story.world.create(autoscalingKinds.capacityQuota, aQuota({ nodes: '0' }))
  await story.start()
  story.world.create(deploymentKind, aDeployment('web', 3, { cpu: '1' }))
  await story.pass(30 * second)
  assert.equal(story.world.claims().length, 0)
  const { local } = story.world.cluster.server
  const limited = (nodes: string) =>
    local.patch(autoscalingKinds.capacityQuota, undefined, 'ceiling', {
      spec: { limits: { resources: { nodes } } },
    })
  limited('1')
  await story.pass(15 * second)
  assert.equal(story.world.claims().length, 1, 'raised')
  limited('0')
  await story.pass(minute)
  assert.equal(story.world.claims().length, 1, 'lowered: nothing is deleted')
  story.world.scale('web', 200)
  await story.pass(30 * second)
  assert.equal(story.world.claims().length, 1)
  local.delete(autoscalingKinds.capacityQuota, undefined, 'ceiling')
  await story.pass(30 * second)
  assert.ok(story.world.claims().length > 1, 'deleted')
})

test('WNT-7 a drifted node without room for its successor stays, and says which quota it waits for', async (t) => {
  const story = await QuotaStory.open(t, {}, ['a'])
  await story.start()
  story.world.create(deploymentKind, aDeployment('web', 1, { cpu: '1' }))
  await story.pass(30 * second)
  const [before] = story.world.claims()
  story.world.create(autoscalingKinds.capacityQuota, aQuota({ nodes: '1' }))
  story.watch('nodes', 1)
  const metadata = { annotations: { 'example.com/step': '1' } }
  story.world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, 'a', {
    spec: { template: { metadata } },
  })
  await story.pass(3 * minute)
  assert.deepEqual(story.exceeded, [])
  assert.deepEqual(
    story.world.claims().map(({ metadata: { name } }) => name),
    [before?.metadata.name],
  )
  const told = [...story.events('DisruptionBlocked'), ...story.events('Unconsolidatable')].join('\n')
  assert.match(told, /CapacityQuota ceiling/)
})

for (const [kind, replicas] of [
  ['dynamic', undefined],
  ['static', 2],
] as const)
  test(`WNT-7 with drift-without-surge, nodes of a ${kind} NodePool go one after the other, each before its successor`, async (t) => {
    const options = { settings: { featureGates: { ...defaultSettings.featureGates, staticCapacity: true } } }
    const story = await QuotaStory.open(t, options, [])
    const pool = aKwokPool('a')
    story.world.create(karpenterKinds.nodePool, {
      ...pool,
      metadata: { ...pool.metadata, annotations: { 'tenon.sh/drift-without-surge': 'true' } },
      spec: {
        ...pool.spec,
        ...(replicas !== undefined && { replicas }),
        disruption: { ...pool.spec.disruption, budgets: [{ nodes: '100%' }] },
      },
    })
    await story.start()
    story.world.create(deploymentKind, aDeployment('web', 2, { cpu: '100m' }))
    await story.pass(2 * minute)
    const before = story.names
    assert.equal(before.length, story.used('nodes'))
    story.world.create(autoscalingKinds.capacityQuota, aQuota({ nodes: String(before.length) }))
    story.watch('nodes', before.length)
    const metadata = { annotations: { 'example.com/step': '1' } }
    story.world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, 'a', {
      spec: { template: { metadata } },
    })
    let fewest = before.length
    for (let passed = 0; passed < 10 * minute; passed += second) {
      await story.pass(second)
      fewest = Math.min(fewest, story.used('nodes'))
    }
    assert.deepEqual(story.exceeded, [])
    assert.equal(story.waiting, 0)
    assert.equal(story.used('nodes'), before.length)
    assert.deepEqual(
      story.names.filter((name) => before.includes(name)),
      [],
    )
    assert.ok(fewest >= before.length - 1, 'one at a time')
  })

for (const [kind, replicas] of [
  ['dynamic', undefined],
  ['static', 2],
] as const)
  test(`WNT-7 with drift-without-surge, no node of a ${kind} NodePool goes while a quota is lowered below its use`, async (t) => {
    const options = { settings: { featureGates: { ...defaultSettings.featureGates, staticCapacity: true } } }
    const story = await QuotaStory.open(t, options, [])
    const pool = aKwokPool('a')
    story.world.create(karpenterKinds.nodePool, {
      ...pool,
      metadata: { ...pool.metadata, annotations: { 'tenon.sh/drift-without-surge': 'true' } },
      spec: { ...pool.spec, ...(replicas !== undefined && { replicas }) },
    })
    await story.start()
    story.world.create(deploymentKind, aDeployment('web', 2, { cpu: '100m' }))
    await story.pass(minute)
    const before = story.names
    assert.ok(before.length > 0)
    story.world.create(autoscalingKinds.capacityQuota, aQuota({ nodes: String(before.length - 1) }))
    const metadata = { annotations: { 'example.com/step': '1' } }
    story.world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, 'a', {
      spec: { template: { metadata } },
    })
    await story.pass(2 * minute)
    assert.deepEqual(story.names, before)
  })
