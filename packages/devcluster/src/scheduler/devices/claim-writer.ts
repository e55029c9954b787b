/** Writes allocations and reservations to ResourceClaims. */
import { kinds, type ResourceClaim } from '@tenon/api'
import { type Logger, type Random, uuid } from '@tenon/runtime'
import {
  type AllocatedClaim,
  type ClaimAllocation,
  consumerOf,
  type DeviceIndex,
  type PodFacts,
} from '@tenon/filters'
import { ApiError, type LocalApi } from '../../contract.ts'

/** Keeps an allocated claim until it is deallocated. */
const claimFinalizer = 'resource.kubernetes.io/delete-protection'

type ClaimStatus = NonNullable<ResourceClaim['status']>

export class ClaimWriter {
  readonly #api: LocalApi
  readonly #logger: Logger
  readonly #random: Random
  readonly #index: DeviceIndex

  constructor(
    capabilities: { readonly api: LocalApi; readonly logger: Logger; readonly random: Random },
    index: DeviceIndex,
  ) {
    this.#api = capabilities.api
    this.#logger = capabilities.logger
    this.#random = capabilities.random
    this.#index = index
  }

  /** Allocates claims and reserves them for the pod; returns false if a write is refused. */
  reserve(facts: PodFacts, claims: readonly AllocatedClaim[]): boolean {
    return claims.every(({ claim, allocation }) =>
      this.#write(claim, allocation !== undefined, ({ reservedFor = [], ...status }) => {
        if (allocation !== undefined && status.allocation !== undefined) return undefined
        const consumer = consumerOf(claim, facts.pod)
        const isReserved = reservedFor.some(({ uid }) => uid === consumer.uid)
        return {
          ...status,
          ...(allocation && { allocation: this.#withShares(allocation) }),
          reservedFor: isReserved ? reservedFor : [...reservedFor, consumer],
        }
      }),
    )
  }

  /** The pod was not bound: removes its reservations. */
  release(facts: PodFacts, claims: readonly AllocatedClaim[]): void {
    for (const { claim } of claims)
      this.#write(claim, false, ({ reservedFor = [], ...status }) => ({
        ...status,
        reservedFor: reservedFor.filter(({ uid }) => uid !== facts.uid),
      }))
  }

  /** Deallocates claims that no other pod uses. */
  deallocate(facts: PodFacts, claims: readonly ResourceClaim[]): void {
    for (const claim of claims) {
      if ((claim.status?.reservedFor ?? []).some(({ uid }) => uid !== facts.uid)) continue
      this.#write(claim, false, ({ allocation, reservedFor = [], ...status }) =>
        allocation === undefined || reservedFor.some(({ uid }) => uid !== facts.uid) ? undefined : status,
      )
    }
  }

  /** Several claims may share a device; each share has its own ID. */
  #withShares({ devices, ...allocation }: ClaimAllocation): ClaimAllocation {
    const results = devices?.results?.map((result) =>
      result.consumedCapacity === undefined ? result : { ...result, shareID: uuid(this.#random) },
    )
    return { ...allocation, devices: { ...devices, ...(results && { results }) } }
  }

  /** @param change returns the new status; undefined if the claim has changed. */
  #write(
    claim: ResourceClaim,
    isProtected: boolean,
    change: (status: ClaimStatus) => ClaimStatus | undefined,
  ): boolean {
    const { namespace, name, uid } = claim.metadata
    try {
      let latest = this.#api.get(kinds.resourceClaim, namespace, name)
      if (latest?.metadata.uid !== uid || latest === undefined) return false
      const status = change(latest.status ?? {})
      if (status === undefined) return false
      const finalizers = latest.metadata.finalizers ?? []
      if (isProtected && !finalizers.includes(claimFinalizer)) {
        const metadata = { ...latest.metadata, finalizers: [...finalizers, claimFinalizer] }
        latest = this.#api.update(kinds.resourceClaim, { ...latest, metadata })
      }
      this.#index.setClaim(this.#api.updateStatus(kinds.resourceClaim, { ...latest, status }))
      return true
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.#logger.debug('ResourceClaim could not be written', { namespace, name, error })
      return false
    }
  }
}
