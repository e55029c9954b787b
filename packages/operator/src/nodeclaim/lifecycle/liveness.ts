/** Gives up on claims that do not become nodes that take pods in time (lifecycle.md 3.5, reports.md 4). */
import type { Clock, Logger } from '@tenon/runtime'
import { type ConditionSet, kinds, labels, type NodeClaim } from '@tenon/api'
import type { RegistrationFailure } from '../../state/nodepools/registration-health.ts'
import type { LifecycleDeadlines } from './deadlines.ts'
import type { ClaimDeleter } from './delete-claim.ts'
import type { ClaimDraft, LifecycleStage, StageResult } from './stage.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Kubernetes } from '../../kubernetes.ts'

interface LivenessParts {
  readonly kubernetes: Kubernetes<'nodePools'>
  readonly state: Pick<ClusterState, 'readinessPauses' | 'registrationHealth'>
  readonly deleter: ClaimDeleter
  readonly deadlines: LifecycleDeadlines
  readonly clock: Clock
  readonly logger: Logger
}

const unseenPollMs = 60_000

/** Deletes the claim once its launch, its registration or its initialization is overdue. */
export function liveness(parts: LivenessParts): LifecycleStage {
  return { run: (draft) => checkLiveness(parts, draft) }
}

async function checkLiveness(deps: LivenessParts, draft: ClaimDraft): Promise<StageResult> {
  const { conditions, claim } = draft
  const step = deps.deadlines.stepOf(draft)
  if (step === undefined || step.timeoutMs === Number.POSITIVE_INFINITY) return { kind: 'continue', draft }
  const { type, sinceMs, timeoutMs, reason } = step
  const leftMs = sinceMs + timeoutMs - deps.clock.now()
  if (leftMs > 0) return { kind: 'continue', draft, requeueMs: leftMs }
  if (type === 'Registered' && (await isUnseen(deps, claim)))
    return { kind: 'continue', draft, requeueMs: unseenPollMs }
  const waitedFor = conditions.get(type)?.message ?? ''
  if (!(await deps.deleter.delete(claim, reason))) return { kind: 'deleted' }
  deps.logger.info('deleting nodeclaim that did not become a node in time', {
    NodeClaim: { name: claim.metadata.name },
    reason,
    waitedFor,
  })
  if (type === 'Initialized') noteOverdue(deps, claim, timeoutMs, waitedFor)
  else deps.state.registrationHealth.record(claim, failureOf(conditions))
  return { kind: 'deleted' }
}

/** Whether the Node of a claim that had one is there, although the cache does not show it. */
async function isUnseen({ kubernetes: { client } }: LivenessParts, claim: NodeClaim): Promise<boolean> {
  const { nodeName: name = '', providerID } = claim.status ?? {}
  if (name === '') return false
  const node = await client.get(kinds.node, { name })
  return node?.spec?.providerID === providerID
}

function noteOverdue(
  { kubernetes, state }: LivenessParts,
  claim: NodeClaim,
  timeoutMs: number,
  why: string,
): void {
  kubernetes.events.record({
    object: claim,
    type: 'Warning',
    reason: 'InitializationTimeout',
    message: `Node ${claim.status?.nodeName ?? ''} was not initialized within ${timeoutMs / 1000} s of its registration and is replaced: ${why}`,
    dedupe: [claim.metadata.uid ?? ''],
  })
  state.readinessPauses.note(claim)
  tellLaunchesPaused(kubernetes, state, claim, `Nodes of this NodePool register but do not run pods: ${why}`)
}

/** Records on the NodePool of a claim that its launches are paused, if they are. @param why a sentence without a full stop. */
export function tellLaunchesPaused(
  { caches, events }: Pick<Kubernetes<'nodePools'>, 'caches' | 'events'>,
  { readinessPauses }: Pick<ClusterState, 'readinessPauses'>,
  { metadata }: NodeClaim,
  why: string,
): void {
  const pool = caches.nodePools.get({ name: metadata.labels?.[labels.nodePool] ?? '' })
  const pauseMs = pool === undefined ? 0 : readinessPauses.leftMs(pool.metadata.name)
  if (pool === undefined || pauseMs === 0) return
  events.record({
    object: pool,
    type: 'Warning',
    reason: 'LaunchesPaused',
    message: `${why}; the next one is launched in ${Math.ceil(pauseMs / 60_000)} min, or once the NodePool or its node class changes`,
    dedupe: [pool.metadata.uid ?? pool.metadata.name],
  })
}

/** Reason and message for the NodePool: a failed launch says more than a node that did not join. */
function failureOf(conditions: ConditionSet): RegistrationFailure {
  const launched = conditions.get('Launched')
  return launched === undefined || launched.status === 'True'
    ? { reason: 'RegistrationFailed', message: 'Failed to register node' }
    : { reason: launched.reason, message: launched.message }
}
