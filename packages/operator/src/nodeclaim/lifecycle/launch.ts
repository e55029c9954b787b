import {
  formatResource,
  labels,
  type NodeClaim,
  ownValue,
  parseResource,
  type ResourceList,
  type Resources,
} from '@tenon/api'
import { type EventRecorder, withDeadline } from '@tenon/kube'
import { type CloudProvider, isProviderError, type ProviderInstance } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import type { CapacityLearning } from '../../cloud/provider-layers.ts'
import type { ClaimJournal } from '../../journal/claim-journal.ts'
import { upperCamel } from '../../journal/entry.ts'
import type { Settings } from '../../settings.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { ObservedPools } from '../../state/nodepools/observed-pools.ts'
import { nameProblem } from '../../state/nodepools/pool-problems.ts'
import type { ClaimDraft, StageResult } from './controller.ts'
import type { ClaimDeleter } from './delete-claim.ts'
import { isOverdue } from './liveness.ts'

interface Dependencies {
  readonly provider: CloudProvider
  readonly learning?: CapacityLearning
  readonly state: ClusterState
  readonly observed: ObservedPools
  readonly events: EventRecorder
  readonly deleter: ClaimDeleter
  readonly claimJournal: ClaimJournal
  readonly clock: Clock
  readonly settings: Settings
  readonly logger: Logger
}

/** Reasons that the CRD allows; with any other the whole status would be refused. */
const validReason = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/
const observedPollMs = 60_000
const pausedPollMs = 5_000
const resultTtlMs = 60 * 60_000
const messageLimitBytes = 300
/** Pauses between attempts of one claim. The queue cannot pause: writing the failure triggers a reconcile. */
const retry = { baseMs: 1000, capMs: 60_000 }
/** How long a launch that is already overdue may look for the instance of an earlier one. */
const overdueLaunchMs = 60_000

type LaunchOutcome =
  | { readonly kind: 'launched'; readonly instance: ProviderInstance }
  | { readonly kind: 'postponed'; readonly forMs: number }
  | { readonly kind: 'failed'; readonly error: unknown }

