/** Reports sweeps that are held back. */
import type { Cache, EventRecorder } from '@tenon/kube'
import { heldMessage, type SweepRound } from '@tenon/provider'
import type { Logger } from '@tenon/runtime'
import type { ExoscaleNodeClass } from './nodeclass/types.ts'

export interface SweepReportDependencies {
  readonly nodeClasses: Pick<Cache<ExoscaleNodeClass>, 'list'>
  readonly events: EventRecorder
  readonly logger: Logger
}

/** Events are recorded on node classes, where administrators of this provider look. */
export class SweepReport {
  readonly #deps: SweepReportDependencies

  constructor(deps: SweepReportDependencies) {
    this.#deps = deps
  }

  /**
   * Reports a pass that holds objects back; otherwise does nothing. `present` is the number of all objects.
   */
  held(what: string, reason: string, round: SweepRound, present: number): void {
    if (round.held.length === 0) return
    const { nodeClasses, events, logger } = this.#deps
    const message = heldMessage(what, round, present)
    logger.warn(message, { held: round.held.slice(0, 20) })
    for (const object of nodeClasses.list())
      events.record({ object, type: 'Warning', reason, message, dedupe: [reason] })
  }
}
