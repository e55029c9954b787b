/** From input to result: what one scheduling pass decides. */
import type { SchedulingResult } from '@tenon/engine'
import { inSlices, type Slicing } from '@tenon/runtime'
import type { OnTrial } from '../node/evidence/judge.ts'
import type { PreferenceWarnings } from './reports/preference-warnings.ts'
import type { RefusedClaims } from './claims/refused-claims.ts'
import type { GatheredInput, SchedulingInputs } from './input/scheduling-input.ts'
import type { SchedulingReport } from './reports/scheduling-report.ts'
import type { TimedDecider } from './timed-decider.ts'

/** What this file works with. */
interface Dependencies {
  readonly inputs: SchedulingInputs
  readonly refused: RefusedClaims
  readonly preferences: PreferenceWarnings
  readonly decider: TimedDecider
  readonly report: SchedulingReport
  readonly slicing: Slicing
}

/** A decision, and what it is about. */
export interface Decided {
  readonly input: GatheredInput
  readonly result: SchedulingResult
}

export class PassDecision {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @returns undefined when there is nothing to decide, or no pool that could launch anything. */
  async make(onTrial: OnTrial, signal: AbortSignal): Promise<Decided | undefined> {
    const { decider, inputs, preferences, refused, report, slicing } = this.#deps
    const { clock } = slicing
    const start = clock.monotonic()
    const input = refused.inTurn(await inputs.forPending(onTrial, signal))
    report.ignored(input.ignored)
    if (input.pods.length + input.refused.length === 0) {
      report.nothingToDo()
      return undefined
    }
    if (!input.hasEligiblePool) {
      const pods = [...input.pods, ...input.refused.map(({ pod }) => pod)]
      await inSlices(report.withoutPools(pods), slicing)
      const waiting = inputs.unreadyPools().map(({ nodePool, because }) => `${nodePool}: ${because}`)
      report.noPools(waiting.toSorted())
      return undefined
    }
    preferences.warn(input.pods)
    const result = await decider.decide(input, signal)
    signal.throwIfAborted()
    await inSlices(report.pendingZones(input, result), slicing)
    report.decided(input.pods, clock.monotonic() - start)
    return { input, result }
  }
}
