/** One controller process: client, caches, provider, operator and leader election. */
import {
  createCacheRegistry,
  createEventRecorder,
  createKubeClient,
  createLeaderElector,
  type EventRecorder,
  fencedTransport,
  type LeaderElector,
  type LeaderElectorOptions,
} from '@tenon/kube'
import { defaultSettings, InlineDecider, Operator, type Settings } from '@tenon/operator'
import type { Clock, Logger, Random, Transport } from '@tenon/runtime'
import { clusterEndpoint, type World } from '../../world.ts'
import type { WorldCloud } from '../cloud/world-cloud.ts'
import type { PlantedBug } from '../planted/planted-bug.ts'
import { ProcessClock } from './process-clock.ts'
import { ProcessPort } from './process-port.ts'

const lease = { namespace: 'kube-system', name: 'karpenter-leader-election' }

export interface ProcessPlan {
  readonly name: string
  readonly world: World
  readonly worldCloud: WorldCloud
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly settings: Partial<Settings>
  /** Timing of leader election. */
  readonly election: Pick<LeaderElectorOptions, 'leaseDurationMs' | 'renewDeadlineMs' | 'retryPeriodMs'>
  /** The connections of this process to the servers. */
  readonly api: Transport
  readonly cloud: Transport
  /** Records Events; if undefined they are written to the API server. */
  readonly events: EventRecorder | undefined
  /** Called when a leader begins a clean shutdown, and when it has ended. */
  readonly ends: (step: 'ending' | 'ended') => void
  readonly bug: PlantedBug | undefined
}

/** A running controller. */
export class OperatorProcess {
  readonly name: string
  readonly clock: ProcessClock
  readonly port: ProcessPort
  readonly #plan: ProcessPlan
  #elector: LeaderElector | undefined
  #operator: Operator | undefined
  #isEnding = false
  #leadsSinceMs: number | undefined

  constructor(plan: ProcessPlan) {
    this.name = plan.name
    this.#plan = plan
    this.clock = new ProcessClock(plan.clock)
    this.port = new ProcessPort(this.clock)
  }

  get isLeader(): boolean {
    return this.#elector?.isLeader === true || this.#plan.bug?.leadsAtOnce === true
  }

  /** Monotonic time at which it began to lead; before that it only fills its caches. */
  get leadsSinceMs(): number | undefined {
    return this.#leadsSinceMs
  }

  /** The operator, once it has been built. */
  get operator(): Operator | undefined {
    return this.#operator
  }

  /** Starts the process; ends it as the program would, if it cannot start or loses the lease. */
  async run(): Promise<void> {
    try {
      await this.#start()
    } catch {
      // A program that cannot start exits, and its Deployment starts another one.
      this.port.kill()
    }
  }

  /** The settings it was started with. */
  get settings(): Partial<Settings> {
    return this.#plan.settings
  }

  /** Whether it may change anything now. */
  #mayAct(): boolean {
    return this.isLeader || this.#plan.bug?.isUnfenced === true
  }

  /** Ends the process as SIGTERM does: it releases the lease. */
  async stop(): Promise<void> {
    this.#isEnding = true
    const hasLed = this.#elector?.isLeader === true
    if (hasLed) this.#plan.ends('ending')
    await this.#operator?.stop()
    // A process that could not renew the lease during its shutdown has lost it, and releases nothing.
    const holds = this.#elector?.isLeader === true
    await this.#elector?.stop()
    if (hasLed && holds && !this.port.isDead) this.#plan.ends('ended')
    this.port.kill()
  }

  async #start(): Promise<void> {
    const { world, worldCloud, random, bug, settings, name } = this.#plan
    const { clock } = this
    const logger = bug?.logger?.(this.#plan.logger, { world }) ?? this.#plan.logger
    const fenced = (transport: Transport): Transport => fencedTransport(transport, () => this.#mayAct())
    const api = this.port.guard(this.#plan.api)
    const cloud = fenced(this.port.guard(this.#plan.cloud))
    const clientOf = (transport: Transport) =>
      createKubeClient({
        transport: fenced(transport),
        clock,
        userAgent: 'karpenter/world',
        rate: { perSecond: 200, burst: 300 },
      })
    const client = clientOf(api)
    const events =
      this.#plan.events ?? createEventRecorder({ client, clock, logger, random, component: 'karpenter' })
    const registry = createCacheRegistry({ client, clock, logger, random })
    const opened = await worldCloud.openProvider({
      cloud,
      kubernetes: {
        client: bug?.providerApi === undefined ? client : clientOf(bug.providerApi(api, { world })),
        registry,
        events,
        server: clusterEndpoint,
      },
      runtime: { clock, random, logger },
    })
    const decider = new InlineDecider(clock)
    const operator = new Operator({
      kubernetes: { client, registry, events },
      runtime: { clock, random, logger },
      provider: bug?.provider?.(opened, { world }) ?? opened,
      decider: bug?.decider?.(decider) ?? decider,
      settings: { ...defaultSettings, ...settings, ...bug?.settings },
    })
    bug?.operator?.(operator, { world })
    this.#operator = operator
    await operator.observe()
    const lead = (): void => {
      this.#leadsSinceMs = clock.monotonic()
      operator.lead()
    }
    if (bug?.leadsAtOnce === true) {
      lead()
      return
    }
    this.#elector = createLeaderElector({
      client: createKubeClient({ transport: api, clock, userAgent: 'karpenter/world' }),
      clock,
      random,
      logger,
      ...lease,
      ...this.#plan.election,
      identity: name,
      onStarted: lead,
      onStopped: () => {
        if (!this.#isEnding && bug?.goesOn !== true) void this.#end(operator)
      },
    })
    this.#elector.start()
  }

  /** When leadership ends, the program stops what it can and exits. */
  async #end(operator: Operator): Promise<void> {
    await Promise.race([operator.stop(), this.#plan.clock.sleep(5000)])
    this.port.kill()
  }
}
