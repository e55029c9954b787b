/**
 * One run of the Cluster Autoscaler mode on Cluster API: workload, people and faults of the hub, and then a calm phase
 * in which everything has to recover.
 */
import type { Credentials } from '@tenon/devcluster'
import {
  type Clock,
  integerBetween,
  oneChunk,
  type Random,
  SeededRandom,
  type Transport,
  unit,
  VirtualClock,
} from '@tenon/runtime'
import { Supervisor } from '../supervisor.ts'
import { Workload } from '../workload.ts'
import { HubChecker, type HubViolation } from './hub-checker.ts'
import { HubWorld, namespace, type WorldGroup } from './hub-world.ts'
import type { PlantedHubMistake } from './hub-planted.ts'

interface HubStory {
  readonly seed: number
  /** Virtual minutes with workload and faults; the calm phase is added. */
  readonly minutes: number
  readonly hasFaults: boolean
  readonly mistake?: PlantedHubMistake
}

interface HubOutcome {
  /** The first violated invariant. */
  readonly violation: HubViolation | undefined
  /** Requests to the hub that failed. */
  readonly failedCalls: number
  readonly processes: number
  readonly nodesAtMost: number
}

const minute = 60_000
const calmMs = 90 * minute

const groups: readonly WorldGroup[] = [
  { name: 'workers', cpu: 4, memory: '8Gi', replicas: 2, bounds: { min: 1, max: 6 } },
  { name: 'batch', cpu: 8, memory: '16Gi', replicas: 0, bounds: { min: 0, max: 4 } },
  { name: 'private', cpu: 2, memory: '4Gi', replicas: 1 },
]

export async function playHubStory(
  { seed, minutes, hasFaults, mistake }: HubStory,
  credentials: Credentials,
): Promise<HubOutcome> {
  const dice = new SeededRandom(`hub-story-${seed}`)
  const clock = new VirtualClock(undefined, 1)
  const checker = new HubChecker()
  const trouble = new HubTrouble(clock, dice.fork('hub'))
  const world = await HubWorld.start({
    seed,
    groups,
    credentials,
    clock,
    ports: {
      api: (inner, identity) => checker.api(inner, identity),
      hub: (inner, identity) => {
        const checked = checker.hub(trouble.over(inner), identity)
        return mistake?.hub?.(checked) ?? checked
      },
      groups: (inner) => mistake?.groups?.(inner) ?? inner,
    },
  })
  checker.observe(world)
  if (hasFaults) addHealthCheck(world)
  const workload = new Workload(world, dice.fork('workload'))
  const supervisor = new Supervisor(world, 1)
  const pace = dice.fork('pace')
  const end = clock.now() + minutes * minute
  let nodesAtMost = 0
  workload.begin()
  while (clock.now() < end && checker.violation === undefined) {
    await clock.advance(integerBetween(pace, 1, 5) * minute)
    nodesAtMost = Math.max(nodesAtMost, world.nodes().length)
    supervisor.look()
    workload.step()
    if (hasFaults && unit(pace) < 0.5) await playFault({ world, supervisor, trouble, checker }, pace)
  }
  if (checker.violation === undefined) {
    trouble.clear()
    repair(world)
    supervisor.look()
    for (let passed = 0; passed < calmMs && checker.violation === undefined; passed += 5 * minute) {
      await clock.advance(5 * minute)
      supervisor.look()
    }
    checker.checkRest()
  }
  await supervisor.end()
  await world.stop()
  return {
    violation: checker.violation,
    failedCalls: trouble.failed,
    processes: supervisor.processes,
    nodesAtMost,
  }
}

/** Faults of the connection to the hub. */
class HubTrouble {
  readonly #clock: Clock
  readonly #dice: Random
  #until = 0
  #kind: 'away' | 'refuses' | 'errs' | 'slow' | 'losesReplies' = 'away'
  failed = 0

  constructor(clock: Clock, dice: Random) {
    this.#clock = clock
    this.#dice = dice
  }

  begin(forMs: number): void {
    const all = ['away', 'refuses', 'errs', 'slow', 'losesReplies'] as const
    this.#kind = all[integerBetween(this.#dice, 0, all.length - 1)] ?? 'away'
    this.#until = this.#clock.monotonic() + forMs
  }

  clear(): void {
    this.#until = 0
  }

