/**
 * One run of the Cluster Autoscaler mode on Cluster API: workload, people and faults of the hub, and then a calm phase
 * in which everything has to recover.
 */
import type { Credentials } from '@tenon/devcluster'
import { integerBetween, SeededRandom, unit, VirtualClock } from '@tenon/runtime'
import { Supervisor } from '../supervisor.ts'
import { Workload } from '../workload.ts'
import { HubChecker, type HubViolation } from './hub-checker.ts'
import type { PlantedHubMistake } from './hub-planted.ts'
import { addHealthCheck, playFault, repair } from './hub-plays.ts'
import { HubTrouble } from './hub-trouble.ts'
import { HubWorld, type WorldGroup } from './hub-world.ts'

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
  { name: 'workers', cpu: 4, memory: '8Gi', replicas: 2, bounds: { min: 1, max: 6 }, topology: {} },
  { name: 'batch', cpu: 8, memory: '16Gi', replicas: 0, bounds: { min: 0, max: 4 } },
  { name: 'kept', cpu: 4, memory: '8Gi', replicas: 1, bounds: { min: 0, max: 3 }, topology: { replicas: 1 } },
  { name: 'private', cpu: 2, memory: '4Gi', replicas: 1 },
  { name: 'claims', cpu: 2, memory: '4Gi', replicas: 2, isMember: true },
]

export async function playHubStory(
  { seed, minutes, hasFaults, mistake }: HubStory,
  credentials: Credentials,
): Promise<HubOutcome> {
  const dice = new SeededRandom(`hub-story-${seed}`)
  const clock = new VirtualClock(undefined, 1)
  const checker = new HubChecker()
  const trouble = new HubTrouble(clock, dice.fork('hub'), hasFaults)
  const world = await HubWorld.start({
    seed,
    groups,
    controlPlanes: 1,
    credentials,
    clock,
    ports: {
      api: (inner, identity) => {
        const sent = checker.sender(checker.api(inner), identity)
        return mistake?.api?.(sent) ?? sent
      },
      hub: (inner, identity) => {
        const sent = checker.sender(trouble.over(checker.hub(inner, identity)), identity)
        return mistake?.hub?.(sent) ?? sent
      },
      groups: (inner) => mistake?.groups?.(inner) ?? inner,
    },
  })
  checker.observe(world)
  if (hasFaults) addHealthCheck(world)
  const workload = new Workload(world, dice.fork('workload'), 20)
  const supervisor = new Supervisor(world, 1)
  const stage = { world, supervisor, trouble, checker }
  const pace = dice.fork('pace')
  const end = clock.now() + minutes * minute
  let nodesAtMost = 0
  workload.begin()
  while (clock.now() < end && checker.violation === undefined) {
    await clock.advance(integerBetween(pace, 1, 5) * minute)
    nodesAtMost = Math.max(nodesAtMost, world.nodes().length)
    supervisor.look()
    workload.step()
    if (hasFaults && unit(pace) < 0.5) await playFault(stage, pace)
  }
  if (checker.violation === undefined) {
    repair(stage)
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
