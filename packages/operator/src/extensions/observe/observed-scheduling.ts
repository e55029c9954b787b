/** Decides which nodes of observed NodePools would be launched, and launches none. */
import type { NewClaim } from '@tenon/engine'
import type { LaunchOutcome } from '../../provisioning/launcher.ts'
import type { SchedulingInputs } from '../../provisioning/input/scheduling-input.ts'
import type { DecisionMemory } from '../../provisioning/decision-memory.ts'
import { shortened } from '../../text.ts'
import type { PassDecider } from '../../decide/decider.ts'
import type { ObservedLaunches } from './observed-launches.ts'
import type { ObservedPools } from '../../state/nodepools/observed-pools.ts'

interface Dependencies {
  readonly observed: Pick<ObservedPools, 'isAny'>
  /** Of the observed NodePools. */
  readonly inputs: SchedulingInputs
  readonly decider: Pick<PassDecider, 'decide'>
  readonly launches: ObservedLaunches
  readonly memory: Pick<DecisionMemory, 'failed'>
}

export class ObservedScheduling {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(signal: AbortSignal): Promise<LaunchOutcome> {
    const { decider, inputs, launches, memory, observed } = this.#deps
    if (!observed.isAny) return 'done'
    const input = await inputs.forPending(signal)
    if (input.pods.length === 0 || !input.hasEligiblePool) {
      launches.note([], input.pods)
      return 'done'
    }
    const { claims } = await decider.decide(input, signal)
    signal.throwIfAborted()
    launches.note(claims, input.pods)
    for (const claim of claims) for (const pod of claim.pods) memory.failed(pod, textOf(claim))
    return 'done'
  }
}

function textOf({ nodePool, instanceTypes }: NewClaim): string {
  return `NodePool ${nodePool} would launch a node for it (${shortened(instanceTypes)}), but is only observed`
}
