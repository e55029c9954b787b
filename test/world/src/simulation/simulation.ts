/** One run of a story. */
import { type KubeObject, kinds as kubeKinds } from '@tenon/api'
import { JsonLogger, type Logger, type Random, SeededRandom } from '@tenon/runtime'
import { defaultSettings, type Settings } from '@tenon/operator'
import { World } from '../world.ts'
import { cloudIn, cloudSetup } from './cloud/clouds.ts'
import { ControllerLogs } from './controller-logs.ts'
import { EventLog } from './event-log.ts'
import { EventNotes } from './event-notes.ts'
import { faultyApi } from './faults/api-faults.ts'
import { faultyCloud } from './faults/cloud-faults.ts'
import { playDeviceFaults, withDrivers } from './faults/device-faults.ts'
import { labelPools, playInstanceFaults } from './faults/instance-faults.ts'
import { LyingCloud } from './faults/lying-cloud.ts'
import { playProcessFaults } from './faults/process-faults.ts'
import { StubbornScheduler } from './faults/stubborn-scheduler.ts'
import { ViewFaults } from './faults/view-faults.ts'
import { Weather } from './faults/weather.ts'
import { fleetOf, launchesOfAge, unrest } from './invariants/calm.ts'
import { Checker } from './invariants/checker.ts'
import { roomTrouble } from './invariants/buffers.ts'
import { deviceTrouble } from './invariants/devices.ts'
import { gangTrouble } from './invariants/gangs.ts'
import { MetricsWatch } from './invariants/metrics.ts'
import type { Violation } from './invariants/scene.ts'
import { calmBoundMs, Settling } from './invariants/settling.ts'
import { paceOf } from './pace.ts'
import type { PlantedBug } from './planted/planted-bug.ts'
import { distorted } from './planted/sight.ts'
import { OperatorFleet } from './process/operator-fleet.ts'
import type { FaultKind, Story } from './story.ts'
import { kindsOf, playWorkload } from './workload/play-workload.ts'
import { endWanted, wantedSettings } from './workload/wanted.ts'

const minute = 60_000

/** The results of a run. */
export interface Report {
  readonly story: Story
  readonly violation: Violation | undefined
  /** Equal for two runs of the same story. */
  readonly hash: string
  readonly events: number
  readonly checks: number
  readonly faults: ReadonlyMap<FaultKind, number>
  /** Launched instances, and the maximum numbers of nodes and pods. */
  readonly launches: number
  readonly mostNodes: number
  readonly mostPods: number
  /** Average number of nodes. */
  readonly meanNodes: number
  /** Controller processes started. */
  readonly processes: number
  /** Virtual minutes from the last fault until everything was well. */
  readonly calmMinutes: number
  /** The last events, and the last lines of the controllers' logs. */
  readonly tail: readonly string[]
  readonly logs: readonly string[]
  /** The newest Events of the cluster, oldest first. */
  readonly clusterEvents: readonly string[]
}

/** The progress of a run. */
export interface Moment {
  /** Virtual time since the beginning; more than `ofMs` in the calm phase. */
  readonly atMs: number
  readonly ofMs: number
  readonly nodes: number
  readonly pods: number
  readonly events: number
}

/**
 * Runs a story to its end, or to the first violation.
 * @param watch called every virtual minute; must not affect the run.
 */
