/** Creates the instance of a NodeClaim, or finds an existing one. */
import { karpenterKinds, type NodeClaim, ownValue } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { ProviderError } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import type { ExoscaleClient } from '../api/client.ts'
import { ExoscaleApiError, isApiError } from '../api/errors.ts'
import type { ExoscaleInstance, Operation } from '../api/types.ts'
import { isOutcomeUnknown, launchError, launchReasons } from '../errors.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { byAge, type OwnedInstance } from '../fleet/owned-instance.ts'
import { exoscaleAnnotations, instanceLabels } from '../identifiers.ts'
import { diskSizeGib } from '../nodeclass/settings.ts'
import type { BootRequests, LaunchPlan } from './boot-requests.ts'
import type { BootstrapToken } from './bootstrap-token.ts'
import type { Refusals } from './refusals.ts'

/** How long an instance whose creation was not confirmed may take to appear in lists. */
const settleMs = 30_000
const settlePollMs = 3000
/** Pauses between reads of an instance that an operation has named. */
const namedPausesMs = [0, 1000, 2000, 4000, 8000] as const
/** How long the instance created for a claim is remembered. */
const madeMs = 60 * 60_000

export interface InstanceCreationDependencies {
  readonly api: Pick<ExoscaleClient, 'createInstance' | 'getInstance' | 'waitForOperation'>
  readonly kube: Pick<KubeClient, 'patch'>
  readonly fleet: Pick<Fleet, 'isOf' | 'owned' | 'requestDeletion'>
  readonly boot: BootRequests
  readonly refusals: Refusals
  readonly clock: Clock
  readonly logger: Logger
}

interface Made {
  readonly id: string
  readonly type: string
  /** Whether it was read once. If so, a later absence means that it was deleted. */
  readonly wasSeen: boolean
  readonly untilMs: number
}

/** Creates at most one instance per claim. */
export class InstanceCreation {
  readonly #deps: InstanceCreationDependencies
  /** Instance ids from operations, by UID of the claim, as lists and reads may not show the instance yet. */
  readonly #made = new Map<string, Made>()

  constructor(deps: InstanceCreationDependencies) {
    this.#deps = deps
  }

  /** The oldest instance of a claim that is not being deleted; younger ones are accidents and are deleted. */
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

  /** The id of the instance that was created for a claim, even if lists do not show it. */
  madeFor({ metadata }: NodeClaim): string | undefined {
    return (
      this.#made.get(metadata.uid ?? '')?.id ?? ownValue(metadata.annotations, exoscaleAnnotations.instance)
    )
  }

  /**
   * The instance that was created for a claim but is not in lists; undefined if it does not exist any more.
   */
  async made(
    plan: Omit<LaunchPlan, 'entry'>,
    signal: AbortSignal | undefined,
  ): Promise<ExoscaleInstance | undefined> {
    const id = this.madeFor(plan.claim)
    if (id === undefined) return undefined
    const instance = await this.#named(id, plan, signal)
    const isEnding =
      instance?.state === 'error' || instance?.state === 'destroying' || instance?.state === 'destroyed'
    return isEnding ? undefined : instance
  }

  /** @throws ProviderError if no instance was created, or that is unknown. */
  async create(plan: LaunchPlan, signal: AbortSignal | undefined): Promise<ExoscaleInstance> {
    const { api, boot } = this.#deps
    const { request, token } = await boot.prepare(plan, signal)
    let operation: Operation
    try {
      operation = await api.createInstance(request(), signal)
    } catch (error) {
      if (!isOutcomeUnknown(error) && signal?.aborted !== true) {
        // The instance may exist although the request was refused, and then needs its token.
        const made = await this.find(plan.claim, signal).catch(() => undefined)
        if (made !== undefined) return this.settled(made, signal)
        return this.#refuse(error, plan, token, signal)
      }
      const found = await this.#confirmed(plan.claim, signal)
      if (found !== undefined) return this.settled(found, signal)
      // Without a response the instance may still appear, and then needs its token.
      if (error instanceof ExoscaleApiError) await boot.discard(token)
      throw launchError(error, launchReasons.instance)
    }
    return this.#finished(operation, plan, token, signal)
  }

