/** The instances of this cluster: reading, describing and deleting them. */
import { capacityTypes, formatResources, labels, type NodeClaim } from '@tenon/api'
import type { ProviderInstance } from '@tenon/provider'
import type { ExoscaleClient } from '../api/client.ts'
import { ExoscaleOperationError, isApiError } from '../api/errors.ts'
import type { ExoscaleInstance, Operation } from '../api/types.ts'
import type { Catalogue, CatalogueEntry, CatalogueView } from '../catalogue/catalogue.ts'
import { capacityOf, typeLabels } from '../catalogue/instance-types.ts'
import { providerIdOf } from '../identifiers.ts'
import { type OwnedInstance, ownedInstance } from './owned-instance.ts'

export interface FleetDependencies {
  readonly api: ExoscaleClient
  readonly catalogue: Catalogue
  readonly zone: string
  readonly clusterId: string
}

/** The progress of a deletion. */
export type DeletionProgress = 'accepted' | 'gone'

/** Reads and deletes instances; creation is in `launch/`. */
export class Fleet {
  readonly #deps: FleetDependencies
  /** In GiB by instance id. They do not change, but are missing from lists. */
  #diskSizes = new Map<string, number>()
  readonly #deletions = new Map<string, Operation>()

  constructor(deps: FleetDependencies) {
    this.#deps = deps
  }

  /** All instances of this cluster, including those being deleted. */
  async owned(signal?: AbortSignal): Promise<readonly OwnedInstance[]> {
    const instances = await this.#deps.api.listInstances(signal)
    return instances
      .map((instance) => ownedInstance(instance, this.#deps.clusterId))
      .filter((owned) => owned !== undefined)
  }

  /**
   * Instances as the contract describes them, without those that disappear meanwhile or have an unknown type.
   */
  async list(signal?: AbortSignal): Promise<readonly ProviderInstance[]> {
    const instances = await this.owned(signal)
    const view = await this.#deps.catalogue.view()
    const known = new Map<string, number>()
    const described: ProviderInstance[] = []
    for (const owned of instances) {
      const diskSize = await this.#diskSizeOf(owned, signal)
      if (diskSize === undefined) continue
      known.set(owned.id, diskSize)
      described.push(this.#described(owned.instance, owned, diskSize, view))
    }
    this.#diskSizes = known
    const present = new Set(instances.map((owned) => owned.id))
    for (const id of this.#deletions.keys()) if (!present.has(id)) this.#deletions.delete(id)
    return described
  }

  /** Whether the instance belongs to the claim, which only its labels prove. */
  isOf(claim: NodeClaim, instance: ExoscaleInstance): boolean {
    return ownedInstance(instance, this.#deps.clusterId)?.nodeClaimName === claim.metadata.name
  }

  async describe(instance: ExoscaleInstance): Promise<ProviderInstance> {
    const { catalogue, clusterId } = this.#deps
    const owned = ownedInstance(instance, clusterId)
    return this.#described(instance, owned, instance['disk-size'] ?? 0, await catalogue.view())
  }

  #described(
    instance: ExoscaleInstance,
    owned: OwnedInstance | undefined,
    diskSize: number,
    view: CatalogueView,
  ): ProviderInstance {
    const { zone } = this.#deps
    const entry = view.byId.get(instance['instance-type']?.id ?? '')
    const capacity = entry === undefined ? {} : formatResources(capacityOf(entry, diskSize))
    const imageID = instance.template?.id
    return {
      providerID: providerIdOf(instance.id),
      ...(imageID !== undefined && { imageID }),
      labels: entry === undefined ? zoneLabels(zone) : typeLabels(entry, zone),
      capacity,
      allocatable: capacity,
      ...(owned?.nodeClaimName !== undefined && { nodeClaimName: owned.nodeClaimName }),
      ...(owned?.createdAtMs !== undefined && { createdAtMs: owned.createdAtMs }),
      deleting: owned?.isDeleting ?? false,
    }
  }

  /** The catalogue entry of an instance, if its type is still known. */
  async entryOf(instance: ExoscaleInstance): Promise<CatalogueEntry | undefined> {
    return (await this.#deps.catalogue.view()).byId.get(instance['instance-type']?.id ?? '')
  }

  /** Starts a deletion without waiting for its end. */
  async requestDeletion(id: string, signal?: AbortSignal): Promise<DeletionProgress> {
    try {
      this.#deletions.set(id, await this.#deps.api.deleteInstance(id, signal))
      return 'accepted'
    } catch (error) {
      if (!isApiError(error, 'not-found')) throw error
      this.#deletions.delete(id)
      return 'gone'
    }
  }

  /**
   * Starts a deletion or checks its progress.
   * @throws ExoscaleOperationError if it failed; the next call starts another.
   */
  async delete(id: string, signal?: AbortSignal): Promise<DeletionProgress> {
    const started = this.#deletions.get(id)
    if (started === undefined) return this.requestDeletion(id, signal)
    const operation =
      started.state === 'pending' ? await this.#deps.api.getOperation(started.id, signal) : started
    if (operation.state === 'pending') return 'accepted'
    this.#deletions.delete(id)
    if (operation.state === 'success') return this.requestDeletion(id, signal)
    const { reason = operation.state, message = '', reference } = operation
    throw new ExoscaleOperationError(operation.id, reason, message, reference?.id)
  }

  async #diskSizeOf(owned: OwnedInstance, signal: AbortSignal | undefined): Promise<number | undefined> {
    const known = this.#diskSizes.get(owned.id)
    if (known !== undefined) return known
    if (owned.isDeleting) return 0
    try {
      return (await this.#deps.api.getInstance(owned.id, signal))['disk-size'] ?? 0
    } catch (error) {
      if (isApiError(error, 'not-found')) return undefined
      throw error
    }
  }
}

function zoneLabels(zone: string): Readonly<Record<string, string>> {
  return {
    [labels.region]: zone,
    [labels.zone]: zone,
    [labels.arch]: 'amd64',
    [labels.os]: 'linux',
    [labels.capacityType]: capacityTypes.onDemand,
  }
}
