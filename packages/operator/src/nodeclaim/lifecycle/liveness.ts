import { ConditionSet, kinds, labels, type NodeClaim } from '@tenon/api'
import type { CloudProvider } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import type { Kubernetes } from '../../kubernetes.ts'
import type { Settings } from '../../settings.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { nodeClaimConditions } from '../../state/conditions.ts'
import type { RegistrationFailure } from '../../state/nodepools/registration-health.ts'
import { initializationTimeoutMs } from '../../state/nodes/state-node.ts'
import type { ClaimDraft, StageResult } from './controller.ts'
import type { ClaimDeleter } from './delete-claim.ts'

interface Dependencies {
  readonly kubernetes: Kubernetes
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly deleter: ClaimDeleter
  readonly clock: Clock
  readonly settings: Settings
  readonly logger: Logger
}

const unseenPollMs = 60_000

/** Deletes the claim if its launch, its registration or its initialization is overdue (lifecycle.md 3.5, reports.md 4). */
export async function checkLiveness(deps: Dependencies, draft: ClaimDraft): Promise<StageResult> {
  const { clock, deleter, kubernetes, logger, provider, settings, state } = deps
  const { conditions, claim } = draft
  const step = nextStep(draft, settings, provider)
  if (step === undefined || step.timeoutMs === Number.POSITIVE_INFINITY) return { kind: 'continue', draft }
  const { type, sinceMs, timeoutMs, reason } = step
  const leftMs = sinceMs + timeoutMs - clock.now()
  if (leftMs > 0) return { kind: 'continue', draft, requeueMs: leftMs }
  if (type === 'Registered' && (await hasUnseenNode(kubernetes, claim)))
    return { kind: 'continue', draft, requeueMs: unseenPollMs }
  const waitedFor = conditions.get(type)?.message ?? ''
  if (!(await deleter.delete(claim, reason))) return { kind: 'deleted' }
  logger.info('deleting nodeclaim that did not become a node in time', {
    NodeClaim: { name: claim.metadata.name },
    reason,
    waitedFor,
  })
  if (type !== 'Initialized') {
    state.registrationHealth.record(claim, failureOf(conditions))
    return { kind: 'deleted' }
  }
  kubernetes.events.record({
    object: claim,
    type: 'Warning',
    reason: 'InitializationTimeout',
    message: `Node ${claim.status?.nodeName ?? ''} was not initialized within ${timeoutMs / 1000} s of its registration and is replaced: ${waitedFor}`,
    dedupe: [claim.metadata.uid ?? ''],
  })
  state.readinessPauses.note(claim)
  reportPausedLaunches(
    kubernetes,
    state,
    claim,
    `Nodes of this NodePool register but do not run pods: ${waitedFor}`,
  )
  return { kind: 'deleted' }
}

/** Whether the Node of a claim that had one exists, although the cache does not show it. */
async function hasUnseenNode({ client }: Kubernetes, claim: NodeClaim): Promise<boolean> {
  const { nodeName: name = '', providerID } = claim.status ?? {}
  if (name === '') return false
  const node = await client.get(kinds.node, { name })
  return node?.spec?.providerID === providerID
}

/** Records on the NodePool of a claim that its launches are paused, if they are. @param why a sentence without a full stop. */
export function reportPausedLaunches(
  { caches, events }: Kubernetes,
  { readinessPauses }: ClusterState,
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

/** For the NodePool's condition. A failed launch explains more than the missing Node. */
function failureOf(conditions: ConditionSet): RegistrationFailure {
  const launched = conditions.get('Launched')
  return launched === undefined || launched.status === 'True'
    ? { reason: 'RegistrationFailed', message: 'Failed to register node' }
    : { reason: launched.reason, message: launched.message }
}

type Timeouts = Pick<Settings, 'launchTimeoutMs' | 'registrationTimeoutMs' | 'initializationTimeoutMs'>

/** A step that a claim has to take in time. */
export interface Step {
  readonly type: 'Launched' | 'Registered' | 'Initialized'
  /** Unix milliseconds. */
  readonly sinceMs: number
  readonly timeoutMs: number
  readonly reason: string
}

/** Whether the claim's next step should have been taken by now. */
export function isOverdue(
  draft: ClaimDraft,
  settings: Timeouts,
  provider: Pick<CloudProvider, 'awayUntilMs'>,
  nowMs: number,
): boolean {
  const step = nextStep(draft, settings, provider)
  return step !== undefined && step.sinceMs + step.timeoutMs <= nowMs
}

/** The next step; undefined once all are taken. */
function nextStep(
  { conditions, claim }: Pick<ClaimDraft, 'claim' | 'conditions'>,
  settings: Timeouts,
  provider?: Pick<CloudProvider, 'awayUntilMs'>,
): Step | undefined {
  const since = (type: string) =>
    Date.parse(conditions.get(type)?.lastTransitionTime ?? claim.metadata.creationTimestamp ?? '')
  if (!conditions.isTrue('Launched')) {
    // Time in which the cloud did not answer does not count: it has not failed to launch.
    const sinceMs = Math.max(since('Launched'), provider?.awayUntilMs?.() ?? 0)
    return { type: 'Launched', sinceMs, timeoutMs: settings.launchTimeoutMs, reason: 'launch_timeout' }
  }
  const sinceMs = since('Registered')
  if (!conditions.isTrue('Registered')) {
    const timeoutMs = settings.registrationTimeoutMs
    return { type: 'Registered', sinceMs, timeoutMs, reason: 'registration_timeout' }
  }
  if (conditions.isTrue('Initialized')) return undefined
  const timeoutMs = initializationTimeoutMs(claim, settings)
  return { type: 'Initialized', sinceMs, timeoutMs, reason: 'initialization_timeout' }
}

/** The next step of a claim, as far as the object shows. */
export function stepOfClaim(claim: NodeClaim, settings: Timeouts): Step | undefined {
  return nextStep({ conditions: ConditionSet.of(claim, nodeClaimConditions), claim }, settings)
}
