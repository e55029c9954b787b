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

/** The result of a reconcile in metrics; `bug` is an error that only wrong code throws. */
export type ReconcileOutcome = 'success' | 'requeue_after' | 'requeue' | 'error' | 'bug'

/** Figures of a controller, read on demand. */
export interface ControllerActivity {
  /** The maximum number of keys reconciled at the same time. */
  readonly concurrency: number
  /** Waiting keys: fresh ones, and retries after a failure. */
  waiting(): Readonly<Record<Line, number>>
  /** Start of each running reconcile, by the controller's monotonic clock. */
  runningSinceMs(): Iterable<number>
}

/** Callbacks for metrics. They must not throw. */
export interface ControllerMetrics {
  /** A controller was created. */
  created?(controller: string, activity: ControllerActivity): void
  /** A key was enqueued. */
  added?(controller: string): void
  /** A key will be retried with back-off. */
  retried?(controller: string): void
  /** A reconcile begins; `waitedMs` is how long its key waited. */
  started?(controller: string, waitedMs: number): void
  finished?(controller: string, outcome: ReconcileOutcome, durationMs: number): void
}

/** Whether keys are taken from queues now; while it is closed they wait. */
export interface WorkGate {
  readonly isOpen: boolean
  /** Calls `listener` each time it opens. */
  onOpen(listener: () => void): void
}

export interface ControllerDependencies {
  readonly clock: Clock
  readonly logger: Logger
  readonly random?: Random
  readonly metrics?: ControllerMetrics
  /** Shared by the controllers of a process. Default: its own. */
  readonly pace?: TurnPace
  /** Whether an error is an expected outcome, which is logged as a warning. */
  readonly isExpected?: (error: unknown) => boolean
  /** Default: always open. */
  readonly gate?: WorkGate
  /** Called for every error of a reconcile, after it was logged. */
  readonly onError?: (controller: string, key: string, error: unknown) => void
}

const defaultBackoff = { baseMs: 5, capMs: 1_000_000 }

/**
 * A controller: a queue of keys, and workers that reconcile them. The rate in {@link ControllerOptions} limits retries
 * over all keys. Keys that are enqueued again are not limited, and go before retries.
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
    deps.gate?.onOpen(() => {
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

  /** Reconciles start in a microtask, not in the call stack of `enqueue`. */
  #planPump(later: (pump: () => void) => void = queueMicrotask): void {
    if (!this.#isStarted || this.#isPumpPlanned) return
    this.#isPumpPlanned = true
    later(() => {
      this.#isPumpPlanned = false
      this.#pump()
    })
  }

  #pump(): void {
    const { clock, gate, metrics } = this.#deps
    if (gate?.isOpen === false) return
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

  /** Log fields of every line that a reconcile of the key writes (operations.md 8). */
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
        // Through the timer even for 0, so that a key that always requeues cannot block the event loop.
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
    // The loss of the lease is logged elsewhere.
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
