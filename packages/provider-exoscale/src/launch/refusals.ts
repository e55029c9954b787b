/** Why the cloud rejected an instance, and what that means for later launches. */
import { capacityTypes } from '@tenon/api'
import { isProviderError, type OfferingRef, ProviderError } from '@tenon/provider'
import type { ExoscaleClient } from '../api/client.ts'
import {
  ExoscaleApiError,
  ExoscaleOperationError,
  ExoscaleTransportError,
  isApiError,
} from '../api/errors.ts'
import type { CatalogueEntry } from '../catalogue/catalogue.ts'
import type { UnavailableOfferings } from '../catalogue/unavailable-offerings.ts'
import { launchError, launchReasons } from '../errors.ts'
import type { ExoscaleNodeClass } from '../nodeclass/types.ts'
import type { LaunchPlan } from './boot-requests.ts'
import type { FullGroups } from './full-groups.ts'

/** Converts a refused or failed launch to the contract's error, and remembers shortages. */
export class Refusals {
  readonly #api: Pick<ExoscaleClient, 'getQuota'>
  readonly #groups: Pick<FullGroups, 'check'>
  readonly #unavailable: UnavailableOfferings
  readonly #zone: string

  constructor(deps: {
    readonly api: Pick<ExoscaleClient, 'getQuota'>
    readonly groups: Pick<FullGroups, 'check'>
    readonly unavailable: UnavailableOfferings
    readonly zone: string
  }) {
    this.#api = deps.api
    this.#groups = deps.groups
    this.#unavailable = deps.unavailable
    this.#zone = deps.zone
  }

  async explain(
    error: unknown,
    { entry, nodeClass }: Pick<LaunchPlan, 'entry' | 'nodeClass'>,
    signal?: AbortSignal,
  ): Promise<ProviderError> {
    if (error instanceof ExoscaleOperationError && error.reason === 'unavailable') {
      this.#unavailable.mark({ kind: 'type', typeName: entry.name })
      return shortage(`${entry.name} is not available in this zone now`, error, [this.#offeringOf(entry)])
    }
    if (!mayBeQuota(error)) return launchError(error, launchReasons.instance)
    const full = await this.#fullGroup(nodeClass, signal)
    if (full !== undefined) return full
    if (await this.#isExhausted('instance', signal)) {
      this.#unavailable.mark({ kind: 'instances' })
      return shortage('the quota of instances is used up; ask Exoscale to raise it', error)
    }
    if (entry.gpus > 0 && (await this.#isExhausted(entry.family, signal))) {
      this.#unavailable.mark({ kind: 'family', family: entry.family })
      return shortage(`the quota of ${entry.family} is used up; ask Exoscale to raise it`, error, [
        this.#offeringOf(entry),
      ])
    }
    return launchError(error, launchReasons.instance)
  }

  #offeringOf({ name }: CatalogueEntry): OfferingRef {
    return { instanceType: name, zone: this.#zone, capacityType: capacityTypes.onDemand }
  }

  /** Another launch may have taken the last place since the group was checked. */
  async #fullGroup(
    nodeClass: ExoscaleNodeClass,
    signal: AbortSignal | undefined,
  ): Promise<ProviderError | undefined> {
    try {
      await this.#groups.check(nodeClass, signal)
      return undefined
    } catch (error) {
      if (isProviderError(error)) return error
      if (error instanceof ExoscaleApiError || error instanceof ExoscaleTransportError) return undefined
      throw error
    }
  }

  async #isExhausted(entity: string, signal: AbortSignal | undefined): Promise<boolean> {
    try {
      const { usage = 0, limit = -1 } = await this.#api.getQuota(entity, signal)
      return limit >= 0 && usage >= limit
    } catch (error) {
      if (error instanceof ExoscaleApiError || error instanceof ExoscaleTransportError) return false
      throw error
    }
  }
}

/** The API does not document how it refuses for a quota: any refusal of the request may be one. */
function mayBeQuota(error: unknown): boolean {
  if (error instanceof ExoscaleOperationError) return error.reason === 'forbidden'
  return isApiError(error, 'bad-request', 'payment-required', 'forbidden', 'conflict', 'unprocessable')
}

function shortage(message: string, cause: unknown, offerings: readonly OfferingRef[] = []): ProviderError {
  const said = cause instanceof Error ? ` (${cause.message})` : ''
  return new ProviderError('insufficientCapacity', `${message}${said}`, { cause, offerings })
}
