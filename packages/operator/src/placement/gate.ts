/** Whether pods are steered to the nodes they are planned for (planned-placement.md). */
import type { SchedulingPolicy } from '@tenon/engine'
import type { KubeClient } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import { policyOf, type Settings } from '../settings.ts'

/** First minor version of Kubernetes 1 whose scheduler honours nominations by others as it is. */
const firstMinor = 35
/** Pauses before a server that did not tell its version, or refused a nomination, is asked again. */
const askAgainMs = 60_000
const nominateAgainMs = 10 * 60_000

export interface PlacementGateOptions {
  readonly client: Pick<KubeClient, 'serverVersion'>
  readonly settings: Pick<Settings, 'featureGates' | 'compatibility' | 'maxNominations'>
  readonly clock: Pick<Clock, 'monotonic'>
  readonly logger: Logger
}

/** Closed until {@link settled}, and for ten minutes each time the API server refuses a nomination. */
export class PlacementGate {
  readonly #options: PlacementGateOptions
  #isOpen = false
  #refusedUntilMs = Number.NEGATIVE_INFINITY
  #isSettled = false
  /** When the server is asked again; undefined while that is not needed. */
  #askAgainAtMs: number | undefined
  #settling: Promise<void> | undefined

  constructor(options: PlacementGateOptions) {
    this.#options = options
  }

  /**
   * Resolves when it is known whether the gate is on. A server that did not tell its version is asked again later,
   * which nobody waits for. Never rejects.
   */
  settled(): Promise<void> {
    this.#settling ??= this.#settle()
    if (this.#askAgainAtMs !== undefined && this.#options.clock.monotonic() >= this.#askAgainAtMs) {
      this.#askAgainAtMs = undefined
      void this.#ask()
    }
    return this.#settling
  }

  get isOn(): boolean {
    return this.#isOpen && !this.#isRefused
  }

  /** Whether it is known to be off; neither this nor {@link isOn} before {@link settled}. */
  get isOff(): boolean {
    return this.#isSettled && !this.isOn
  }

  /** Whether plans are held on to: a pod stays with the node that was launched for it. */
  get keepsPlans(): boolean {
    return policyOf(this.#options.settings).remembersPods
  }

  /**
   * What a cheaper plan has to hold for; absent when there is to be none.
   * @param waiting number of pods that are decided about. The scheduler looks at all nominated pods of a node
   *   whenever it tries another pod on it: thousands of them would hold it up longer than they save.
   */
  improvementFor(waiting: number): Pick<SchedulingPolicy, 'improvement'> {
    if (!this.keepsPlans) return {}
    return { improvement: this.isOn && waiting <= this.#options.settings.maxNominations ? 'planned' : 'free' }
  }

  /**
   * The API server does not let this process nominate pods. Rights may be granted later, and a server that has just
   * started refuses what it does not know yet: another nomination is tried after a pause.
   */
  refuse(error: Error): void {
    if (this.#isRefused) return
    this.#refusedUntilMs = this.#options.clock.monotonic() + nominateAgainMs
    this.#options.logger.warn(
      'cannot nominate pods: missing permission to patch pods/status; the gate PlannedPlacement is off for a while',
      { error, retryInMinutes: nominateAgainMs / 60_000 },
    )
  }

  get #isRefused(): boolean {
    return this.#options.clock.monotonic() < this.#refusedUntilMs
  }

  async #settle(): Promise<void> {
    await this.#ask()
    this.#isSettled = true
  }

  async #ask(): Promise<void> {
    const { client, settings, clock, logger } = this.#options
    const { plannedPlacement } = settings.featureGates
    if (!this.keepsPlans) return
    if (plannedPlacement !== 'auto') {
      this.#isOpen = plannedPlacement
      return
    }
    try {
      const version = await client.serverVersion()
      this.#isOpen = honoursNominations(version)
      logger.info('planned placement', { isOn: this.#isOpen, server: version })
    } catch (error) {
      this.#askAgainAtMs = clock.monotonic() + askAgainMs
      logger.warn(
        'the API server does not report its version; the gate PlannedPlacement is off until it does',
        {
          error,
        },
      )
    }
  }
}

/** @param gitVersion such as `v1.36.3` or `v1.35.1-eks-1a2b3c`. */
export function honoursNominations(gitVersion: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(gitVersion) ?? []
  if (major === undefined || minor === undefined) return false
  return Number(major) > 1 || Number(minor) >= firstMinor
}
