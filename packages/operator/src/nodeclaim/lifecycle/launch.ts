/** The first stage: a claim gets its instance (lifecycle.md 3.1). */
import type { Clock, Logger } from '@tenon/runtime'
import {
  type ConditionSet,
  formatResource,
  labels,
  type Node,
  type NodeClaim,
  ownValue,
  parseResource,
  type ResourceList,
  type Resources,
} from '@tenon/api'
import { type EventRecorder, type KubeClient, withDeadline } from '@tenon/kube'
import { type CloudProvider, isProviderError, type ProviderInstance } from '@tenon/provider'
import { nameProblem } from '../../cluster/nodepools/pool-problems.ts'
import { deleteClaim } from './delete-claim.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { CapacityLearning } from '../../cloud/corrected-provider.ts'
import type { Metrics } from '../../metrics/metrics.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly learning?: CapacityLearning
  readonly events: EventRecorder
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
}

const resultTtlMs = 60 * 60_000
const messageLimitBytes = 300
/** Pauses between attempts of one claim; held here because writing the failure wakes the claim again. */
const retry = { baseMs: 1000, capMs: 60_000 }
/** A launch that begins when it should be over has this long to find the instance of an earlier one. */
const overdueLaunchMs = 60_000
/** What the CRD takes for a reason; anything else would have the whole status refused. */
const validReason = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/

/** What the stages work on: the claim with its changes so far, and its conditions. */
export interface ClaimDraft {
  readonly claim: NodeClaim
  readonly conditions: ConditionSet
  /** The claim's Node as this pass stored it; the cache may show an older one. */
  readonly node?: Node
}

/** How a stage of a claim ended: on to the next one, or no further. */
export type StageResult =
  | {
      readonly kind: 'continue'
      readonly draft: ClaimDraft
      readonly requeueMs?: number
      /** Asks for another pass with growing pauses. */
      readonly isBackingOff?: boolean
      readonly error?: unknown
      /** Told once the draft is stored, so that a pass that has to be repeated counts nothing twice. */
      readonly afterStore?: () => Promise<void> | void
      /** Later stages have to wait for another pass: this one worked on old data. */
      readonly isLast?: boolean
    }
  /** The claim is being deleted; nothing more to do in this pass. */
  | { readonly kind: 'deleted' }

/** Launches claims and remembers answers, so that a lagging cache never launches twice. */
export class Launcher {
  readonly #deps: Dependencies
  readonly #results = new Map<string, { readonly instance: ProviderInstance; readonly expiresMs: number }>()
  readonly #failures = new Map<string, { readonly count: number; readonly nextMs: number }>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param isOverdue whether the time for the launch is over already. */
  async run(draft: ClaimDraft, signal: AbortSignal, isOverdue: boolean): Promise<StageResult> {
    const { clock, logger } = this.#deps
    const uid = draft.claim.metadata.uid ?? ''
    if (!draft.conditions.isUnknown('Launched')) {
      if (draft.conditions.isTrue('Launched')) this.#results.delete(uid)
      return {
        kind: 'continue',
        draft: { ...draft, conditions: draft.conditions.restamp('Launched', clock.now()) },
      }
    }
    const invalid = nameProblems(draft.claim)
    if (invalid.length > 0) return this.#refused(draft, invalid)
    this.#sweep()
    let instance = this.#results.get(uid)?.instance
    if (instance === undefined) {
      const waitMs = (this.#failures.get(uid)?.nextMs ?? 0) - clock.now()
      if (waitMs > 0) return { kind: 'continue', draft, requeueMs: waitMs }
      try {
        instance = await this.#created(draft.claim, signal, isOverdue)
      } catch (error) {
        return await this.#failed(draft, error, signal)
      }
      this.#failures.delete(uid)
      this.#deps.state.launchFailures.delete(poolOf(draft.claim))
      this.#results.set(uid, { instance, expiresMs: clock.now() + resultTtlMs })
    }
    const launched = instance
    return {
      kind: 'continue',
      afterStore: () => {
        logger.info('launched nodeclaim', {
          NodeClaim: { name: draft.claim.metadata.name },
          'provider-id': launched.providerID,
          'instance-type': launched.labels[labels.instanceType],
          zone: launched.labels[labels.zone],
          'capacity-type': launched.labels[labels.capacityType],
          allocatable: launched.allocatable,
        })
      },
      draft: {
        claim: this.#estimated(withInstance(draft.claim, instance)),
        conditions: draft.conditions.set({ type: 'Launched', status: 'True' }, clock.now()),
      },
    }
  }

  /**
   * Providers may wait for long. A process that finds an overdue claim does not begin that wait anew, or
   * processes that follow each other closely would never come to the end of the claim.
   */
  async #created(claim: NodeClaim, signal: AbortSignal, isOverdue: boolean): Promise<ProviderInstance> {
    const { provider, clock } = this.#deps
    if (!isOverdue) return await provider.create(claim, signal)
    const late = () => new Error(`no instance was found within ${overdueLaunchMs / 1000} s`)
    return await withDeadline(clock, { ms: overdueLaunchMs, late, signal }, (limited) =>
      provider.create(claim, limited),
    )
  }

