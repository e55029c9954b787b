/** Random groups, faults and deaths of the process against what has to hold of the platform at any time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, isConditionTrue, kinds, type Node } from '@tenon/api'
import { ApiError } from '@tenon/devcluster'
import { integerBetween, SeededRandom, unit } from '@tenon/runtime'
import { type NodeGroup, nodeGroupKind } from '@tenon/provider-clever-cloud'
import { CleverCloudFixture } from './clever-cloud.test-support.ts'
import type { GroupEffect } from './faults.ts'
import { defaultSettings } from './settings.ts'

const steps = 60
const limit = { cpu: 100, memoryGb: 100 }
const controlPlane = { cpu: 24, memoryGb: 24 }
/** What the platform's price list says of its flavors. */
const sizes = new Map([
  ['2XS', [4, 4]],
  ['XS', [6, 8]],
  ['S', [8, 12]],
  ['M', [10, 16]],
  ['L', [12, 24]],
  ['XL', [16, 32]],
])
/** The longest deletion, the delay of a fault, and time for events to pass. */
const deletionBoundMs = 40_000 + 30_000 + 10_000
const held = 'example.com/held'

const effects: readonly GroupEffect[] = [
  { kind: 'refuse', reason: 'FlavorUnavailable' },
  { kind: 'refuse', reason: 'Late', afterMs: 35_000 },
  { kind: 'rejectByQuota', tells: 'phase' },
  { kind: 'upstreamError', from: 'answer', forMs: 90_000 },
  { kind: 'upstreamError', from: 'ready', forMs: 20_000 },
  { kind: 'quotaPhaseWhenReady' },
  { kind: 'silent' },
  { kind: 'silent', forMs: 15_000 },
  { kind: 'vanish', afterMs: 4_000 },
  { kind: 'vanish', afterMs: 50_000 },
  { kind: 'slow', nodeMs: 10_000, syncMs: 300_000 },
  { kind: 'neverBoots' },
  { kind: 'neverReady' },
  { kind: 'resize', afterMs: 20_000, nodeCount: 3 },
  { kind: 'leak' },
  { kind: 'slowDeletion', moreMs: 30_000 },
]

const groupOf = (node: Node) => node.metadata.labels?.['clever-cloud.com/nodegroup'] ?? ''

type Groups = ReadonlyMap<string, NodeGroup>

/** What is wrong with the cluster at this moment. */
function wrongIn(world: CleverCloudFixture): readonly string[] {
  const groups = new Map(world.api.list(nodeGroupKind).map((group) => [group.metadata.name, group]))
  const nodes = world.api.list(kinds.node)
  return [
    ...overQuota(groups),
    ...nodes.flatMap((node) => wrongWith(node, groups.get(groupOf(node)))),
    ...overdue(world, groups, nodes),
  ]
}

function overQuota(groups: Groups): readonly string[] {
  const sum = { ...controlPlane }
  for (const { spec, status } of groups.values()) {
    const [cpu = 0, memoryGb = 0] = sizes.get(spec.flavor) ?? []
    sum.cpu += cpu * (status?.targetNodeCount ?? 0)
    sum.memoryGb += memoryGb * (status?.targetNodeCount ?? 0)
  }
  const isWithin = sum.cpu <= limit.cpu && sum.memoryGb <= limit.memoryGb
  return isWithin ? [] : [`accepted groups take ${JSON.stringify(sum)}`]
}

function wrongWith(node: Node, group: NodeGroup | undefined): readonly string[] {
  const { name, deletionTimestamp, labels = {} } = node.metadata
  const wrong: string[] = []
  if (!new RegExp(`^${groupOf(node)}-node\\d+$`).test(name)) wrong.push(`${name} has the wrong group`)
  if (node.spec?.providerID !== undefined) wrong.push(`${name} has a provider ID`)
  if (deletionTimestamp !== undefined) return wrong
  if (group === undefined) wrong.push(`${name} outlives its group`)
  else if (labels['clever-cloud.com/flavor'] !== group.spec.flavor) wrong.push(`${name} has the wrong flavor`)
  return wrong
}

function overdue(world: CleverCloudFixture, groups: Groups, nodes: readonly Node[]): readonly string[] {
  const holding = nodes.filter(({ metadata }) => (metadata.finalizers ?? []).includes(held))
  const heldGroups = new Set(holding.map(groupOf))
  return [...groups.values()].flatMap(({ metadata: { name, deletionTimestamp } }) => {
    if (deletionTimestamp === undefined || heldGroups.has(name) || releasedLately(world, name)) return []
    const isOverdue = world.clock.now() - Date.parse(deletionTimestamp) > deletionBoundMs
    return isOverdue ? [`${name} should be gone since ${deletionTimestamp}`] : []
  })
}

/** Node finalizers are taken away between two looks; the platform has had no time then. */
const releases = new Map<string, number>()
const releasedLately = (world: CleverCloudFixture, group: string) =>
  world.clock.now() - (releases.get(group) ?? 0) < deletionBoundMs

class Story {
  readonly random: SeededRandom
  world: CleverCloudFixture
  #count = 0
  #since: number

  constructor(seed: string, world: CleverCloudFixture) {
    this.random = new SeededRandom(seed)
    this.world = world
    this.#since = world.revision
  }

