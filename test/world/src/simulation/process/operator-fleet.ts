/** The controllers of one cluster, restarted when they end. */
import { type Clock, integerBetween, type Logger, type Random, type Transport } from '@tenon/runtime'
import type { Settings } from '@tenon/operator'
import type { World } from '../../world.ts'
import type { WorldCloud } from '../cloud/world-cloud.ts'
import type { EventLog } from '../event-log.ts'
import type { PlantedBug } from '../planted/planted-bug.ts'
import { OperatorProcess, type ProcessPlan } from './operator-process.ts'

export interface FleetPlan {
  readonly world: World
  readonly worldCloud: WorldCloud
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly log: EventLog
  readonly replicas: number
  readonly settings: Partial<Settings>
  readonly election: ProcessPlan['election']
  readonly events: ProcessPlan['events']
  /** The connections of a process to the servers, with faults. */
  readonly apiOf: (process: OperatorProcess) => Transport
  readonly cloudOf: (process: OperatorProcess) => Transport
  /** Called when a leader begins a clean shutdown, and when it has ended. */
  readonly ends: (process: OperatorProcess, step: 'ending' | 'ended') => void
  readonly bug: PlantedBug | undefined
}

/** Keeps a number of controllers running, as a Deployment does. */
export class OperatorFleet {
  readonly #plan: FleetPlan
  readonly #processes = new Set<OperatorProcess>()
  #started = 0
  #isStopped = false
  /** Settings of processes that start from now on. */
  settings: Partial<Settings>

  constructor(plan: FleetPlan) {
    this.#plan = plan
    this.settings = plan.settings
  }

  start(): void {
    for (let i = 0; i < this.#plan.replicas; i++) this.#startOne()
  }

  /** In order of their start. */
  running(): readonly OperatorProcess[] {
    return [...this.#processes]
  }

  leader(): OperatorProcess | undefined {
    return this.running().find((process) => process.isLeader && !process.clock.isPaused)
  }

  /** Number of processes started so far. */
  get started(): number {
    return this.#started
  }

  stop(): void {
    this.#isStopped = true
    for (const process of this.#processes) process.port.kill()
  }

  #startOne(): void {
    const { clock, random, log, world, worldCloud, logger, election, events, apiOf, cloudOf, ends, bug } =
      this.#plan
    const { settings } = this
    const name = `karpenter-${this.#started++}`
    const own = random.fork(name)
    const process: OperatorProcess = new OperatorProcess({
      name,
      world,
      worldCloud,
      clock,
      random: own,
      logger: logger.with({ process: name }),
      settings,
      election,
      events,
      api: { send: (request, signal) => api.send(request, signal) },
      cloud: { send: (request, signal) => cloud.send(request, signal) },
      ends: (step) => {
        ends(process, step)
      },
      bug,
    })
    const api = apiOf(process)
    const cloud = cloudOf(process)
    this.#processes.add(process)
    log.record('process', `start ${name}`)
    process.port.onDeath = () => {
      this.#processes.delete(process)
      log.record('process', `end ${name}`)
      if (!this.#isStopped) clock.after(integerBetween(own, 1000, 30_000), () => this.#restart())
    }
    void process.run()
  }

  #restart(): void {
    if (!this.#isStopped) this.#startOne()
  }
}
