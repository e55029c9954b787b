/** Whether the loop is alive (cluster-autoscaler.md 2.1). */
import { formatDuration } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { StatusOptions } from '../options/options.ts'

export type HealthLimits = Pick<StatusOptions, 'maxInactivityMs' | 'maxFailingTimeMs' | 'maxStartupTimeMs'>

/** The response to a probe. */
export interface HealthAnswer {
  readonly isHealthy: boolean
  readonly text: string
}

/** A process that is not the leader is healthy; the check begins with {@link start}. */
export class HealthCheck {
  readonly #limits: HealthLimits
  readonly #clock: Pick<Clock, 'monotonic'>
  #activityMs: number | undefined
  #successMs = 0
  #hasSucceeded = false

  constructor(limits: HealthLimits, clock: Pick<Clock, 'monotonic'>) {
    this.#limits = limits
    this.#clock = clock
  }

  /** This process has become leader. */
  start(): void {
    this.#activityMs = this.#clock.monotonic()
    this.#successMs = this.#activityMs
  }

  /** A loop begins. */
  noteActivity(): void {
    if (this.#activityMs !== undefined) this.#activityMs = this.#clock.monotonic()
  }

  /** A loop ended successfully, or with a transient error. */
  noteSuccess(): void {
    if (this.#activityMs === undefined) return
    this.#activityMs = this.#clock.monotonic()
    this.#successMs = this.#activityMs
    this.#hasSucceeded = true
  }

  answer(): HealthAnswer {
    if (this.#activityMs === undefined) return { isHealthy: true, text: 'OK' }
    const { maxInactivityMs, maxFailingTimeMs, maxStartupTimeMs } = this.#limits
    const now = this.#clock.monotonic()
    const inactiveMs = now - this.#activityMs
    const failingMs = now - this.#successMs
    const [mostInactiveMs, mostFailingMs] = this.#hasSucceeded
      ? [maxInactivityMs, maxFailingTimeMs]
      : [maxStartupTimeMs, maxStartupTimeMs]
    if (inactiveMs <= mostInactiveMs && failingMs <= mostFailingMs) return { isHealthy: true, text: 'OK' }
    const [activity, success] = [inactiveMs, failingMs].map((ms) => formatDuration(Math.round(ms)))
    return {
      isHealthy: false,
      text: `unhealthy: last activity ${activity} ago, last success ${success} ago`,
    }
  }
}