  async step(): Promise<string> {
    const action = this.#pick(this.actions)
    let outcome: string
    try {
      outcome = await action()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      outcome = `refused: ${error.message}`
    }
    this.#since = this.world.revision
    const ms = this.#pick([0, 500, 1_000, 5_000, 30_000, 60_000])
    await this.world.clock.advance(integerBetween(this.random, 0, ms))
    return outcome
  }

  readonly actions: readonly (() => string | Promise<string>)[] = [
    ...Array.from({ length: 5 }, () => () => this.#create()),
    () => this.#onGroup('delete', (name) => this.world.delete(name)),
    () => this.#onGroup('delete', (name) => this.world.delete(name)),
    () => this.#onGroup('resize', (name) => this.world.cloud.resize(name, integerBetween(this.random, 0, 4))),
    () => this.#onGroup('vanish', (name) => this.world.cloud.vanish(name)),
    () => this.#onNode('delete', (name) => this.world.api.delete(kinds.node, undefined, name)),
    () => this.#onNode('hold', (name) => this.#hold(name, [held])),
    () => this.#onNode('release', (name) => this.#hold(name, null)),
    () => this.#die(),
  ]

  #create(): string {
    const { world, random } = this
    const name = unit(random) < 0.3 ? `again${integerBetween(random, 0, 2)}` : `group${this.#count++}`
    const flavor = this.#pick([...sizes.keys()])
    const nodeCount = this.#pick([0, 1, 1, 1, 2, 4])
    const lift =
      unit(random) < 0.5
        ? world.cloud.faults.groups.add({ group: name, times: 1, effect: this.#pick(effects) })
        : undefined
    try {
      world.create(name, { flavor, nodeCount })
    } catch (error) {
      lift?.()
      throw error
    }
    return `create ${name} ${nodeCount} x ${flavor}`
  }

  #onGroup(what: string, act: (name: string) => void): string {
    const names = this.world.api.list(nodeGroupKind).map(({ metadata }) => metadata.name)
    if (names.length === 0) return `nothing to ${what}`
    const name = this.#pick(names)
    act(name)
    return `${what} ${name}`
  }

  #onNode(what: string, act: (name: string) => void): string {
    const names = this.world.nodes()
    if (names.length === 0) return `nothing to ${what}`
    const name = this.#pick(names)
    act(name)
    return `${what} node ${name}`
  }

  #hold(name: string, finalizers: readonly string[] | null): void {
    const node = this.world.node(name)
    if (node !== undefined) releases.set(groupOf(node), this.world.clock.now())
    this.world.api.patch(kinds.node, undefined, name, { metadata: { finalizers } })
  }

  async #die(): Promise<string> {
    const revision = integerBetween(this.random, this.#since, this.world.revision)
    this.world = await this.world.killedAfter(revision)
    return `die after write ${revision}`
  }

  #pick<T>(some: readonly T[]): T {
    return some[integerBetween(this.random, 0, some.length - 1)] as T
  }
}

const isReady = (group: NodeGroup | undefined) => group !== undefined && isConditionTrue(group, 'Ready')

/** A ready group has the nodes that it asks for, or that it had when the quota refused more. */
function unfinished(world: CleverCloudFixture): readonly string[] {
  return world.api.list(nodeGroupKind).flatMap((group) => {
    const { metadata, spec, status } = group
    if (!isReady(group) || metadata.deletionTimestamp !== undefined) return []
    const nodes = world.api.list(kinds.node).filter((node) => groupOf(node) === metadata.name)
    const asked = [spec.nodeCount, status?.targetNodeCount, status?.nodeCount, nodes.length]
    const isRefused = conditionOf(group, 'ReconcileFailed')?.reason === 'QuotaExceeded'
    const isRight = new Set(isRefused ? asked.slice(1) : asked).size === 1
    return isRight ? [] : [`${metadata.name} has ${asked.join(', ')}`]
  })
}

/** Everything heals: groups get their nodes, one that fits gets ready, and what is deleted goes. */
async function settled(world: CleverCloudFixture): Promise<void> {
  world.cloud.faults.clear()
  for (const name of world.nodes())
    world.api.patch(kinds.node, undefined, name, { metadata: { finalizers: null } })
  await world.clock.advance(400_000)
  assert.deepEqual(unfinished(world), [])
  for (const { metadata } of world.api.list(nodeGroupKind))
    if (metadata.deletionTimestamp === undefined) world.delete(metadata.name)
  await world.clock.advance(400_000)
  assert.deepEqual(
    world.api.list(nodeGroupKind).map(({ metadata }) => metadata.name),
    [],
  )
  assert.deepEqual([world.nodes(), world.cloud.instances(), world.cluster.kubelets.running()], [[], [], []])
  assert.deepEqual(world.cloud.quota().used, controlPlane)
  world.create('last', { flavor: 'M' })
  await world.until('the last group is ready', () => isReady(world.group('last')), 62)
}

const only = process.env['TENON_GROUPS_SEED']
const seeds = only === undefined ? Array.from({ length: 12 }, (_, seed) => `${seed}`) : [only]

for (const seed of seeds)
  test(`random groups never break the quota, nor leave a node or a group behind (TENON_GROUPS_SEED=${seed})`, async () => {
    releases.clear()
    const settings = { ...defaultSettings(), quota: limit }
    const story = new Story(seed, await CleverCloudFixture.start({ settings, seed }))
    const log: string[] = []
    for (let step = 0; step < steps; step++) {
      log.push(await story.step())
      assert.deepEqual(wrongIn(story.world), [], log.join('\n'))
    }
    await settled(story.world)
    story.world.stop()
  })