export async function simulate(
  story: Story,
  bug?: PlantedBug,
  watch?: (now: Moment) => void,
): Promise<Report> {
  const random = new SeededRandom(`story-${story.seed}`)
  const pace = paceOf(story)
  const kinds = kindsOf(story, random.fork('workload'))
  const scheduler = new StubbornScheduler()
  const world = await World.start({
    seed: story.seed,
    servesBuffers: kinds.has('buffers'),
    servesQuotas: kinds.has('wanted'),
    ...setupOf(story, pace, { scheduler, hasDrivers: kinds.has('devices'), guests: random.fork('guests') }),
    // Everything here only awaits promises.
    turns: 1,
  })
  const logs = new ControllerLogs(world.secrets(), (line) => {
    if (!repeats(fleet)) checker.logged(line)
  })
  const { clock } = world
  const logger: Logger = new JsonLogger(clock, (line) => logs.write(line), { value: 'info' })
  const log = new EventLog(clock)
  const weather = new Weather(clock, random.fork('weather'), story)
  const cloud = cloudIn(world, story, { clock, random: random.fork('administrator'), logger })
  const faults = { weather, clock, log }
  const lies = new LyingCloud(faults)
  const views = new ViewFaults(clock)
  const checker = new Checker(world, log, { story, weather, cloud, lies, views })
  checker.start()
  const replicas = bug?.replicas ?? (story.faults === 'none' ? 1 : 1 + (random.fork('replicas').uint32() % 2))
  log.record('workload', `kinds ${[...kinds].join(' ')}; ${replicas} controller(s)`)
  const notes = pace.writesEvents ? undefined : new EventNotes(clock)
  const fleet = new OperatorFleet({
    world,
    worldCloud: cloud,
    clock,
    random: random.fork('fleet'),
    logger,
    log,
    replicas,
    bug,
    election: pace.election,
    events: notes,
    ends: (process, step) => {
      checker.ends(process, step)
    },
    settings: {
      ...pace.settings,
      ...readingOf(kinds, random),
    },
    apiOf: (process) => {
      const seen = checker.watchingApi(world.kubeTransport(), process)
      const faulty = faultyApi(views.path(process, seen), faults)
      const planted = bug?.api?.(faulty, { world }) ?? faulty
      return bug?.sees === undefined ? planted : distorted(planted, bug.sees)
    },
    cloudOf: (process) => {
      const seen = checker.watchingCloud({ send: world.cluster.cloud.handle }, process)
      const faulty = lies.path(faultyCloud(seen, faults))
      return bug?.cloud?.(faulty, { world }) ?? faulty
    },
  })
  let isCalm = false
  const isOver = (): boolean => isCalm
  playWorkload(world, story, { cloud, kinds, clock, random: random.fork('workload'), log, isOver })
  labelPools(world, story, random.fork('kubelet labels'))
  fleet.start()
  const stopFaults = [
    cloud.playFaults(faults),
    playInstanceFaults(world, cloud, faults),
    ...(kinds.has('devices') ? [playDeviceFaults(world, faults)] : []),
    playProcessFaults(fleet, faults, kinds.has('wanted')),
    views.play(world, fleet, faults),
    scheduler.play(world, faults),
    lies.stopLying,
  ]
  const census = new Census(world)
  const violate = checker.violate.bind(checker)
  const end = story.hours * 60 * minute
  const look = (): void => {
    const counted = census.count()
    watch?.({ ...counted, atMs: clock.monotonic(), ofMs: end, events: log.count })
    logs.check(violate)
  }
  const metrics = new MetricsWatch(world, violate, pace.scrapeMinutes)
  const step = async (): Promise<boolean> => {
    const failed = await clock.advanceUntil(() => checker.violation !== undefined, minute)
    look()
    await metrics.look(fleet.running())
    return failed
  }
  while (clock.monotonic() < end && !(await step()));
  isCalm = true
  weather.clearUp()
  for (const stop of stopFaults) stop()
  if (kinds.has('wanted')) endWanted(world)
  log.record('fault', 'calm')
  const wrong = () => troubleIn(world, cloud, kinds)
  const calmMs = await untilWell(world, { checker, fleet, wrong }, step)
  const clusterEvents = notes?.lines ?? newestEvents(world, 200)
  fleet.stop()
  await world.stop()
  return {
    story,
    violation: checker.violation,
    hash: log.digest(),
    events: log.count,
    checks: checker.checks,
    faults: weather.struck(),
    launches: checker.launches,
    mostNodes: census.mostNodes,
    mostPods: census.mostPods,
    meanNodes: census.meanNodes,
    processes: fleet.started,
    calmMinutes: Math.round(calmMs / minute),
    tail: log.tail(),
    logs: logs.lines,
    clusterEvents,
  }
}

function setupOf(
  story: Story,
  pace: ReturnType<typeof paceOf>,
  {
    scheduler: { extraFilter },
    hasDrivers,
    guests,
  }: { readonly scheduler: StubbornScheduler; readonly hasDrivers: boolean; readonly guests: Random },
) {
  const cluster = { ...pace.cluster, scheduler: { ...pace.cluster.scheduler, extraFilter } }
  const setup = { ...cloudSetup(story, pace, guests), cluster }
  return hasDrivers ? withDrivers(story, setup) : setup
}

