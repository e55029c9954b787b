/** One scheduling pass: decide, plan, tell, launch. */
import type { NodeEvidenceJudge } from '../node/evidence/judge.ts'
import type { Planner } from '../placement/planner.ts'
import type { ClaimLaunches, LaunchOutcome } from './claims/claim-launches.ts'
import type { OutcomeReport } from './reports/outcome-report.ts'
import type { Decided } from './pass-decision.ts'
import type { PassMeasure } from './pass-measure.ts'
import type { ToldDecision } from './told-decision.ts'

/** What this file works with. */
interface Dependencies {
  /** Absent where it is not looked at what becomes of nodes. */
  readonly judge: Pick<NodeEvidenceJudge, 'decided' | 'run'> | undefined
  readonly decision: Pick<ToldDecision, 'make'>
  readonly planner: Planner
  readonly outcome: OutcomeReport
  readonly launches: ClaimLaunches
  readonly measure: PassMeasure
}

export class SchedulingPass {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(signal: AbortSignal): Promise<LaunchOutcome> {
    const { decision, judge, launches, measure, outcome, planner } = this.#deps
    await planner.settled()
    const observe = measure.begin()
    await judge?.run(signal)
    let decided: Decided | undefined
    try {
      decided = await decision.make(signal)
    } finally {
      // Beside the decision itself, and where there is nothing to decide (operations.md 9.1).
      observe()
    }
    if (decided === undefined) return 'done'
    const { input, result } = decided
    judge?.decided(result)
    const placement = input.policy.improvement === 'planned' ? 'planned' : 'free'
    planner.keepNodes(input, result)
    const plan = await planner.plan(input, result)
    await outcome.tell(input, result)
    return await launches.create(result, { plan, placement }, signal)
  }
}
