/** Bugs that decisions came across: counted, and logged with their stack once each. */
import type { Fault } from '@tenon/engine'
import type { Logger } from '@tenon/runtime'
import type { Metrics } from '../metrics/metrics.ts'

/** What failed: a whole decision about pods or about removing nodes, or a part of one. */
export type FaultyPart = Fault['part'] | 'decision' | 'disruption'

/** Stacks that are remembered, so that a bug which shows itself in ever new ways does not fill the memory. */
const mostStacks = 200
/** Lines of a stack that tell a bug from others; further down it says only who asked. */
const framesTold = 3

export class DecisionFaults {
  readonly #logger: Logger
  readonly #metrics: Pick<Metrics, 'decisionFaults'>
  readonly #logged = new Set<string>()

  constructor(deps: { readonly logger: Logger; readonly metrics: Pick<Metrics, 'decisionFaults'> }) {
    this.#logger = deps.logger
    this.#metrics = deps.metrics
  }

  note(part: FaultyPart, error: unknown): void {
    this.#metrics.decisionFaults.inc({ part })
    const { message, stack = message } = stackOf(error)
    const place = stack.split('\n').slice(0, framesTold).join('\n')
    if (this.#logged.has(place)) return
    if (this.#logged.size >= mostStacks) this.#logged.clear()
    this.#logged.add(place)
    this.#logger.error('a decision failed in part, which is a bug; please report it', {
      part,
      error: message,
      stack,
    })
  }
}

/** The innermost cause says where it happened. */
function stackOf(error: unknown): { readonly message: string; readonly stack?: string } {
  if (error instanceof Error && error.cause instanceof Error) return stackOf(error.cause)
  if (typeof error === 'object' && error !== null && 'message' in error && 'stack' in error)
    return { message: String(error.message), stack: String(error.stack) }
  return { message: String(error) }
}
