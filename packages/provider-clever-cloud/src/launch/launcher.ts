/** From a NodeClaim to an accepted NodeGroup (clever-cloud.md 8.1, 9, 20). */
import type { InstanceType, NewObject, NodeClaim } from '@tenon/api'
import {
  type Cache,
  type EventRecorder,
  isKubeError,
  isMissingRight,
  type KubeClient,
  type KubeError,
} from '@tenon/kube'
import { launchChoices, offeringRef, ProviderError, readyNodeClass } from '@tenon/provider'
import type { Logger } from '@tenon/runtime'
import type { CleverMetrics } from '../metrics.ts'
import { type CleverNodeClass, cleverNodeClassKind } from '../nodeclass/types.ts'
import { isOwnedBy } from '../nodegroup/ownership.ts'
import { flavorOf } from '../nodegroup/spec.ts'
import { type NodeGroup, nodeGroupKind } from '../nodegroup/types.ts'
import type { Acceptance } from './acceptance.ts'
import { newGroup } from './new-group.ts'
import type { Refusal, Refusals } from './refusals.ts'
import type { Turns } from './turns.ts'

export interface LauncherDependencies {
  readonly kube: Pick<KubeClient, 'create' | 'delete' | 'get'>
  readonly nodeClasses: Pick<Cache<CleverNodeClass>, 'get'>
  /** Waits for responses of the platform, and limits concurrent launches per flavor. */
  readonly answers: {
    readonly acceptance: Acceptance
    readonly refusals: Refusals
    readonly turns: Turns
  }
  readonly reports: {
    readonly metrics: Pick<CleverMetrics, 'acceptanceTimeouts'>
    readonly events: EventRecorder
    readonly logger: Logger
  }
}

/** Launches nodes. All methods may be repeated after a crash at any point. */
export class Launcher {
  readonly #deps: LauncherDependencies

  constructor(deps: LauncherDependencies) {
    this.#deps = deps
  }

  /**
   * The accepted NodeGroup of a claim: its existing one, or a new one.
   * @param types the types that the claim may use.
   * @throws ProviderError if it cannot be launched, KubeError if the API server fails.
   */
  async launch(claim: NodeClaim, types: readonly InstanceType[], signal?: AbortSignal): Promise<NodeGroup> {
    const { kube, answers } = this.#deps
    const options = signal === undefined ? {} : { signal }
    const existing = await kube.get(nodeGroupKind, { name: claim.metadata.name }, options)
    if (existing !== undefined) return await this.#accepted(claim, existing, signal)
    const nodeClass = await readyNodeClass(cleverNodeClassKind, this.#deps, claim, signal)
    const [choice] = launchChoices(claim, types)
    if (choice === undefined)
      throw new ProviderError(
        'insufficientCapacity',
        `NodeClaim ${claim.metadata.name}: no flavor that it allows is available and large enough`,
      )
    const flavor = offeringRef(choice).instanceType
    const wanted = newGroup(claim, nodeClass, flavor)
    const create = async () => await this.#accepted(claim, await this.#create(claim, wanted, signal), signal)
    return await answers.turns.take(flavor, create, signal)
  }

  async #create(
    claim: NodeClaim,
    wanted: NewObject<NodeGroup>,
    signal: AbortSignal | undefined,
  ): Promise<NodeGroup> {
    const { kube, answers } = this.#deps
    const options = signal === undefined ? {} : { signal }
    try {
      return await kube.create(nodeGroupKind, wanted, options)
    } catch (error) {
      if (isKubeError(error, 'alreadyExists')) {
        const group = await kube.get(nodeGroupKind, { name: claim.metadata.name }, options)
        if (group !== undefined) return group
      }
      if (isKubeError(error, 'invalid') && isAboutFlavorAlone(error.fields))
        throw answers.refusals.note(claim, wanted.spec.flavor, {
          kind: 'refused',
          reason: '',
          message: error.message,
        })
      if (isRefusedByPolicy(error))
        throw new ProviderError(
          'insufficientCapacity',
          `the API server refuses NodeGroup ${claim.metadata.name} of flavor ${wanted.spec.flavor}: ${error.message}`,
          { blames: { what: 'instanceType' }, cause: error },
        )
      throw error
    }
  }

