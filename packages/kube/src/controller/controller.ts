import { AssertionError } from 'node:assert'
import {
  type Clock,
  inLogScope,
  type LogFields,
  type Logger,
  type Random,
  SeededRandom,
  uuid,
} from '@tenon/runtime'
import { backoffMs } from '../backoff.ts'
import type { Controller, ControllerOptions, ReconcileResult } from '../contract.ts'
import { isFenced } from '../lease/fence.ts'
import { TokenBucket } from '../token-bucket.ts'
import { TurnPace } from '../turn-pace.ts'
import { type Line, WorkQueue } from './work-queue.ts'

/** How a reconcile ended, as metrics name it; `bug` is an error that only wrong code throws. */
export type ReconcileOutcome = 'success' | 'requeue_after' | 'requeue' | 'error' | 'bug'

/** What a controller is doing at the moment it is asked. */
export interface ControllerActivity {
  /** The most keys it works on at the same time. */
  readonly concurrency: number
  /** Keys in line because something happened, and keys in line once more after a failure. */
  waiting(): Readonly<Record<Line, number>>
  /** When each reconcile in progress began, by the controller's monotonic clock. */
  runningSinceMs(): Iterable<number>
}

/** What a controller tells about itself. Implementations must not throw. */
export interface ControllerMetrics {
  /** There is such a controller now. */
  created?(controller: string, activity: ControllerActivity): void
  /** A key was put in line. */
  added?(controller: string): void
  /** A key comes back with back-off. */
  retried?(controller: string): void
  /** A reconcile begins, after its key has waited. */
  started?(controller: string, waitedMs: number): void
  finished?(controller: string, outcome: ReconcileOutcome, durationMs: number): void
}

export interface ControllerDependencies {
  readonly clock: Clock
  readonly logger: Logger
  readonly random?: Random
  readonly metrics?: ControllerMetrics
  /** Shared by controllers that run in one process; otherwise each has its own. */
  readonly pace?: TurnPace
  /** Whether an error is an outcome that has to be reckoned with; it is logged as a warning then. */
  readonly isExpected?: (error: unknown) => boolean
  /** Told of every error of a reconcile, after it was logged. */
  readonly onError?: (controller: string, key: string, error: unknown) => void
}

const defaultBackoff = { baseMs: 5, capMs: 1_000_000 }

/**
 * A controller: a queue of keys and workers that reconcile them. The rate of
 * {@link ControllerOptions} spaces out what comes back with back-off over all keys; what is
 * enqueued again is not held back by it, and goes before what comes back while both wait.
 */
export function createController(options: ControllerOptions, deps: ControllerDependencies): Controller {
  return new QueueController(options, deps)
}

class QueueController implements Controller {
  readonly name: string
  readonly #options: ControllerOptions
  readonly #deps: ControllerDependencies
  readonly #ids: Random
  readonly #pace: TurnPace
  readonly #queue: WorkQueue
  readonly #bucket: TokenBucket | undefined
  readonly #failures = new Map<string, number>()
  readonly #stopping = new AbortController()
  readonly #runs = new Set<Promise<void>>()
  #isStarted = false
  #isPumpPlanned = false

