/** Writes allocations and reservations to ResourceClaims. */
import { extendedResourceClaimAnnotation, kinds, type ResourceClaim } from '@tenon/api'
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
    return claims.every((each) => {
      if (each.mappings !== undefined) return this.#createExtended(facts, each)
      const { claim, allocation } = each
      return this.#write(claim, allocation !== undefined, ({ reservedFor = [], ...status }) => {
        if (allocation !== undefined && status.allocation !== undefined) return undefined
        const consumer = consumerOf(claim, facts.pod)
        const isReserved = reservedFor.some(({ uid }) => uid === consumer.uid)
        return {
          ...status,
          ...(allocation && { allocation: this.#withShares(allocation) }),
          reservedFor: isReserved ? reservedFor : [...reservedFor, consumer],
        }
      })
    })
  }

  /** Creates the claim for a pod's extended resources, and names it in the pod's status. */
  #createExtended(facts: PodFacts, { claim, allocation = {}, mappings = [] }: AllocatedClaim): boolean {
    const { name: generateName, ...metadata } = claim.metadata
    try {
      const created = this.#api.create(kinds.resourceClaim, {
        ...claim,
        metadata: { ...metadata, name: '', generateName, finalizers: [claimFinalizer] },
      })
      const status = {
        allocation: this.#withShares(allocation),
        reservedFor: [consumerOf(created, facts.pod)],
      }
      this.#index.setClaim(this.#api.updateStatus(kinds.resourceClaim, { ...created, status }))
      const extendedResourceClaimStatus = {
        resourceClaimName: created.metadata.name,
        requestMappings: mappings,
      }
      const patch = { status: { extendedResourceClaimStatus } }
      this.#api.patch(kinds.pod, facts.namespace, facts.name, patch, 'status')
      return true
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.#logger.debug('ResourceClaim for extended resources could not be created', {
        namespace: facts.namespace,
        pod: facts.name,
        error,
      })
      return false
    }
  }

  /** The pod finds new devices for its extended resources in its next cycle. */
  #deleteExtended(facts: PodFacts): void {
    const { namespace } = facts
    for (const claim of this.#api.list(kinds.resourceClaim)) {
      const { metadata } = claim
      const isOwn = (metadata.ownerReferences ?? []).some(({ uid }) => uid === facts.uid)
      if (!isOwn || !isExtended(claim)) continue
      try {
        this.#api.update(kinds.resourceClaim, { ...claim, metadata: { ...metadata, finalizers: [] } })
        this.#api.delete(kinds.resourceClaim, namespace, metadata.name)
        this.#index.removeClaim(claim)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        this.#logger.debug('ResourceClaim could not be deleted', { namespace, name: metadata.name, error })
      }
    }
  }

  /** The pod was not bound: removes its reservations. */
  release(facts: PodFacts, claims: readonly AllocatedClaim[]): void {
    for (const { claim, mappings } of claims)
      if (mappings !== undefined) this.#deleteExtended(facts)
      else
        this.#write(claim, false, ({ reservedFor = [], ...status }) => ({
          ...status,
          reservedFor: reservedFor.filter(({ uid }) => uid !== facts.uid),
        }))
  }

  /** Deallocates claims that no other pod uses. */
  deallocate(facts: PodFacts, claims: readonly ResourceClaim[]): void {
    for (const claim of claims) {
      if ((claim.status?.reservedFor ?? []).some(({ uid }) => uid !== facts.uid)) continue
      if (isExtended(claim)) {
        this.#deleteExtended(facts)
        continue
      }
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

const isExtended = ({ metadata }: ResourceClaim): boolean =>
  metadata.annotations?.[extendedResourceClaimAnnotation] === 'true'