  async #accepted(claim: NodeClaim, group: NodeGroup, signal: AbortSignal | undefined): Promise<NodeGroup> {
    if (!isOwnedBy(group, claim)) throw foreignGroup(group, claim)
    if (group.metadata.deletionTimestamp !== undefined) throw goingGroup(group)
    const { answers, reports } = this.#deps
    const { metrics, events, logger } = reports
    const { name } = group.metadata
    const decision = await answers.acceptance.decisionOn(group, signal)
    switch (decision.kind) {
      case 'ready':
      case 'accepted':
        return group
      case 'retrying':
        events.record({ object: claim, type: 'Warning', ...transientFailure(group, decision.message) })
        return group
      case 'silent':
        metrics.acceptanceTimeouts.count()
        logger.warn('no response about a NodeGroup within 15 s; the launch continues', {
          nodeGroup: name,
        })
        events.record({
          object: claim,
          type: 'Warning',
          reason: 'NodeGroupAcceptanceTimeout',
          message: `no response about NodeGroup ${name} within 15 s; the launch continues`,
          dedupe: [claim.metadata.name],
        })
        return group
      case 'overQuota':
      case 'refused':
      case 'vanished':
        throw await this.#refused(claim, group, decision, signal)
    }
  }

  /**
   * Deletes a refused group at once. If that fails, it is deleted with its claim; the refusal is the error to report.
   */
  async #refused(
    claim: NodeClaim,
    group: NodeGroup,
    refusal: Refusal,
    signal: AbortSignal | undefined,
  ): Promise<ProviderError> {
    const { kube, answers, reports } = this.#deps
    const { refusals, turns } = answers
    const { logger } = reports
    const { name, uid } = group.metadata
    const error = refusals.note(claim, flavorOf(group), refusal)
    if (refusal.kind !== 'refused') turns.refused(flavorOf(group))
    if (refusal.kind === 'vanished') return error
    const options = {
      ...(signal !== undefined && { signal }),
      ...(uid !== undefined && { preconditionUid: uid }),
    }
    try {
      await kube.delete(nodeGroupKind, { name }, options)
    } catch (cause) {
      if (!isKubeError(cause, 'notFound'))
        logger.warn('a rejected NodeGroup could not be deleted; it is deleted with its NodeClaim', {
          nodeGroup: name,
          error: cause,
        })
    }
    return error
  }
}

/** Reports that the platform failed and will retry. */
export function transientFailure(
  { metadata: { name } }: NodeGroup,
  message: string,
): { readonly reason: string; readonly message: string; readonly dedupe: readonly string[] } {
  return {
    reason: 'NodeGroupTransientFailure',
    message: `Clever Cloud failed to create the node of NodeGroup ${name} and retries${message === '' ? '' : `: ${message}`}`,
    dedupe: [name],
  }
}

function foreignGroup({ metadata: { name } }: NodeGroup, claim: NodeClaim): ProviderError {
  return new ProviderError(
    'create',
    `NodeGroup ${name} exists and is not owned by NodeClaim ${claim.metadata.name}; delete or rename the NodeGroup`,
    { reason: 'NodeGroupNotOwned' },
  )
}

/**
 * The claim cannot get another group until this one is gone, so it is given up. That says nothing about flavors: most
 * often the group is deleted because an earlier attempt of the same claim was refused.
 */
function goingGroup({ metadata: { name } }: NodeGroup): ProviderError {
  return new ProviderError(
    'insufficientCapacity',
    `NodeGroup ${name} is being deleted; a NodeClaim with another name takes the place of this one`,
    { reason: 'NodeGroupTerminating', blames: { what: 'nothing' } },
  )
}

/** By an admission policy, a webhook or a schema; not for a missing permission. */
function isRefusedByPolicy(error: unknown): error is KubeError {
  if (isKubeError(error, 'invalid')) return true
  return isKubeError(error, 'forbidden') && !isMissingRight(error)
}

function isAboutFlavorAlone(fields: readonly string[] | undefined): boolean {
  return fields?.length === 1 && fields[0] === 'spec.flavor'
}