  /** An instance whose names cannot be label values would never register; none is launched. */
  #refused(draft: ClaimDraft, problems: readonly string[]): StageResult {
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

  async #failed(draft: ClaimDraft, error: unknown, signal: AbortSignal): Promise<StageResult> {
    const { events, clock, state } = this.#deps
    if (signal.aborted) throw error
    const detail = isProviderError(error) ? error.detail : String(error)
    state.launchFailures.set(poolOf(draft.claim), truncated(detail))
    this.#postpone(draft.claim.metadata.uid ?? '')
    if (isProviderError(error, 'insufficientCapacity')) {
      events.record({
        object: draft.claim,
        type: 'Warning',
        reason: 'InsufficientCapacityError',
        message: `NodeClaim ${draft.claim.metadata.name}: ${truncated(error.message)}`,
        dedupe: [draft.claim.metadata.uid ?? ''],
      })
      await deleteClaim(this.#deps, draft.claim, 'insufficient_capacity')
      return { kind: 'deleted' }
    }
    if (isProviderError(error, 'nodeClassNotReady')) {
      await deleteClaim(this.#deps, draft.claim, 'nodeclass_not_ready')
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

  /** The claim with no more than its instance will have, as far as that is known. */
  #estimated(claim: NodeClaim): NodeClaim {
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

  #postpone(uid: string): void {
    const count = (this.#failures.get(uid)?.count ?? 0) + 1
    const pauseMs = Math.min(retry.capMs, retry.baseMs * 2 ** (count - 1))
    this.#failures.set(uid, { count, nextMs: this.#deps.clock.now() + pauseMs })
  }

  #sweep(): void {
    const now = this.#deps.clock.now()
    for (const [uid, { nextMs }] of this.#failures)
      if (nextMs + resultTtlMs <= now) this.#failures.delete(uid)
    for (const [uid, { expiresMs }] of this.#results) if (expiresMs <= now) this.#results.delete(uid)
  }
}

/** Of the claim, which names its node, and of its node class, which its node carries as a label. */
function nameProblems({ metadata, spec }: NodeClaim): readonly string[] {
  return [
    ...nameProblem('metadata.name', metadata.name),
    ...nameProblem('spec.nodeClassRef.name', spec.nodeClassRef.name),
  ].map(({ field, message, fix }) => `${field}: ${message}; ${fix}`)
}

/** The claim with what the cloud answered; labels of the claim win, annotations of the cloud do. */
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

/** The amounts, none of them above `most`. */
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

/** Cut by bytes, as Karpenter does, at the end of a whole character. */
const poolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''

function truncated(text: string): string {
  const head = new Uint8Array(messageLimitBytes)
  const { read, written } = new TextEncoder().encodeInto(text, head)
  const isShort = read === text.length && written < messageLimitBytes
  return isShort ? text : `${text.slice(0, read)}...`
}
