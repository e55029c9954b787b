/** Small random clusters that consolidation is let loose on, from the first decision until nothing moves any more. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { annotations, type InstanceType, karpenterKinds, kinds, type NodePool } from '@tenon/api'
import * as fc from 'fast-check'
import { hours, minutes, intercepting, seconds } from '../testing/stage.test-support.ts'
import { aType } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'
import { asking, Fleet, isTainted, priced } from './fleet-stage.test-support.ts'
import { FleetWatch } from './fleet-watch.test-support.ts'

/** `TENON_PROPERTY_RUNS` replaces the number of clusters, `TENON_PROPERTY_SEED` what they are drawn from. */
const { TENON_PROPERTY_RUNS: runs, TENON_PROPERTY_SEED: seed } = process.env
const pick = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)
const tiny = 1e-9
const pools = ['default', 'other'] as const
type PoolName = (typeof pools)[number]

interface App {
  readonly requests: Readonly<Record<string, string>>
  /** A PDB over its pods: how many may be missing. */
  readonly mayMiss: number | undefined
  /** Whether its first pod must not be disrupted. */
  readonly isHeld: boolean
}

interface PoolRules {
  readonly budget: string
  /** CPU above what its nodes have. */
  readonly spare: number | undefined
  readonly minValues: number | undefined
}

interface Story {
  readonly types: readonly InstanceType[]
  readonly apps: readonly App[]
  readonly nodes: readonly {
    readonly type: number
    readonly pool: PoolName
    readonly pods: readonly number[]
  }[]
  readonly rules: Readonly<Record<PoolName, PoolRules>>
  readonly trouble: Trouble
}

/** What happens while nodes go: a pod comes, the API server refuses to write, or new instances do not join. */
interface Trouble {
  readonly kind: 'none' | 'pod' | 'errors' | 'lostInstances'
  readonly afterMs: number
}

const rules: fc.Arbitrary<PoolRules> = fc.record({
  budget: pick('100%', '100%', '100%', '50%', '2', '1', '0'),
  spare: pick(undefined, undefined, 0, 2, 8),
  minValues: pick(undefined, undefined, undefined, 2),
})

