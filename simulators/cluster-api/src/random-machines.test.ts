/** Random MachineDeployments, faults and deaths of the process against what has to hold at any time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, ownValue } from '@tenon/api'
import { ApiError } from '@tenon/devcluster'
import { integerBetween, SeededRandom, unit } from '@tenon/runtime'
import { ClusterApiFixture } from './cluster-api.test-support.ts'
import type { MachineEffect } from './faults.ts'
import { controllerUid, type FullMachine, isLeaving } from './kinds.ts'
import { defaultSettings } from './settings.ts'

const steps = 60
const deleteMachine = 'cluster.x-k8s.io/delete-machine'
const deployments = ['a', 'b', 'c'] as const

const effects: readonly MachineEffect[] = [
  { kind: 'neverProvided' },
  { kind: 'slow', providerIdMs: 60_000, nodeMs: 90_000 },
  { kind: 'fails', afterMs: 2_000, reason: 'CreateError', message: 'it could not' },
  { kind: 'fails', afterMs: 90_000, reason: 'UpdateError', message: 'it is broken' },
  { kind: 'noRoom', forMs: 60_000 },
  { kind: 'neverJoins' },
  { kind: 'neverReady' },
  { kind: 'duplicateProviderId' },
  { kind: 'slowDeletion', moreMs: 30_000 },
]

const isAnnotated = ({ metadata }: FullMachine) => ownValue(metadata.annotations, deleteMachine) !== undefined

/** Whatever is deleted by a controller while an annotated Machine of its MachineSet stays. */
class DeletionWatch {
  readonly wrong: string[] = []
  /** Machines that the story itself deletes. */
  readonly excused = new Set<string>()
  readonly #stop: () => void

  constructor(world: ClusterApiFixture) {
    this.#stop = world.cluster.server.store.onCommit((_collection, { object, previous, type }) => {
      if (type === 'DELETED' || object.kind !== 'Machine' || previous === undefined) return
      if (!isLeaving(object) || isLeaving(previous) || this.excused.has(object.metadata.name)) return
      if (isAnnotated(object)) return
      const others = world
        .machines()
        .filter((machine) => controllerUid(machine) === controllerUid(object))
        .filter((machine) => isAnnotated(machine) && !isLeaving(machine))
      const set = world.hub
        .list(world.kinds.set, { namespace: 'default' })
        .find(({ metadata }) => metadata.uid === controllerUid(object))
      // A MachineSet that ends deletes all it has.
      if (others.length > 0 && set !== undefined && !isLeaving(set) && (set.spec?.replicas ?? 0) > 0)
        this.wrong.push(
          `${object.metadata.name} went before ${others.map(({ metadata }) => metadata.name).join(' ')}`,
        )
    })
  }

  stop(): void {
    this.#stop()
  }
}

/** What is wrong with the cluster at this moment. */
function wrongIn(world: ClusterApiFixture): readonly string[] {
  const machines = world.machines()
  const names = new Set(machines.map(({ metadata }) => metadata.name))
  const stray = world
    .nodes()
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined && !names.has(metadata.name))
    .map(({ metadata }) => `Node ${metadata.name} has no Machine`)
  const lost = world.cluster.kubelets
    .running()
    .filter((name) => !names.has(name))
    .map((name) => `the kubelet of ${name} outlives its Machine`)
  return [...stray, ...lost]
}

class Story {
  readonly random: SeededRandom
  world: ClusterApiFixture
  #watch: DeletionWatch
  #since: number

  constructor(seed: string, world: ClusterApiFixture) {
    this.random = new SeededRandom(seed)
    this.world = world
    this.#watch = new DeletionWatch(world)
    for (const name of deployments) world.createDeployment(name, { replicas: 0 })
    this.#since = world.revision
  }

  async step(): Promise<string> {
    let outcome: string
    try {
      outcome = await this.#pick(this.actions)()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      outcome = `refused: ${error.message}`
    }
    this.#since = this.world.revision
    await this.world.clock.advance(
      integerBetween(this.random, 0, this.#pick([0, 500, 5_000, 30_000, 60_000])),
    )
    return outcome
  }

  wrong(): readonly string[] {
    return [...wrongIn(this.world), ...this.#watch.wrong]
  }

  readonly actions: readonly (() => string | Promise<string>)[] = [
    ...Array.from({ length: 4 }, () => () => this.#scale()),
    () => this.#annotateAndShrink(),
    () => this.#annotateAndShrink(),
    () => this.#onMachine('delete', (name) => this.#delete(name)),
    () => this.#onMachine('lose', (name) => this.world.cloud.lose('default', name)),
    () => this.#onMachine('delete the Node of', (name) => this.world.api.delete(kinds.node, undefined, name)),
    () => this.#roll(),
    () => this.#pause(),
    () => this.#strike(),
    () => this.#die(),
  ]

  #scale(): string {
    const name = this.#pick(deployments)
    const replicas = integerBetween(this.random, 0, 5)
    this.world.scale(name, replicas)
    return `scale ${name} to ${replicas}`
  }

  #annotateAndShrink(): string {
    const { world } = this
    const name = this.#pick(deployments)
    const [machine] = world.machines(name)
    const replicas = world.deployment(name)?.spec?.replicas ?? 0
    if (machine === undefined || replicas === 0) return `nothing to release of ${name}`
    world.annotate(machine.metadata.name, { [deleteMachine]: '' })
    world.scale(name, replicas - 1)
    return `release ${machine.metadata.name}`
  }

  #delete(name: string): void {
    this.#watch.excused.add(name)
    this.world.deleteMachine(name)
  }

