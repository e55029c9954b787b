/**
 * One run of the Cluster Autoscaler mode: workload and faults, and then a calm phase in which everything has to
 * recover.
 */
import type { Credentials } from '@tenon/devcluster'
import {
  integerBetween,
  oneChunk,
  type Random,
  readText,
  SeededRandom,
  type Transport,
  unit,
  VirtualClock,
} from '@tenon/runtime'
import { EventLog } from '../simulation/event-log.ts'
import { faultyApi } from '../simulation/faults/api-faults.ts'
import { Weather } from '../simulation/faults/weather.ts'
import { AutoscalerWorld, type WorldPool } from './autoscaler-world.ts'
import { Checker, type Violation } from './checker.ts'
import { playFault, repair } from './faults.ts'
import type { PlantedMistake } from './planted.ts'
import { Supervisor } from './supervisor.ts'
import { Workload } from './workload.ts'

export interface AutoscalerStory {
  readonly seed: number
  /** Virtual minutes with workload and faults; the calm phase is added. */
  readonly minutes: number
  readonly hasFaults: boolean
  readonly mistake?: PlantedMistake
}

/** The result of a story. */
export interface StoryOutcome {
  /** The first violated invariant. */
  readonly violation: Violation | undefined
  /** Cloud calls that failed. */
  readonly failedCalls: number
  /** Requests to the API server, including watches, that failed. */
  readonly failedRequests: number
  readonly processes: number
  readonly nodesAtMost: number
}

/** What is expensive to create and shared by several runs. */
export interface StoryParts {
  readonly credentials: Credentials
}

const minute = 60_000
/** Longer than the maximum back-off plus all scale-down delays. */
const calmMs = 90 * minute
const types = ['standard.medium', 'standard.large', 'standard.extra-large'] as const

export async function playStory(
  { seed, minutes, hasFaults, mistake }: AutoscalerStory,
  { credentials }: StoryParts,
): Promise<StoryOutcome> {
  const dice = new SeededRandom(`autoscaler-story-${seed}`)
  const pools = drawPools(dice.fork('pools'))
  const checker = new Checker(pools)
  const clock = new VirtualClock(undefined, 1)
  const weather = new Weather(clock, dice.fork('weather'), {
    faults: hasFaults ? 'high' : 'none',
    withoutFaults: [],
  })
  const log = new EventLog(clock)
  const faulty = (inner: Transport) => faultyApi(staleLists(inner, weather), { weather, clock, log })
  const world = await AutoscalerWorld.start({
    seed,
    pools,
    credentials,
    clock,
    flags: ['--scan-interval=20s', ...(hasFaults ? drawFlags(dice.fork('flags')) : [])],
    ports: {
      api: (inner, identity) => (mistake?.api ?? same)(checker.api(faulty(inner), identity)),
      cloud: (inner, identity) => checker.cloud(inner, identity),
      groups: mistake?.groups ?? same,
      specs: mistake?.specs ?? same,
    },
  })
  checker.observe(world)
  const workload = new Workload(world, dice.fork('workload'))
  const replicas = mistake?.replicas ?? (hasFaults ? integerBetween(dice.fork('replicas'), 1, 2) : 1)
  const supervisor = new Supervisor(world, replicas)
  const end = world.clock.now() + minutes * minute
  const pace = dice.fork('pace')
  let nodesAtMost = 0
  workload.begin()
  while (world.clock.now() < end && checker.violation === undefined) {
    await world.clock.advance(integerBetween(pace, 1, 5) * minute)
    nodesAtMost = Math.max(nodesAtMost, world.nodes().length)
    supervisor.look()
    workload.step()
    if (hasFaults && unit(pace) < 0.5) await playFault(world, supervisor, pace)
  }
  if (checker.violation === undefined) {
    repair(world)
    weather.clearUp()
    supervisor.look()
    for (let passed = 0; passed < calmMs && checker.violation === undefined; passed += 5 * minute) {
      await world.clock.advance(5 * minute)
      supervisor.look()
    }
    checker.checkRest()
  }
  await supervisor.end()
  await world.stop()
  return {
    violation: checker.violation,
    failedCalls: world.cluster.cloud.calls().filter(({ status }) => status >= 400).length,
    processes: supervisor.processes,
    failedRequests: [...weather.struck().values()].reduce((sum, each) => sum + each, 0),
    nodesAtMost,
  }
}

function drawPools(dice: Random): readonly WorldPool[] {
  const count = integerBetween(dice, 1, 3)
  return Array.from({ length: count }, (_, index) => {
    const min = integerBetween(dice, 1, 2)
    return {
      name: `pool${index}`,
      kind: unit(dice) < 0.7 ? ('nodepool' as const) : ('instancePool' as const),
      type: types[integerBetween(dice, 0, types.length - 1)] ?? 'standard.medium',
      size: min + integerBetween(dice, 0, 1),
      min,
      max: min + integerBetween(dice, 3, 6),
    }
  })
}

/** Flags that users set, each in some of the stories. */
function drawFlags(dice: Random): readonly string[] {
  const all = [
    '--planned-placement',
    '--balance-similar-node-groups',
    '--parallel-scale-up',
    '--max-drain-parallelism=4',
    '--node-deletion-batcher-interval=30s',
    '--enforce-node-group-min-size',
  ]
  return all.filter(() => unit(dice) < 0.3)
}

const same = <T>(inner: T): T => inner

/** Lists of nodes or pods, also of those on one node. */
const listed = /\/(?:nodes|pods)(?:\?|$)/

/** Wraps the connection to the API server; a list of nodes or pods may be an earlier response to the same request. */
function staleLists(inner: Transport, weather: Pick<Weather, 'strikes'>): Transport {
  const before = new Map<string, string>()
  return {
    send: async (request, signal) => {
      const { method, path } = request
      if (method !== 'GET' || path.includes('watch=') || !listed.test(path))
        return await inner.send(request, signal)
      const old = before.get(path)
      const response = await inner.send(request, signal)
      if (response.status !== 200) return response
      const text = await readText(response.body)
      before.set(path, text)
      return { ...response, body: oneChunk(old !== undefined && weather.strikes('staleList') ? old : text) }
    },
  }
}
