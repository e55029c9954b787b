/** Gives up on claims that do not become nodes in time (lifecycle.md 3.5). */
import type { ConditionSet } from '@tenon/api'
import type { OperatorContext } from '../../context.ts'
import type { RegistrationFailure } from '../../state/registration-health.ts'
import { deleteClaim } from './delete-claim.ts'
import type { ClaimDraft, StageResult } from './launch.ts'

/** Deletes the claim once its launch or its registration is overdue. */
export async function checkLiveness(context: OperatorContext, draft: ClaimDraft): Promise<StageResult> {
  const { conditions, claim } = draft
  if (conditions.isTrue('Registered')) return { kind: 'continue', draft }
  const stages = conditions.isTrue('Launched')
    ? [
        {
          type: 'Registered',
          timeoutMs: context.settings.registrationTimeoutMs,
          reason: 'registration_timeout',
        },
      ]
    : [{ type: 'Launched', timeoutMs: context.settings.launchTimeoutMs, reason: 'launch_timeout' }]
  for (const { type, timeoutMs, reason } of stages) {
    const since = Date.parse(
      conditions.get(type)?.lastTransitionTime ?? claim.metadata.creationTimestamp ?? '',
    )
    const leftMs = since + timeoutMs - context.clock.now()
    if (leftMs > 0) return { kind: 'continue', draft, requeueMs: leftMs }
    context.logger.info('deleting nodeclaim that did not become a node in time', {
      NodeClaim: { name: claim.metadata.name },
      reason,
      waitedFor: conditions.get(type)?.message ?? '',
    })
    if (await deleteClaim(context, claim, reason))
      context.state.registrationHealth.record(claim, failureOf(conditions))
  }
  return { kind: 'deleted' }
}

/** What the NodePool is told: a launch that failed says more than a node that did not come. */
function failureOf(conditions: ConditionSet): RegistrationFailure {
  const launched = conditions.get('Launched')
  return launched === undefined || launched.status === 'True'
    ? { reason: 'RegistrationFailed', message: 'Failed to register node' }
    : { reason: launched.reason, message: launched.message }
}