  #onMachine(what: string, act: (name: string) => void): string {
    const names = this.world.machines().map(({ metadata }) => metadata.name)
    if (names.length === 0) return `nothing to ${what}`
    const name = this.#pick(names)
    act(name)
    return `${what} ${name}`
  }

  #roll(): string {
    const name = this.#pick(deployments)
    const version = `v1.3${integerBetween(this.random, 3, 5)}.0`
    const type = this.#pick(['RollingUpdate', 'RollingUpdate', 'OnDelete'])
    this.world.patch(name, { spec: { rollout: { strategy: { type } }, template: { spec: { version } } } })
    return `${type} of ${name} to ${version}`
  }

  #pause(): string {
    const name = this.#pick(deployments)
    const value = this.#pick(['', null])
    this.world.patch(name, { metadata: { annotations: { 'cluster.x-k8s.io/paused': value } } })
    return `${value === null ? 'resume' : 'pause'} ${name}`
  }

  #strike(): string {
    const effect = this.#pick(effects)
    this.world.cloud.faults.add({ times: integerBetween(this.random, 1, 3), effect })
    return `strike ${effect.kind}`
  }

  async #die(): Promise<string> {
    const revision = integerBetween(this.random, this.#since, this.world.revision)
    const { wrong, excused } = this.#watch
    this.#watch.stop()
    this.world = await this.world.killedAfter(revision)
    this.#watch = new DeletionWatch(this.world)
    this.#watch.wrong.push(...wrong)
    for (const name of excused) this.#watch.excused.add(name)
    return `die after write ${revision}`
  }

  #pick<T>(some: readonly T[]): T {
    return some[integerBetween(this.random, 0, some.length - 1)] as T
  }
}

/** Everything heals: each MachineDeployment has the Machines that it asks for, and each Machine of them one Node. */
async function settled({ random, world }: Story): Promise<void> {
  world.cloud.faults.clear()
  for (const name of deployments) {
    world.patch(name, { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
    if (unit(random) < 0.5) world.scale(name, integerBetween(random, 0, 5))
  }
  // Whoever watches health deletes what does not work; rollouts wait for it.
  for (let round = 0; round < 12; round++) {
    await world.seconds(200)
    for (const machine of world.machines())
      if (machine.status?.phase !== 'Running' || isShared(world, machine) || !isHealthy(machine))
        if (!isLeaving(machine)) world.deleteMachine(machine.metadata.name)
  }
  await world.seconds(300)
  for (const name of deployments) {
    const { replicas } = world.deployment(name)?.spec ?? {}
    const expected = replicas === 0 ? {} : { Running: replicas }
    assert.deepEqual(world.phases(name), expected, `Machines of ${name}`)
    assert.equal(world.deployment(name)?.status?.replicas, replicas, `status of ${name}`)
  }
  const names = world.machines().map(({ metadata }) => metadata.name)
  assert.deepEqual(
    world.nodes().map(({ metadata }) => metadata.name),
    names,
  )
  assert.deepEqual(world.cluster.kubelets.running(), names.toSorted())
  for (const name of deployments) world.scale(name, 0)
  await world.seconds(120)
  assert.deepEqual([world.machines(), world.nodes(), world.cloud.instances()], [[], [], []])
}

const isShared = (world: ClusterApiFixture, { metadata, spec }: FullMachine): boolean =>
  world
    .machines()
    .some((other) => other.metadata.uid !== metadata.uid && other.spec?.providerID === spec?.providerID)

const isHealthy = ({ status }: FullMachine): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true

const only = process.env['TENON_MACHINES_SEED']
const seeds = only === undefined ? Array.from({ length: 4 }, (_, seed) => `${seed}`) : [only]

for (const seed of seeds)
  test(`random MachineDeployments have their Machines at rest, and no Node is without one (TENON_MACHINES_SEED=${seed})`, async () => {
    const { deploymentDelay, controllerDelay, bootstrapDelay, providerIdDelay } = defaultSettings()
    const settings = { deploymentDelay, controllerDelay, bootstrapDelay, providerIdDelay }
    const story = new Story(seed, await ClusterApiFixture.start({ settings, seed }))
    const log: string[] = []
    for (let step = 0; step < steps; step++) {
      log.push(await story.step())
      assert.deepEqual(story.wrong(), [], log.join('\n'))
    }
    await settled(story)
    assert.deepEqual(story.wrong(), [], log.join('\n'))
    story.world.stop()
  })
