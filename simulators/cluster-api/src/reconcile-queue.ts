import { ApiError } from '@tenon/devcluster'
import type { Clock, Logger } from '@tenon/runtime'

/** Wait after a write that the API server refused. */
const retryMs = 1_000
/** Wait for the manager of a controller while it is away. */
export const awayMs = 1_000

export interface ReconcileOptions {
  /** What is reconciled, for the log. */
  readonly kind: string
  readonly clock: Clock
  readonly logger: Logger
  /** Milliseconds from an event to the pass over its object. */
  readonly delayMs: () => number
  /**
   * Looks at one object once. Answers in how many milliseconds it has to be looked at again, if no event comes
   * before.
   */
  readonly pass: (namespace: string, name: string) => number | undefined
}

interface WakeUp {
  readonly atMs: number
  readonly cancel: () => void
}

/** Lets one controller look at objects some time after their events, and when something is due. */
export class ReconcileQueue {
  readonly #options: ReconcileOptions
  readonly #wakeUps = new Map<string, WakeUp>()

  constructor(options: ReconcileOptions) {
    this.#options = options
  }

  /** An event of the object. */
  hear(namespace: string | undefined, name: string): void {
    this.#wake(namespace ?? '', name, this.#options.delayMs())
  }

  stop(): void {
    for (const { cancel } of this.#wakeUps.values()) cancel()
    this.#wakeUps.clear()
  }

  #wake(namespace: string, name: string, afterMs: number): void {
    const { clock } = this.#options
    const key = `${namespace}/${name}`
    const atMs = clock.monotonic() + Math.max(0, afterMs)
    const planned = this.#wakeUps.get(key)
    if (planned !== undefined && planned.atMs <= atMs) return
    planned?.cancel()
    const cancel = clock.after(Math.max(0, afterMs), () => {
      this.#wakeUps.delete(key)
      const againMs = this.#pass(namespace, name)
      if (againMs !== undefined) this.#wake(namespace, name, againMs)
    })
    this.#wakeUps.set(key, { atMs, cancel })
  }

  #pass(namespace: string, name: string): number | undefined {
    const { kind, logger, pass } = this.#options
    try {
      return pass(namespace, name)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      logger.debug('the simulated Cluster API could not reconcile an object', {
        kind,
        namespace,
        name,
        error,
      })
      return retryMs
    }
  }
}