/** Counts nodes and pods now and then. */
class Census {
  readonly #store: World['cluster']['server']['store']
  mostNodes = 0
  mostPods = 0
  #nodes = 0
  #times = 0

  constructor({ cluster }: World) {
    this.#store = cluster.server.store
  }

  count(): Pick<Moment, 'nodes' | 'pods'> {
    const nodes = this.#store.collection('nodes').size
    const pods = this.#store.collection('pods').size
    this.#nodes += nodes
    this.#times++
    this.mostNodes = Math.max(this.mostNodes, nodes)
    this.mostPods = Math.max(this.mostPods, pods)
    return { nodes, pods }
  }

  get meanNodes(): number {
    return Math.round(this.#nodes / Math.max(1, this.#times))
  }
}

/** Whether the controllers retry failing moves for ever, as Karpenter does. */
const repeats = ({ settings }: OperatorFleet): boolean => settings.compatibility === 'karpenter'

/**
 * Continues until everything has been well for a while, or the time limit.
 * @returns how long it took.
 */
async function untilWell(
  world: World,
  {
    checker,
    fleet,
    wrong,
  }: {
    readonly checker: Checker
    readonly fleet: OperatorFleet
    readonly wrong: () => readonly string[]
  },
  step: () => Promise<boolean>,
): Promise<number> {
  const { clock } = world
  const settling = new Settling(clock.monotonic())
  const launchesThen = checker.launches
  while (checker.violation === undefined) {
    const verdict = settling.look({
      nowMs: clock.monotonic(),
      fleet: fleetOf(world),
      wrong: wrong(),
      launches: checker.launches - launchesThen,
      launchesOfAge: launchesOfAge(world, calmBoundMs),
      repeats: repeats(fleet),
    })
    if (verdict.kind === 'broken') checker.violate(verdict.invariant, verdict.text)
    if (verdict.kind !== 'waiting') break
    await step()
  }
  return settling.lastedMs
}

interface ClusterEvent extends KubeObject {
  readonly involvedObject?: { readonly kind?: string; readonly name?: string }
  readonly reason?: string
  readonly message?: string
  readonly lastTimestamp?: string | null
  readonly eventTime?: string | null
}

/** The newest Events, oldest first, one line each. */
function newestEvents(world: World, limit: number): readonly string[] {
  const timeOf = (event: ClusterEvent): string =>
    event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? ''
  return (world.cluster.server.local.list(kubeKinds.event) as readonly ClusterEvent[])
    .toSorted((a, b) => (timeOf(a) < timeOf(b) ? -1 : 1))
    .slice(-limit)
    .map((event) => {
      const { kind, name } = event.involvedObject ?? {}
      return `${timeOf(event)} ${event.reason} ${kind}/${name}: ${event.message}`
    })
}

/** The kinds that the workload needs. Requests to the API are part of what a seed replays, so no others are read. */
function readingOf(kinds: ReturnType<typeof kindsOf>, random: Random): Partial<Settings> {
  const switchedOn = kinds.has('wanted') ? wantedSettings(random.fork('wanted settings')) : undefined
  return {
    ...switchedOn,
    vpaPredictions: false,
    ignoreDraRequests: !kinds.has('devices'),
    featureGates: {
      ...(switchedOn ?? defaultSettings).featureGates,
      nodeOverlay: kinds.has('priceChanges'),
      staticCapacity: kinds.has('staticPools'),
      capacityBuffer: kinds.has('buffers'),
      groupScheduling: kinds.has('gangs'),
    },
  }
}

/** Problems that must be solved before the end. */
function troubleIn(
  world: World,
  cloud: ReturnType<typeof cloudIn>,
  kinds: ReturnType<typeof kindsOf>,
): readonly string[] {
  const rooms = kinds.has('buffers') ? roomTrouble(world) : []
  const gangs = kinds.has('gangs') ? gangTrouble(world) : []
  return [...unrest(world, cloud), ...rooms, ...deviceTrouble(world), ...gangs]
}