  constructor(options: ControllerOptions, deps: ControllerDependencies) {
    this.name = options.name
    this.#options = options
    this.#deps = deps
    this.#ids = deps.random?.fork(`reconciles of ${options.name}`) ?? new SeededRandom(options.name)
    this.#pace = deps.pace ?? new TurnPace(deps.clock)
    this.#bucket = options.rate === undefined ? undefined : new TokenBucket(options.rate, deps.clock)
    this.#queue = new WorkQueue(deps.clock, () => {
      deps.metrics?.added?.(this.name)
      this.#planPump()
    })
    const queue = this.#queue
    deps.metrics?.created?.(this.name, {
      concurrency: options.concurrency,
      waiting: () => queue.waitingByLine,
      runningSinceMs: () => queue.runningSinceMs,
    })
  }

  get depth(): number {
    return this.#queue.waiting + this.#queue.running
  }

  enqueue(key: string, delayMs = 0): void {
    if (delayMs > 0) this.#queue.addAfter(key, delayMs)
    else this.#queue.add(key)
  }

  start(): void {
    this.#isStarted = true
    this.#planPump()
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error(`the controller ${this.name} is stopping`))
    this.#queue.close()
    await Promise.all(this.#runs)
  }

  /** Starting in a microtask keeps reconciles out of the stack of whoever enqueues. */
  #planPump(later: (pump: () => void) => void = queueMicrotask): void {
    if (!this.#isStarted || this.#isPumpPlanned) return
    this.#isPumpPlanned = true
    later(() => {
      this.#isPumpPlanned = false
      this.#pump()
    })
  }

  #pump(): void {
    const { clock, metrics } = this.#deps
    while (this.#queue.running < this.#options.concurrency && !this.#stopping.signal.aborted) {
      if (this.#pace.isOver && this.#queue.waiting > 0) {
        this.#planPump((pump) => {
          this.#pace.wait(pump)
        })
        return
      }
      const startedAt = clock.monotonic()
      const next = this.#queue.take()
      if (next === undefined) break
      metrics?.started?.(this.name, next.waitedMs)
      const run = this.#run(next.key).finally(() => {
        this.#runs.delete(run)
      })
      this.#runs.add(run)
      this.#pace.spend(clock.monotonic() - startedAt)
    }
  }

  /** What every line says that a reconcile of the key writes (operations.md 8). */
  #scopeOf(key: string): () => LogFields {
    const { describe } = this.#options
    let reconcileID: string | undefined
    return () => {
      reconcileID ??= uuid(this.#ids)
      return { controller: this.name, ...(describe === undefined ? { key } : describe(key)), reconcileID }
    }
  }

  /** Never rejects. */
  #run(key: string): Promise<void> {
    return inLogScope(this.#scopeOf(key), () => this.#reconcile(key))
  }

  async #reconcile(key: string): Promise<void> {
    const startedAt = this.#deps.clock.monotonic()
    let outcome: ReconcileOutcome
    try {
      outcome = this.#settle(key, await this.#options.reconcile(key, this.#stopping.signal))
    } catch (error) {
      outcome = this.#fail(key, error)
    }
    this.#deps.metrics?.finished?.(this.name, outcome, this.#deps.clock.monotonic() - startedAt)
    this.#queue.finish(key)
    this.#planPump()
  }

  #settle(key: string, result: ReconcileResult): ReconcileOutcome {
    switch (result.kind) {
      case 'done':
        this.#failures.delete(key)
        return 'success'
      case 'after':
        this.#failures.delete(key)
        // Through the timer even for 0, so that a key that always wants to run cannot spin.
        this.#queue.addAfter(key, Math.max(0, result.delayMs))
        return 'requeue_after'
      case 'backoff':
        this.#retry(key)
        return 'requeue'
    }
  }

  #fail(key: string, error: unknown): ReconcileOutcome {
    const isBug = isProgrammingError(error)
    if (this.#stopping.signal.aborted && !isBug) return 'error'
    // Who has lost the lease says so once.
    if (isFenced(error)) {
      this.#retry(key)
      return 'error'
    }
    const { logger, onError, isExpected } = this.#deps
    const fields = { controller: this.name, key, error }
    if (!isBug && isExpected?.(error) === true) logger.warn('Reconciler error', fields)
    else logger.error('Reconciler error', fields)
    if (isBug) logger.debug('stack trace of the bug', { controller: this.name, stack: error.stack })
    onError?.(this.name, key, error)
    this.#retry(key)
    return isBug ? 'bug' : 'error'
  }

  #retry(key: string): void {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    const pauseMs = backoffMs(this.#options.backoff ?? defaultBackoff, failures)
    this.#deps.metrics?.retried?.(this.name)
    this.#queue.addAfter(key, Math.max(pauseMs, this.#bucket?.reserve() ?? 0), 'retry')
  }
}

function isProgrammingError(error: unknown): error is Error {
  return (
    error instanceof TypeError ||
    error instanceof ReferenceError ||
    error instanceof RangeError ||
    error instanceof AssertionError
  )
}
