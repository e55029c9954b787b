/** Reports sweeps that are held back. */
import type { Cache, EventRecorder } from '@tenon/kube'
import { heldMessage, type SweepRound } from '@tenon/provider'
import type { Logger } from '@tenon/runtime'
import { instanceLabels } from './identifiers.ts'
import type { ExoscaleNodeClass } from './nodeclass/types.ts'

export interface SweepReportDependencies {
  readonly nodeClasses: Pick<Cache<ExoscaleNodeClass>, 'list'>
  readonly events: EventRecorder
  readonly logger: Logger
}

/** How many instances an event names. */
const namedInstances = 5

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
    this.#report(reason, heldMessage(what, round, present), round)
  }

  /** Names instances, so that people find them before they are deleted. */
  instancesHeld(round: SweepRound, present: number): void {
    const { held } = round
    const named = held.slice(0, namedInstances).join(', ') + (held.length > namedInstances ? ', …' : '')
    const message = `${heldMessage('instances have no NodeClaim', round, present)}: ${named}. To keep one, take the label ${instanceLabels.managedBy} away from it`
    this.#report('InstanceSweepHeld', message, round)
  }

  #report(reason: string, message: string, round: SweepRound): void {
    if (round.held.length === 0) return
    const { nodeClasses, events, logger } = this.#deps
    logger.warn(message, { held: round.held.slice(0, 20) })
    for (const object of nodeClasses.list())
      events.record({ object, type: 'Warning', reason, message, dedupe: [reason] })
  }
}
