/** Gives up on claims that do not become nodes that take pods in time (lifecycle.md 3.5, reports.md 4). */
import type { Clock, Logger } from '@tenon/runtime'
import type { EventRecorder, KubeClient } from '@tenon/kube'
import { type ConditionSet, kinds, labels, type NodeClaim } from '@tenon/api'
import { initializationTimeoutMs } from '../../cluster/nodes/initialization-time.ts'
import type { RegistrationFailure } from '../../cluster/nodepools/registration-health.ts'
import { deleteClaim } from './delete-claim.ts'
import type { ClaimDraft, StageResult } from './launch.ts'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Settings } from '../../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly events: EventRecorder
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
  readonly settings: Settings
}

const unseenPollMs = 60_000

/** A step that a claim has to take in time. */
interface Step {
  readonly type: 'Launched' | 'Registered' | 'Initialized'
  /** Unix milliseconds. */
  readonly sinceMs: number
  readonly timeoutMs: number
  readonly reason: string
}

/** Deletes the claim once its launch, its registration or its initialization is overdue. */
export async function checkLiveness(deps: Dependencies, draft: ClaimDraft): Promise<StageResult> {
  const { conditions, claim } = draft
  const step = stepOf(deps, draft)
  if (step === undefined || step.timeoutMs === Number.POSITIVE_INFINITY) return { kind: 'continue', draft }
  const { type, sinceMs, timeoutMs, reason } = step
  const leftMs = sinceMs + timeoutMs - deps.clock.now()
  if (leftMs > 0) return { kind: 'continue', draft, requeueMs: leftMs }
  if (type === 'Registered' && (await isUnseen(deps, claim)))
    return { kind: 'continue', draft, requeueMs: unseenPollMs }
  const waitedFor = conditions.get(type)?.message ?? ''
  if (!(await deleteClaim(deps, claim, reason))) return { kind: 'deleted' }
  deps.logger.info('deleting nodeclaim that did not become a node in time', {
    NodeClaim: { name: claim.metadata.name },
    reason,
    waitedFor,
  })
  if (type === 'Initialized') noteOverdue(deps, claim, timeoutMs, waitedFor)
  else deps.state.registrationHealth.record(claim, failureOf(conditions))
  return { kind: 'deleted' }
}

/** Whether the claim's next step should have been taken by now. */
export function isOverdue(deps: Dependencies, draft: ClaimDraft): boolean {
  const step = stepOf(deps, draft)
  return step !== undefined && step.sinceMs + step.timeoutMs <= deps.clock.now()
}

/** Whether the Node of a claim that had one is there, although the cache does not show it. */
async function isUnseen({ client }: Dependencies, claim: NodeClaim): Promise<boolean> {
  const { nodeName: name = '', providerID } = claim.status ?? {}
  if (name === '') return false
  const node = await client.get(kinds.node, { name })
  return node?.spec?.providerID === providerID
}

function stepOf({ settings }: Dependencies, { conditions, claim }: ClaimDraft): Step | undefined {
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
  return step(
    'Initialized',
    initializationTimeoutMs(claim, settings),
    'initialization_timeout',
    since('Registered'),
  )
}

function noteOverdue(
  { caches, events, state }: Dependencies,
  claim: NodeClaim,
  timeoutMs: number,
  why: string,
): void {
  events.record({
    object: claim,
    type: 'Warning',
    reason: 'InitializationTimeout',
    message: `Node ${claim.status?.nodeName ?? ''} did not take pods within ${timeoutMs / 1000} s of its registration and is replaced: ${why}`,
    dedupe: [claim.metadata.uid ?? ''],
  })
  state.readinessPauses.note(claim)
  const pool = caches.nodePools.get({ name: claim.metadata.labels?.[labels.nodePool] ?? '' })
  const pauseMs = pool === undefined ? 0 : state.readinessPauses.leftMs(pool.metadata.name)
  if (pool === undefined || pauseMs === 0) return
  events.record({
    object: pool,
    type: 'Warning',
    reason: 'LaunchesPaused',
    message: `Nodes of this NodePool register and do not take pods; the next one is launched in ${Math.ceil(pauseMs / 60_000)} min, or once the NodePool or its node class changes. The last one: ${why}`,
    dedupe: [pool.metadata.uid ?? pool.metadata.name],
  })
}

/** What the NodePool is told: a launch that failed says more than a node that did not come. */
function failureOf(conditions: ConditionSet): RegistrationFailure {
  const launched = conditions.get('Launched')
  return launched === undefined || launched.status === 'True'
    ? { reason: 'RegistrationFailed', message: 'Failed to register node' }
    : { reason: launched.reason, message: launched.message }
}
