/** Tells how scheduling passes end: metrics and the log. */
import type { Clock, Logger } from '@tenon/runtime'
import { isExpectedFailure } from '../cloud/expected-failures.ts'
import type { FrameworkMetrics } from '../metrics/framework/framework.ts'
import type { PassAges } from '../metrics/pass-ages.ts'

/** What this file works with. */
interface Dependencies {
  readonly framework: FrameworkMetrics
  readonly passAges: PassAges
  readonly clock: Pick<Clock, 'monotonic'>
  readonly logger: Logger
}

const controller = 'provisioner'

export class PassAccount {
  readonly #deps: Dependencies
  #startedMs: number

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#startedMs = deps.clock.monotonic()
  }

  /** The loop begins. */
  open(): void {
    const { clock, framework, passAges } = this.#deps
    passAges.complete(controller)
    framework.known(controller)
    this.#startedMs = clock.monotonic()
  }

  /** A pass begins. */
  begin(): void {
    const { clock, passAges } = this.#deps
    this.#startedMs = clock.monotonic()
    passAges.waiting(controller)
  }

  succeeded(): void {
    const { clock, framework, passAges } = this.#deps
    passAges.complete(controller)
    framework.passed(controller, 'success', clock.monotonic() - this.#startedMs)
  }

  /** What was decided could not be carried out any more; the next pass decides anew. */
  overtaken(): void {
    const { clock, framework } = this.#deps
    framework.passed(controller, 'requeue', clock.monotonic() - this.#startedMs)
  }

  failed(error: unknown): void {
    const { clock, framework, logger } = this.#deps
    if (isExpectedFailure(error)) logger.warn('Reconciler error', { controller, error })
    else logger.error('Reconciler error', { controller, error })
    framework.passed(controller, 'error', clock.monotonic() - this.#startedMs)
  }
}
