/** Whether pods are nominated for the nodes they are planned for: feature gate PlannedPlacement (planned-placement.md). */
import { honoursNominations, minorOf } from '@tenon/api'
import type { SchedulingPolicy } from '@tenon/engine'
import type { KubeClient } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import { policyOf, type Settings } from '../settings.ts'

/** How often the version is asked for: a control plane may be upgraded under a running controller. */
const askAgainMs = 60_000
/** Pause after a forbidden nomination. */
const nominateAgainMs = 10 * 60_000

/** Off until {@link settled}, and for ten minutes after each forbidden nomination. */
export class PlacementGate {
  readonly #client: Pick<KubeClient, 'serverVersion'>
  readonly #settings: Pick<Settings, 'featureGates' | 'compatibility' | 'maxNominations'>
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #logger: Logger
  #isOpen = false
  #refusedUntilMs = Number.NEGATIVE_INFINITY
  #isSettled = false
  /** When to request the version again; undefined if it does not matter, or while it is requested. */
  #askAgainAtMs: number | undefined
  /** As last reported. */
  #server: string | undefined
  #minor: number | undefined
  #settling: Promise<void> | undefined

  constructor(
    client: Pick<KubeClient, 'serverVersion'>,
    settings: Pick<Settings, 'featureGates' | 'compatibility' | 'maxNominations'>,
    clock: Pick<Clock, 'monotonic'>,
    logger: Logger,
  ) {
    this.#client = client
    this.#settings = settings
    this.#clock = clock
    this.#logger = logger
  }

  /**
   * Resolves when the server's version is known as it was within the last minute, or cannot be asked for: a control plane may
   * be upgraded under a running controller. Never rejects.
   */
  settled(): Promise<void> {
    if (this.#askAgainAtMs !== undefined && this.#clock.monotonic() >= this.#askAgainAtMs) {
      this.#askAgainAtMs = undefined
      this.#settling = undefined
    }
    this.#settling ??= this.#ask()
    return this.#settling
  }

  get isOn(): boolean {
    return this.#isOpen && !this.#isRefused
  }

  /** Before {@link settled} neither this nor {@link isOn} is true. */
  get isOff(): boolean {
    return this.#isSettled && !this.isOn
  }

  /** Whether later decisions keep a pod with the node that was launched for it. */
  get keepsPlans(): boolean {
    return policyOf(this.#settings).remembersPods
  }

  /**
   * Whether the engine may look for a cheaper plan, and whether it can rely on nominations for it.
   * @param waiting number of pods in the decision. The scheduler processes all nominated pods of a node whenever it tries
   *   another pod on it: thousands of them cost more time than they save.
   */
  improvementFor(waiting: number): Pick<SchedulingPolicy, 'improvement'> {
    if (!this.keepsPlans) return {}
    return { improvement: this.isOn && waiting <= this.#settings.maxNominations ? 'planned' : 'free' }
  }

  /** Of the server's version; undefined while it is unknown. */
  get minor(): number | undefined {
    return this.#minor
  }

  /**
   * A nomination was forbidden. Permission may be granted later, and a server that has just started may not know the role
   * yet: nominations resume after a pause.
   */
  refuse(error: Error): void {
    if (this.#isRefused) return
    this.#refusedUntilMs = this.#clock.monotonic() + nominateAgainMs
    this.#logger.warn(
      'cannot nominate pods: missing permission to patch pods/status; the gate PlannedPlacement is off for a while',
      { error, retryInMinutes: nominateAgainMs / 60_000 },
    )
  }

  get #isRefused(): boolean {
    return this.#clock.monotonic() < this.#refusedUntilMs
  }

  async #ask(): Promise<void> {
    const { plannedPlacement } = this.#settings.featureGates
    const isWanted = this.keepsPlans
    if (isWanted && plannedPlacement !== 'auto') this.#isOpen = plannedPlacement
    const before = this.#server
    try {
      this.#server = await this.#client.serverVersion()
      if (this.#server === before) return
      this.#minor = minorOf(this.#server)
      if (!isWanted) return
      if (plannedPlacement === 'auto') this.#isOpen = honoursNominations(this.#minor)
      this.#logger.info('planned placement', { isOn: this.#isOpen, server: this.#server })
    } catch (error) {
      // What was known holds: the server is upgraded, or out of reach.
      if (isWanted && before === undefined && plannedPlacement === 'auto')
        this.#logger.warn(
          'the API server does not report its version; the gate PlannedPlacement is off until it does',
          { error },
        )
    } finally {
      this.#isSettled = true
      this.#askAgainAtMs = this.#clock.monotonic() + askAgainMs
    }
  }
}
