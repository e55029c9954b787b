/** By when a claim has to take its next step (lifecycle.md 3.5, reports.md 4). */
import { ConditionSet, type NodeClaim } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import { initializationTimeoutMs } from '../../state/nodes/state-node.ts'
import { nodeClaimConditions } from '../../state/conditions.ts'
import type { ClaimDraft } from './stage.ts'
import type { Settings } from '../../settings.ts'

type Timeouts = Pick<Settings, 'launchTimeoutMs' | 'registrationTimeoutMs' | 'initializationTimeoutMs'>

interface Dependencies {
  readonly clock: Pick<Clock, 'now'>
  readonly provider: Pick<CloudProvider, 'awayUntilMs'>
  readonly settings: Timeouts
}

/** A step that a claim has to take in time. */
export interface Step {
  readonly type: 'Launched' | 'Registered' | 'Initialized'
  /** Unix milliseconds. */
  readonly sinceMs: number
  readonly timeoutMs: number
  readonly reason: string
}

export class LifecycleDeadlines {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Whether the claim's next step should have been taken by now. */
  isOverdue(draft: ClaimDraft): boolean {
    const step = this.stepOf(draft)
    return step !== undefined && step.sinceMs + step.timeoutMs <= this.#deps.clock.now()
  }

  /** The next step; undefined once all are taken. */
  stepOf(draft: ClaimDraft): Step | undefined {
    const { provider, settings } = this.#deps
    const step = nextStep(draft, settings)
    if (step?.type !== 'Launched') return step
    // A cloud that does not answer has not failed to launch.
    return { ...step, sinceMs: Math.max(step.sinceMs, provider.awayUntilMs?.() ?? 0) }
  }
}

/** The next step of a claim, whatever its cloud says; undefined once all are taken. */
function nextStep(
  { conditions, claim }: Pick<ClaimDraft, 'claim' | 'conditions'>,
  settings: Timeouts,
): Step | undefined {
  const since = (type: string) =>
    Date.parse(conditions.get(type)?.lastTransitionTime ?? claim.metadata.creationTimestamp ?? '')
  const step = (type: Step['type'], timeoutMs: number, reason: string, sinceMs = since(type)): Step => ({
    type,
    sinceMs,
    timeoutMs,
    reason,
  })
  if (!conditions.isTrue('Launched')) return step('Launched', settings.launchTimeoutMs, 'launch_timeout')
  if (!conditions.isTrue('Registered'))
    return step('Registered', settings.registrationTimeoutMs, 'registration_timeout')
  if (conditions.isTrue('Initialized')) return undefined
  const timeoutMs = initializationTimeoutMs(claim, settings)
  return step('Initialized', timeoutMs, 'initialization_timeout', since('Registered'))
}

/** The next step of a claim as its object tells. */
export function stepOfClaim(claim: NodeClaim, settings: Timeouts): Step | undefined {
  return nextStep({ conditions: ConditionSet.of(claim, nodeClaimConditions), claim }, settings)
}
