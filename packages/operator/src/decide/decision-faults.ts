/** Bugs found by decisions: each is counted, and logged once with its stack. */
import type { Fault } from '@tenon/engine'
import type { Logger } from '@tenon/runtime'
import type { Metrics } from '../metrics/metrics.ts'

/** What failed: a whole decision about pods or about removing nodes, or a part of one. */
export type FaultyPart = Fault['part'] | 'decision' | 'disruption'

/** Most remembered stacks, so that a bug with ever new stacks does not fill the memory. */
const mostStacks = 200
/** Frames of a stack that identify a bug; further down are only callers. */
const distinctFrames = 3

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
    const place = stack.split('\n').slice(0, distinctFrames).join('\n')
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