/** The first stage: creates the instance of a claim (lifecycle.md 3.1). */
export class InstanceLauncher {
  readonly #deps: Dependencies
  /** Instances by claim UID until the claim stores them, so that a cache that is behind never launches twice. */
  readonly #results = new Map<string, { readonly instance: ProviderInstance; readonly expiresMs: number }>()
  readonly #failures = new Map<string, { readonly count: number; readonly nextMs: number }>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(draft: ClaimDraft, signal: AbortSignal): Promise<StageResult> {
    const { clock, logger } = this.#deps
    const { claim, conditions } = draft
    if (!conditions.isUnknown('Launched')) {
      if (conditions.isTrue('Launched')) this.#results.delete(claim.metadata.uid ?? '')
      return {
        kind: 'continue',
        draft: { ...draft, conditions: conditions.restamp('Launched', clock.now()) },
      }
    }
    const problems = nameProblems(claim)
    if (problems.length > 0) return this.#invalidName(draft, problems)
    const outcome = await this.#launch(draft, signal)
    if (outcome.kind === 'postponed') return { kind: 'continue', draft, requeueMs: outcome.forMs }
    if (outcome.kind === 'failed') return await this.#failed(draft, outcome.error)
    const { instance } = outcome
    return {
      kind: 'continue',
      afterStore: () => {
        logger.info('launched nodeclaim', {
          NodeClaim: { name: claim.metadata.name },
          'provider-id': instance.providerID,
          'instance-type': instance.labels[labels.instanceType],
          zone: instance.labels[labels.zone],
          'capacity-type': instance.labels[labels.capacityType],
          allocatable: instance.allocatable,
        })
      },
      draft: {
        claim: this.#withLearnedCapacity(withInstance(claim, instance)),
        conditions: conditions.set({ type: 'Launched', status: 'True' }, clock.now()),
      },
    }
  }

  /** A Node whose names cannot be label values would never register. */
  #invalidName(draft: ClaimDraft, problems: readonly string[]): StageResult {
    const { events, clock } = this.#deps
    const message = problems.join('; ')
    events.record({
      object: draft.claim,
      type: 'Warning',
      reason: 'InvalidName',
      message: `NodeClaim ${draft.claim.metadata.name} is not launched: ${message}`,
      dedupe: [draft.claim.metadata.uid ?? ''],
    })
    const condition = { type: 'Launched', status: 'Unknown', reason: 'InvalidName', message } as const
    return {
      kind: 'continue',
      draft: { ...draft, conditions: draft.conditions.set(condition, clock.now()) },
    }
  }

  /** @throws what the provider throws once `signal` aborts; otherwise a failure is an outcome. */
  async #launch(draft: ClaimDraft, signal: AbortSignal): Promise<LaunchOutcome> {
    const { claimJournal, clock, observed, provider, settings, state } = this.#deps
    const { claim } = draft
    const uid = claim.metadata.uid ?? ''
    const pool = claim.metadata.labels?.[labels.nodePool] ?? ''
    this.#sweep()
    const known = this.#results.get(uid)
    if (known !== undefined) return { kind: 'launched', instance: known.instance }
    if (state.brake.holding(pool, 'launches') !== undefined) return { kind: 'postponed', forMs: pausedPollMs }
    if (observed.has(pool)) return { kind: 'postponed', forMs: observedPollMs }
    const forMs = (this.#failures.get(uid)?.nextMs ?? 0) - clock.now()
    if (forMs > 0) return { kind: 'postponed', forMs }
    try {
      const instance = await this.#create(claim, signal, isOverdue(draft, settings, provider, clock.now()))
      this.#failures.delete(uid)
      state.launchFailures.delete(pool)
      this.#results.set(uid, { instance, expiresMs: clock.now() + resultTtlMs })
      const { metadata } = claim
      const tags = { ...instance.labels, ...metadata.labels }
      claimJournal.launched({ ...claim, metadata: { ...metadata, labels: tags } })
      return { kind: 'launched', instance }
    } catch (error) {
      if (signal.aborted) throw error
      const detail = truncated(isProviderError(error) ? error.detail : String(error))
      state.launchFailures.set(pool, detail)
      const reason = isProviderError(error) ? upperCamel(error.kind) : 'LaunchFailed'
      claimJournal.launchFailed(claim, reason, detail)
      const count = (this.#failures.get(uid)?.count ?? 0) + 1
      const pauseMs = Math.min(retry.capMs, retry.baseMs * 2 ** (count - 1))
      this.#failures.set(uid, { count, nextMs: clock.now() + pauseMs })
      return { kind: 'failed', error }
    }
  }

  /**
   * Providers may wait for long. If the launch is overdue, the wait is cut short: processes that restart again and again
   * would otherwise never get to the deletion of the claim.
   */
  async #create(claim: NodeClaim, signal: AbortSignal, isLate: boolean): Promise<ProviderInstance> {
    const { provider, clock } = this.#deps
    if (!isLate) return await provider.create(claim, signal)
    const late = () => new Error(`no instance was found within ${overdueLaunchMs / 1000} s`)
    return await withDeadline(clock, { ms: overdueLaunchMs, late, signal }, (limited) =>
      provider.create(claim, limited),
    )
  }

  #sweep(): void {
    const now = this.#deps.clock.now()
    for (const [uid, { nextMs }] of this.#failures)
      if (nextMs + resultTtlMs <= now) this.#failures.delete(uid)
    for (const [uid, { expiresMs }] of this.#results) if (expiresMs <= now) this.#results.delete(uid)
  }

  async #failed(draft: ClaimDraft, error: unknown): Promise<StageResult> {
    const { events, clock, deleter } = this.#deps
    if (isProviderError(error, 'insufficientCapacity')) {
      events.record({
        object: draft.claim,
        type: 'Warning',
        reason: 'InsufficientCapacityError',
        message: `NodeClaim ${draft.claim.metadata.name}: ${truncated(error.message)}`,
        dedupe: [draft.claim.metadata.uid ?? ''],
      })
      await deleter.delete(draft.claim, 'insufficient_capacity')
      return { kind: 'deleted' }
    }
    if (isProviderError(error, 'nodeClassNotReady')) {
      await deleter.delete(draft.claim, 'nodeclass_not_ready')
      return { kind: 'deleted' }
    }
    const message = error instanceof Error ? error.message : String(error)
    const conditions = draft.conditions.set(
      isProviderError(error, 'create')
        ? {
            type: 'Launched',
            status: 'Unknown',
            reason: conditionReason(error.reason),
            message: error.detail,
          }
        : { type: 'Launched', status: 'Unknown', reason: 'LaunchFailed', message: truncated(message) },
      clock.now(),
    )
    return { kind: 'continue', draft: { ...draft, conditions }, error }
  }

  /** Limits the amounts of the status to what instances of the type turned out to have. */
  #withLearnedCapacity(claim: NodeClaim): NodeClaim {
    const { learning } = this.#deps
    if (learning === undefined) return claim
    const { nodeClassRef } = claim.spec
    const settings = learning.capacity.settingsOf(nodeClassRef)
    const type = claim.metadata.labels?.[labels.instanceType] ?? ''
    const found = learning.capacity.figuresOf(nodeClassRef, settings, type)
    const { status } = claim
    return {
      ...claim,
      status: {
        ...status,
        ...(status?.capacity && { capacity: atMost(status.capacity, found?.capacity) }),
        ...(status?.allocatable && { allocatable: atMost(status.allocatable, found?.allocatable) }),
      },
    }
  }
}

/** Names that the Node has as labels: that of the claim and that of its node class. */
function nameProblems({ metadata, spec }: NodeClaim): readonly string[] {
  return [
    ...nameProblem('metadata.name', metadata.name),
    ...nameProblem('spec.nodeClassRef.name', spec.nodeClassRef.name),
  ].map(({ field, message, fix }) => `${field}: ${message}; ${fix}`)
}

function withInstance(claim: NodeClaim, instance: ProviderInstance): NodeClaim {
  return {
    ...claim,
    metadata: {
      ...claim.metadata,
      labels: { ...instance.labels, ...claim.metadata.labels },
      ...(instance.annotations && {
        annotations: { ...claim.metadata.annotations, ...instance.annotations },
      }),
    },
    status: {
      ...claim.status,
      providerID: instance.providerID,
      ...(instance.imageID !== undefined && { imageID: instance.imageID }),
      capacity: instance.capacity,
      allocatable: instance.allocatable,
    },
  }
}

function atMost(amounts: ResourceList, most: Resources = {}): ResourceList {
  return Object.fromEntries(
    Object.entries(amounts).map(([name, quantity]) => {
      const bound = ownValue(most, name)
      const isAbove = bound !== undefined && parseResource(name, quantity) > bound
      return [name, isAbove ? formatResource(name, bound) : quantity]
    }),
  )
}

function conditionReason(reason: string | undefined): string {
  return reason !== undefined && validReason.test(reason) ? reason : 'LaunchFailed'
}

/** Truncates by bytes, as Karpenter does, at the end of a character. */
function truncated(text: string): string {
  const head = new Uint8Array(messageLimitBytes)
  const { read, written } = new TextEncoder().encodeInto(text, head)
  const isShort = read === text.length && written < messageLimitBytes
  return isShort ? text : `${text.slice(0, read)}...`
}
