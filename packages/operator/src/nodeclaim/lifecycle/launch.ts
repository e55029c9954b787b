/** The first stage: a claim gets its instance (lifecycle.md 3.1). */
import type { Clock, Logger } from '@tenon/runtime'
import {
  formatResource,
  labels,
  type NodeClaim,
  ownValue,
  parseResource,
  type ResourceList,
  type Resources,
} from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import { isProviderError, type ProviderInstance } from '@tenon/provider'
import { nameProblem } from '../../state/nodepools/pool-problems.ts'
import type { ClaimDeleter } from './delete-claim.ts'
import { type InstanceLaunches, truncated } from './instance-launches.ts'
import type { ClaimDraft, LifecycleStage, StageResult } from './stage.ts'
import type { CapacityLearning } from '../../cloud/corrected-provider.ts'

interface Dependencies {
  readonly launches: InstanceLaunches
  readonly learning: CapacityLearning | undefined
  readonly events: EventRecorder
  readonly deleter: ClaimDeleter
  readonly clock: Clock
  readonly logger: Logger
}

/** Reasons that the CRD allows; with any other the whole status would be refused. */
const validReason = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/

/** Launches claims and records the outcome. */
export class Launcher implements LifecycleStage {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(draft: ClaimDraft, signal: AbortSignal): Promise<StageResult> {
    const { clock, launches, logger } = this.#deps
    if (!draft.conditions.isUnknown('Launched')) {
      if (draft.conditions.isTrue('Launched')) launches.forget(draft.claim)
      return {
        kind: 'continue',
        draft: { ...draft, conditions: draft.conditions.restamp('Launched', clock.now()) },
      }
    }
    const invalid = nameProblems(draft.claim)
    if (invalid.length > 0) return this.#refused(draft, invalid)
    const outcome = await launches.launch(draft, signal)
    if (outcome.kind === 'postponed') return { kind: 'continue', draft, requeueMs: outcome.forMs }
    if (outcome.kind === 'failed') return await this.#failed(draft, outcome.error)
    const { instance: launched } = outcome
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
        claim: this.#estimated(withInstance(draft.claim, launched)),
        conditions: draft.conditions.set({ type: 'Launched', status: 'True' }, clock.now()),
      },
    }
  }

  /** A node whose names cannot be label values would never register, so none is launched. */
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

  /** The claim with amounts no larger than its instance is known to have. */
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
}

/** Of the claim, which names its node, and of its node class, which its node carries as a label. */
function nameProblems({ metadata, spec }: NodeClaim): readonly string[] {
  return [
    ...nameProblem('metadata.name', metadata.name),
    ...nameProblem('spec.nodeClassRef.name', spec.nodeClassRef.name),
  ].map(({ field, message, fix }) => `${field}: ${message}; ${fix}`)
}

/** The claim with the cloud's answer; its own labels win, and so do annotations of the cloud. */
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
