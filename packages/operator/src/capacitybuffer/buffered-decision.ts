/** Decisions of which CapacityBuffers are told. */
import type { OnTrial } from '../node/evidence/judge.ts'
import type { Decided, PassDecision } from '../provisioning/pass-decision.ts'
import type { BufferReport } from './report.ts'

/** What this file works with. */
interface Dependencies {
  readonly decision: PassDecision
  /** Absent without the feature gate. */
  readonly report: BufferReport | undefined
}

export class BufferedDecision {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @returns undefined when there is nothing to decide about pods, or no pool that could launch anything. */
  async make(onTrial: OnTrial, signal: AbortSignal): Promise<Decided | undefined> {
    const { decision, report } = this.#deps
    const { buffers, decided } = await decision.make(onTrial, signal)
    await report?.tell(buffers, signal)
    return decided
  }
}
