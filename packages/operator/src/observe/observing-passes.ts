/** Scheduling passes beside which, or in place of which, observed NodePools are decided about. */
import type { LaunchOutcome } from '../provisioning/claims/claim-launches.ts'
import type { SchedulingPass } from '../provisioning/scheduling-pass.ts'
import type { ObservedScheduling } from './observed-scheduling.ts'

/** What this file works with. */
interface Dependencies {
  /** Absent where nothing is carried out. */
  readonly acting?: Pick<SchedulingPass, 'run'>
  readonly observed: ObservedScheduling
}

export class ObservingPasses {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(signal: AbortSignal): Promise<LaunchOutcome> {
    const { acting, observed } = this.#deps
    const outcome = (await acting?.run(signal)) ?? 'done'
    if (outcome === 'done') await observed.run(signal)
    return outcome
  }
}