  over(inner: Transport): Transport {
    return {
      send: async (request, signal) => {
        if (this.#clock.monotonic() >= this.#until) return await inner.send(request, signal)
        const isWrite = request.method !== 'GET'
        if (this.#kind === 'slow') await this.#clock.sleep(integerBetween(this.#dice, 100, 20_000), signal)
        const isStruck = this.#kind === 'away' || unit(this.#dice) < 0.5
        if (this.#kind === 'slow' || !isStruck) return await inner.send(request, signal)
        this.failed++
        if (this.#kind === 'refuses') return failure(403, 'Forbidden')
        if (this.#kind === 'errs') return failure(500, 'InternalError')
        if (this.#kind === 'losesReplies' && isWrite) await inner.send(request, signal)
        throw new Error('connection reset by peer')
      },
    }
  }
}

const failure = (code: number, reason: string) => ({
  status: code,
  headers: { 'content-type': 'application/json' },
  body: oneChunk(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code })),
})

interface Stage {
  readonly world: HubWorld
  readonly supervisor: Supervisor
  readonly trouble: HubTrouble
  readonly checker: HubChecker
}

type Play = (stage: Stage, dice: Random) => void | Promise<void>

const effects = [
  { kind: 'neverJoins' },
  { kind: 'neverProvided' },
  { kind: 'neverReady' },
  { kind: 'fails', afterMs: 5_000, reason: 'CreateError', message: 'not here' },
  { kind: 'slow', providerIdMs: 300_000, nodeMs: 120_000 },
] as const

const plays: readonly Play[] = [
  ({ trouble }, dice) => trouble.begin(integerBetween(dice, 1, 8) * minute),
  ({ trouble }, dice) => trouble.begin(integerBetween(dice, 1, 8) * minute),
  ({ world }, dice) => {
    world.cluster.cloud.faults.add({ times: 1, effect: pick(dice, effects) })
  },
  /** A person writes replicas. */
  ({ world }, dice) => {
    const { name, bounds } = pick(dice, scaled)
    const { hub, kinds } = world.cluster.cloud
    const before = world.deployment(name)?.spec?.replicas ?? 0
    if (bounds !== undefined && before < bounds.max)
      hub.setScale(kinds.deployment, namespace, name, before + 1)
  },
  /** A person deletes a Machine. */
  ({ world, checker }, dice) => {
    const there = world.machines().filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    if (there.length === 0) return
    const machine = pick(dice, there)
    checker.allow(machine)
    world.cluster.cloud.hub.delete(world.cluster.cloud.kinds.machine, namespace, machine.metadata.name)
  },
  /** A machine is lost, for the MachineHealthCheck to find. */
  ({ world }, dice) => {
    const there = world.machines()
    if (there.length > 0) world.cluster.cloud.lose(namespace, pick(dice, there).metadata.name)
  },
  /** A rollout begins. */
  ({ world }, dice) => {
    const { hub, kinds } = world.cluster.cloud
    const failureDomain = `domain-${integerBetween(dice, 0, 9)}`
    hub.patch(kinds.deployment, namespace, pick(dice, scaled).name, {
      spec: { template: { spec: { failureDomain } } },
    })
  },
  ({ world }, dice) => {
    const { name } = pick(dice, scaled)
    pause(world, name, '')
    world.clock.after(integerBetween(dice, 2, 10) * minute, () => pause(world, name, null))
  },
  ({ supervisor }, dice) => supervisor.crash(dice),
  async ({ supervisor }) => {
    await supervisor.restart()
  },
]

const scaled = groups.filter(({ bounds }) => bounds !== undefined)

const playFault: Play = async (stage, dice) => {
  await pick(dice, plays)(stage, dice)
}

function pause(world: HubWorld, name: string, value: string | null): void {
  const { hub, kinds } = world.cluster.cloud
  hub.patch(kinds.deployment, namespace, name, {
    metadata: { annotations: { 'cluster.x-k8s.io/paused': value } },
  })
}

function addHealthCheck(world: HubWorld): void {
  const { hub, kinds } = world.cluster.cloud
  hub.create(kinds.healthCheck, {
    apiVersion: `${kinds.healthCheck.group}/${kinds.healthCheck.version}`,
    kind: kinds.healthCheck.kind,
    metadata: { name: 'all', namespace },
    spec: {
      clusterName: 'workload',
      selector: {},
      checks: {
        nodeStartupTimeoutSeconds: 1_800,
        unhealthyNodeConditions: [
          { type: 'Ready', status: 'Unknown', timeoutSeconds: 300 },
          { type: 'Ready', status: 'False', timeoutSeconds: 900 },
        ],
      },
    },
  })
}

function repair(world: HubWorld): void {
  world.cluster.cloud.faults.clear()
  for (const { name } of scaled) pause(world, name, null)
}

function pick<T>(dice: Random, all: readonly T[]): T {
  const found = all[integerBetween(dice, 0, all.length - 1)]
  if (found === undefined) throw new Error('there is nothing to choose from')
  return found
}
