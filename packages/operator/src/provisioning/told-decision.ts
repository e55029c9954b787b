/** Decisions of which those are told that keep room. */
import type { Decided, PassDecision } from './pass-decision.ts'
import type { RoomReport } from './room-outcome.ts'

/** What this file works with. */
interface Dependencies {
  readonly decision: PassDecision
  readonly reports: readonly RoomReport[]
}

export class ToldDecision {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @returns undefined when there is nothing to decide about pods, or no pool that could launch anything. */
  async make(signal: AbortSignal): Promise<Decided | undefined> {
    const { decision, reports } = this.#deps
    const { room, decided } = await decision.make(signal)
    for (const report of reports) await report.tell(room, signal)
    return decided
  }
}