const stories: fc.Arbitrary<Story> = fc.record({
  types: fc
    .uniqueArray(fc.record({ cpu: pick(1, 2, 4, 8, 16), factor: pick(0.8, 1, 1, 1.2) }), {
      minLength: 2,
      maxLength: 4,
      selector: ({ cpu }) => cpu,
    })
    .map((types) => types.map(({ cpu, factor }) => priced(aType(`type-${cpu}`, cpu), cpu * 0.05 * factor))),
  apps: fc.array(
    fc.record({
      requests: pick(
        { cpu: '100m', memory: '256Mi' },
        { cpu: '250m', memory: '2Gi' },
        { cpu: '500m', memory: '1Gi' },
        { cpu: '900m', memory: '1Gi' },
        { cpu: '1900m', memory: '2Gi' },
        { cpu: '1500m', memory: '6Gi' },
      ),
      mayMiss: pick(undefined, undefined, undefined, 1, 2, 0),
      isHeld: pick(false, false, false, false, false, true),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  nodes: fc.array(
    fc.record({
      type: fc.nat(3),
      pool: pick<PoolName>('default', 'default', 'other'),
      pods: fc.array(fc.nat(3), { minLength: 1, maxLength: 6 }),
    }),
    { minLength: 2, maxLength: 7 },
  ),
  rules: fc.record({ default: rules, other: rules }),
  trouble: fc.record({
    kind: pick('none' as const, 'none' as const, 'pod' as const, 'errors' as const, 'lostInstances' as const),
    afterMs: fc.nat(45).map((after) => after * seconds),
  }),
})

/** Pods for each app, by the node they run on; what a node has no room for is omitted. */
function placed({ types, apps, nodes }: Story): readonly (readonly string[])[] {
  const places = apps.map((): string[] => [])
  for (const [index, { type, pods }] of nodes.entries()) {
    const { capacity } = types[type % types.length] as InstanceType
    let [cpu = 0, memory = 0] = [capacity['cpu'], capacity['memory']]
    for (const each of pods) {
      const app = each % apps.length
      const { requests } = apps[app] as App
      const wanted = { cpu: amountOf(requests['cpu']), memory: amountOf(requests['memory']) }
      if (wanted.cpu > cpu || wanted.memory > memory) continue
      cpu -= wanted.cpu
      memory -= wanted.memory
      places[app]?.push(`node-n${index}`)
    }
  }
  return places
}

const units: Readonly<Record<string, number>> = { m: 1, '': 1000, Mi: 2 ** 20, Gi: 2 ** 30 }
const amountOf = (text = ''): number => Number.parseInt(text, 10) * (units[text.replace(/^\d+/, '')] ?? 0)

/** What a NodePool may have in all. */
function limitsOf(story: Story, pool: PoolName): NonNullable<NodePool['spec']['limits']> {
  const { spare } = story.rules[pool]
  if (spare === undefined) return {}
  const own = story.nodes.filter((node) => node.pool === pool)
  const cores = own.reduce(
    (sum, { type }) => sum + (story.types[type % story.types.length]?.capacity['cpu'] ?? 0),
    0,
  )
  return { cpu: String(cores / 1000 + spare) }
}

interface Outcome {
  readonly marked: number
  readonly replacements: number
}

async function play(story: Story): Promise<Outcome> {
  const closing: (() => unknown)[] = []
  const t: Pick<TestContext, 'after'> = {
    after: (close) => void closing.push(close as () => unknown),
  }
  try {
    let isBroken = false
    const apiPath = intercepting((method) => (isBroken && method !== 'GET' ? 'error' : 'pass'))
    const fleet = await Fleet.open(t, { types: story.types, apiPath })
    return await playOn(fleet, story, (value) => (isBroken = value))
  } finally {
    for (const close of closing) await close()
  }
}

async function playOn(fleet: Fleet, story: Story, refuse: (isBroken: boolean) => void): Promise<Outcome> {
  const { stage } = fleet
  const { types, apps, nodes } = story
  stage.world.create(
    karpenterKinds.nodePool,
    aKwokPool('other', { disruption: { consolidateAfter: 'Never' } }),
  )
  await stage.pass(2 * seconds)
  for (const pool of pools) {
    const own = nodes.flatMap((node, index) =>
      node.pool === pool ? [[`n${index}`, types[node.type % types.length] as InstanceType] as const] : [],
    )
    await fleet.nodes(Object.fromEntries(own), pool)
  }
  const leastReady = new Map<string, number>()
  for (const [index, places] of placed(story).entries()) {
    const { requests, mayMiss, isHeld } = apps[index] as App
    const name = `app-${index}`
    if (places.length === 0) continue
    fleet.workload(name, places, asking(requests))
    if (isHeld)
      stage.patch(
        kinds.pod,
        `${name}-0`,
        { metadata: { annotations: { [annotations.doNotDisrupt]: 'true' } } },
        undefined,
        'default',
      )
    if (mayMiss === undefined) continue
    leastReady.set(name, places.length - mayMiss)
    stage.world.create(kinds.podDisruptionBudget, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name, namespace: 'default' },
      spec: { selector: { matchLabels: { app: name } }, maxUnavailable: mayMiss },
    })
  }
  assert.ok(await fleet.untilCalm(4 * seconds, minutes), 'the cluster does not begin as it should')
  const before = fleet.pricePerHour()
  const pods = stage.world.pods().length
  const watch = new FleetWatch(fleet, leastReady)
  for (const pool of pools) {
    const { budget, minValues } = story.rules[pool]
    const { requirements } = aKwokPool().spec.template.spec
    const least = { key: 'node.kubernetes.io/instance-type', operator: 'Exists' as const, minValues }
    stage.patch(karpenterKinds.nodePool, pool, {
      spec: {
        limits: limitsOf(story, pool),
        disruption: { consolidateAfter: '0s', budgets: [{ nodes: budget }] },
        ...(minValues !== undefined && { template: { spec: { requirements: [...requirements, least] } } }),
      },
    })
  }
  const more = await meddle(fleet, story.trouble, refuse)
  const isCalm = await fleet.untilCalm(70 * seconds, 60 * minutes)
  assert.deepEqual(watch.violations, [])
  assert.ok(isCalm, `no rest: ${fleet.notRunning().join()}`)
  assert.equal(stage.world.pods().length, pods + more)
  // What went wrong for a time may have left an instance too many, which goes when workloads have rested.
  const isPaid = () => fleet.pricePerHour() <= before + tiny
  if (story.trouble.kind !== 'none') await stage.world.clock.advanceUntil(isPaid, 5 * hours)
  assert.ok(isPaid(), `the price went from ${before} to ${fleet.pricePerHour()}`)
  assert.deepEqual(stage.world.nodes().filter(isTainted), [])
  return watch
}

/** @returns how many pods came. */
async function meddle(
  fleet: Fleet,
  { kind, afterMs }: Trouble,
  refuse: (isBroken: boolean) => void,
): Promise<number> {
  const { stage } = fleet
  if (kind === 'none') return 0
  await stage.pass(afterMs)
  if (kind === 'pod') {
    const [claim] = fleet.staying()
    fleet.workload('late', [`node-${claim?.metadata.name}`], asking({}))
    return 1
  }
  refuse(kind === 'errors')
  fleet.joins = () => kind !== 'lostInstances'
  await stage.pass(30 * seconds)
  refuse(false)
  fleet.joins = () => true
  return 0
}

test('whatever consolidation does to a cluster keeps its rules at any time, and all pods run for no more money', async () => {
  const seen = { marked: 0, replacements: 0 }
  await fc.assert(
    fc.asyncProperty(stories, async (story) => {
      const { marked, replacements } = await play(story)
      seen.marked += marked
      seen.replacements += replacements
    }),
    { numRuns: Number(runs ?? 7), seed: Number(seed ?? 20_261_122) },
  )
  if (runs === undefined) assert.ok(seen.marked > 5 && seen.replacements > 0, JSON.stringify(seen))
})
