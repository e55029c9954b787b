/** Watches how long a decision spends on one pod. */
import type { SchedulingControl } from '@tenon/engine'
import type { Clock } from '@tenon/runtime'

/** One pod may take this part of a decision's time, and so long where the CPU is short: a thousand plain ones take less. */
const podShare = 0.1
const leastPodMs = 2000

/** A decision that failed, or was given up, while it was deciding about a pod. */
export class PodError extends Error {
  /** Index of the pod in the input. */
  readonly pod: number

  constructor(message: string, pod: number, options?: ErrorOptions) {
    super(message, options)
    this.pod = pod
  }
}

export interface WatchOptions {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly deadlineMs: number
  readonly isAborted: () => boolean
  /** Called with the index of each pod; -1 while the decision is about none. */
  readonly onPod?: (pod: number) => void
}

/**
 * Stops a decision at its deadline, and fails it if one pod takes too much of its time: otherwise all other pods would
 * wait for it in every decision.
 */
export class PodWatch implements Pick<SchedulingControl, 'shouldStop' | 'onPod'> {
  readonly #options: WatchOptions
  readonly #startMs: number
  readonly #podMs: number
  #pod = -1
  #sinceMs = 0

  constructor(options: WatchOptions) {
    this.#options = options
    this.#startMs = options.clock.monotonic()
    this.#podMs = Math.max(leastPodMs, options.deadlineMs * podShare)
  }

  readonly onPod = (pod: number): void => {
    this.#pod = pod
    this.#sinceMs = this.#options.clock.monotonic()
    this.#options.onPod?.(pod)
  }

  readonly shouldStop = (): boolean => {
    const { clock, deadlineMs, isAborted } = this.#options
    if (isAborted()) return true
    const now = clock.monotonic()
    if (this.#pod >= 0 && now - this.#sinceMs > this.#podMs)
      throw new PodError(`deciding about the pod alone takes more than ${this.#podMs / 1000} s`, this.#pod)
    return now - this.#startMs >= deadlineMs
  }

  /** The error, and the pod at which it happened. */
  asPodError(error: unknown): unknown {
    if (this.#pod < 0 || error instanceof PodError) return error
    return new PodError(error instanceof Error ? error.message : String(error), this.#pod, { cause: error })
  }
}