  /** Waits for the creation to end; deletes what a failed creation left behind. */
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
    if (id !== undefined) {
      const made = await this.#named(id, plan, signal)
      if (made !== undefined) return made
    }
    const found = await this.#confirmed(plan.claim, signal)
    if (found !== undefined) return this.settled(found, signal)
    throw launchError(
      new Error(`operation ${operation.id} names no instance of this NodeClaim`),
      launchReasons.instance,
    )
  }

  /**
   * The instance that a successful operation named. If it cannot be read, that proves nothing, as reads may lag.
   * Undefined if it belongs to another claim.
   */
  async #named(
    id: string,
    plan: Omit<LaunchPlan, 'entry'> & Partial<Pick<LaunchPlan, 'entry'>>,
    signal: AbortSignal | undefined,
  ): Promise<ExoscaleInstance | undefined> {
    const { api, clock, fleet } = this.#deps
    const { claim, name, entry } = plan
    for (const [i, pauseMs] of namedPausesMs.entries()) {
      if (pauseMs > 0) await clock.sleep(pauseMs, signal)
      try {
        const instance = await api.getInstance(id, signal)
        // If somebody removed the labels, its name still identifies it.
        const owner = ownValue(instance.labels, instanceLabels.nodeClaim)
        const isItsOwn = fleet.isOf(claim, instance) || (owner === undefined && instance.name === name)
        const type = instance['instance-type']?.id
        if (isItsOwn && type !== undefined) this.#remember(claim, { id, type, wasSeen: true })
        return isItsOwn ? instance : undefined
      } catch (error) {
        signal?.throwIfAborted()
        if (this.#isGone(claim, error)) return undefined
      }
      if (entry !== undefined) this.#remember(claim, { id, type: entry.id, wasSeen: false })
      if (i === 0) await this.#note(claim, id, signal)
    }
    return this.#unseen(id, plan)
  }

  /**
   * Whether an instance that was read before is missing.
   * @throws errors that say nothing about the instance.
   */
  #isGone({ metadata }: NodeClaim, error: unknown): boolean {
    const isMissing = isApiError(error, 'not-found')
    if (!isMissing && !isOutcomeUnknown(error)) throw launchError(error, launchReasons.instance)
    if (!isMissing || this.#made.get(metadata.uid ?? '')?.wasSeen !== true) return false
    this.#made.delete(metadata.uid ?? '')
    return true
  }

  /**
   * The instance as it was requested.
   * @throws ProviderError if the request is no longer known.
   */
  #unseen(id: string, { claim, name, nodeClass }: Omit<LaunchPlan, 'entry'>): ExoscaleInstance {
    const type = this.#made.get(claim.metadata.uid ?? '')?.type
    if (type === undefined)
      throw new ProviderError(
        'create',
        `the cloud does not show instance ${id} of NodeClaim ${claim.metadata.name} yet`,
        {
          reason: launchReasons.instance,
          blames: { what: 'nothing' },
        },
      )
    const diskSize = diskSizeGib(nodeClass.spec)
    return { id, name, state: 'starting', 'disk-size': diskSize, 'instance-type': { id: type } }
  }

  #remember({ metadata }: NodeClaim, made: Omit<Made, 'untilMs'>): void {
    const nowMs = this.#deps.clock.now()
    for (const [uid, { untilMs }] of this.#made) if (untilMs <= nowMs) this.#made.delete(uid)
    this.#made.set(metadata.uid ?? '', { ...made, untilMs: nowMs + madeMs })
  }

  /** Stores the id on the claim, for other processes while the cloud does not show the instance. */
  async #note({ metadata }: NodeClaim, id: string, signal: AbortSignal | undefined): Promise<void> {
    const { kube, logger } = this.#deps
    const annotations = { [exoscaleAnnotations.instance]: id }
    const options = signal === undefined ? {} : { signal }
    try {
      await kube.patch(
        karpenterKinds.nodeClaim,
        { name: metadata.name },
        { metadata: { annotations } },
        options,
      )
    } catch (error) {
      signal?.throwIfAborted()
      logger.warn('the instance of a NodeClaim could not be noted', { instance: id, error })
    }
  }

  /** An instance that an operation names is only deleted if its labels name the claim. */
  async #deleteFailed(id: string, claim: NodeClaim, signal: AbortSignal | undefined): Promise<void> {
    const { api, fleet, logger } = this.#deps
    if (fleet.isOf(claim, await api.getInstance(id, signal))) await fleet.requestDeletion(id, signal)
    else logger.warn('a failed launch references an instance of another owner', { instance: id })
  }

  /** Deletes the token too, as no instance was created. */
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

  /** Looks for an instance whose creation was not confirmed, until lists certainly show it. */
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

  /**
   * Reads an instance that was found by its labels until it is no longer `starting`, for at most ten minutes.
   */
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
