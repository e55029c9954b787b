/** Creates the instance of a NodeClaim, or finds the one that it has. */
import type { NodeClaim } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import type { ExoscaleClient } from '../api/client.ts'
import { ExoscaleApiError } from '../api/errors.ts'
import type { ExoscaleInstance, Operation } from '../api/types.ts'
import { isOutcomeUnknown, launchError, launchReasons } from '../errors.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { byAge, type OwnedInstance } from '../fleet/owned-instance.ts'
import type { BootRequests, LaunchPlan } from './boot-requests.ts'
import type { BootstrapToken } from './bootstrap-token.ts'
import type { Refusals } from './refusals.ts'

/** How long an instance whose creation was not confirmed may take to show in lists. */
const settleMs = 30_000
const settlePollMs = 3000

export interface InstanceCreationDependencies {
  readonly api: Pick<ExoscaleClient, 'createInstance' | 'getInstance' | 'waitForOperation'>
  readonly fleet: Pick<Fleet, 'isOf' | 'owned' | 'requestDeletion'>
  readonly boot: BootRequests
  readonly refusals: Refusals
  readonly clock: Clock
  readonly logger: Logger
}

/** Instances of claims, at most one per claim. */
export class InstanceCreation {
  readonly #deps: InstanceCreationDependencies

  constructor(deps: InstanceCreationDependencies) {
    this.#deps = deps
  }

  /** The oldest living instance of a claim; younger ones are accidents and are deleted. */
  async find(claim: NodeClaim, signal: AbortSignal | undefined): Promise<OwnedInstance | undefined> {
    const { fleet, logger } = this.#deps
    const instances = (await fleet.owned(signal)).filter(
      (owned) => owned.nodeClaimName === claim.metadata.name && !owned.isDeleting,
    )
    const [keep, ...surplus] = instances.filter(({ instance }) => instance.state !== 'error').sort(byAge)
    for (const owned of [...surplus, ...instances.filter(({ instance }) => instance.state === 'error')]) {
      logger.warn('deleting a surplus or failed instance of a claim', { instance: owned.id })
      await fleet.requestDeletion(owned.id, signal)
    }
    return keep
  }

  /** @throws ProviderError when no instance was made, or it is not known whether one was. */
  async create(plan: LaunchPlan, signal: AbortSignal | undefined): Promise<ExoscaleInstance> {
    const { api, boot } = this.#deps
    const { request, token } = await boot.prepare(plan, signal)
    let operation: Operation
    try {
      operation = await api.createInstance(request(), signal)
    } catch (error) {
      if (!isOutcomeUnknown(error) && signal?.aborted !== true)
        return this.#refuse(error, plan, token, signal)
      const found = await this.#confirmed(plan.claim, signal)
      if (found !== undefined) return this.settled(found, signal)
      // Without any answer the instance may still turn up, and needs its token then.
      if (error instanceof ExoscaleApiError) await boot.discard(token)
      throw launchError(error, launchReasons.instance)
    }
    return this.#finished(operation, plan, token, signal)
  }

  /** Waits for the creation to end; what it left behind when it failed is deleted. */
  async #finished(
    operation: Operation,
    plan: LaunchPlan,
    token: BootstrapToken,
    signal: AbortSignal | undefined,
  ): Promise<ExoscaleInstance> {
    const { api, logger } = this.#deps
    let id = operation.reference?.id
    try {
      const ended = await api.waitForOperation(operation, { signal })
      id ??= ended.reference?.id
    } catch (error) {
      if (signal?.aborted === true || isOutcomeUnknown(error))
        throw launchError(error, launchReasons.instance)
      if (id !== undefined) {
        await this.#deleteFailed(id, plan.claim, signal).catch((cause: unknown) => {
          logger.warn('failed instance could not be deleted', { instance: id, error: cause })
        })
      }
      return this.#refuse(error, plan, token, signal)
    }
    const made = id === undefined ? undefined : await this.#instance(id, signal)
    if (made !== undefined && this.#deps.fleet.isOf(plan.claim, made)) return made
    const found = await this.#confirmed(plan.claim, signal)
    if (found !== undefined) return this.settled(found, signal)
    throw launchError(
      new Error(`operation ${operation.id} names no instance of this NodeClaim`),
      launchReasons.instance,
    )
  }

  #instance(id: string, signal: AbortSignal | undefined): Promise<ExoscaleInstance> {
    return this.#deps.api.getInstance(id, signal).catch((error: unknown) => {
      throw launchError(error, launchReasons.instance)
    })
  }

  /** What an operation names is not deleted before it is seen to be the claim's. */
  async #deleteFailed(id: string, claim: NodeClaim, signal: AbortSignal | undefined): Promise<void> {
    const { api, fleet, logger } = this.#deps
    if (fleet.isOf(claim, await api.getInstance(id, signal))) await fleet.requestDeletion(id, signal)
    else logger.warn('a failed launch references an instance of another owner', { instance: id })
  }

  /** Nothing was made: the token goes too. */
  async #refuse(
    error: unknown,
    plan: LaunchPlan,
    token: BootstrapToken,
    signal: AbortSignal | undefined,
  ): Promise<never> {
    const { boot, refusals } = this.#deps
    await boot.discard(token)
    throw await refusals.explain(error, plan, signal)
  }

  /** Looks for an instance whose creation was not confirmed, until lists surely show it. */
  async #confirmed(claim: NodeClaim, signal: AbortSignal | undefined): Promise<OwnedInstance | undefined> {
    const { clock, logger } = this.#deps
    for (let waitedMs = 0; ; waitedMs += settlePollMs) {
      signal?.throwIfAborted()
      try {
        const found = await this.find(claim, signal)
        if (found !== undefined) return found
      } catch (error) {
        logger.warn('instances could not be listed after an unconfirmed creation', { error })
      }
      if (waitedMs >= settleMs) return undefined
      await clock.sleep(settlePollMs, signal)
    }
  }

  /** An instance found by its labels, read until it is past `starting`, for at most ten minutes. */
  async settled(owned: OwnedInstance, signal: AbortSignal | undefined): Promise<ExoscaleInstance> {
    const { api, clock } = this.#deps
    const deadlineMs = clock.monotonic() + 10 * 60_000
    for (;;) {
      let instance: ExoscaleInstance
      try {
        instance = await api.getInstance(owned.id, signal)
      } catch (error) {
        throw launchError(error, launchReasons.instance)
      }
      if (instance.state === 'error') {
        throw new ProviderError('create', `instance ${owned.id} is in state error`, {
          reason: launchReasons.instance,
        })
      }
      if (instance.state !== 'starting' || clock.monotonic() > deadlineMs) return instance
      await clock.sleep(settlePollMs, signal)
    }
  }
}
