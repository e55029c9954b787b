/** The instances of this cluster: reading, describing and deleting them. */
import { capacityTypes, formatResources, labels } from '@tenon/api'
import type { ProviderInstance } from '@tenon/provider'
import type { ExoscaleClient } from '../api/client.ts'
import { ExoscaleOperationError, isApiError } from '../api/errors.ts'
import type { ExoscaleInstance, Operation } from '../api/types.ts'
import type { Catalogue, CatalogueEntry, CatalogueView } from '../catalogue/catalogue.ts'
import { capacityOf, typeLabels } from '../catalogue/instance-types.ts'
import { providerIdOf } from '../identifiers.ts'
import { type Machine, ownedMachine } from './machine.ts'

export interface FleetDependencies {
  readonly api: ExoscaleClient
  readonly catalogue: Catalogue
  readonly zone: string
  readonly clusterId: string
}

/** How far a deletion is. */
export type DeletionProgress = 'accepted' | 'gone'

/** Reads and deletes; creating is in `launch/`. */
export class Fleet {
  readonly #deps: FleetDependencies
  /** GiB by instance id: fixed at creation and missing from lists. */
  #diskSizes = new Map<string, number>()
  readonly #deletions = new Map<string, Operation>()

  constructor(deps: FleetDependencies) {
    this.#deps = deps
  }

  /** Every machine of this cluster, those being deleted included. */
  async owned(signal?: AbortSignal): Promise<readonly Machine[]> {
    const instances = await this.#deps.api.listInstances(signal)
    return instances
      .map((instance) => ownedMachine(instance, this.#deps.clusterId))
      .filter((machine) => machine !== undefined)
  }

  /** Described machines; one that vanishes meanwhile, or is of an unknown type, spoils nothing. */
  async list(signal?: AbortSignal): Promise<readonly ProviderInstance[]> {
    const machines = await this.owned(signal)
    const view = await this.#deps.catalogue.view()
    const known = new Map<string, number>()
    const described: ProviderInstance[] = []
    for (const machine of machines) {
      const diskSize = await this.#diskSizeOf(machine, signal)
      if (diskSize === undefined) continue
      known.set(machine.id, diskSize)
      described.push(this.#described(machine.instance, machine, diskSize, view))
    }
    this.#diskSizes = known
    const present = new Set(machines.map((machine) => machine.id))
    for (const id of this.#deletions.keys()) if (!present.has(id)) this.#deletions.delete(id)
    return described
  }

  async describe(instance: ExoscaleInstance): Promise<ProviderInstance> {
    const { catalogue, clusterId } = this.#deps
    const machine = ownedMachine(instance, clusterId)
    return this.#described(instance, machine, instance['disk-size'] ?? 0, await catalogue.view())
  }

  #described(
    instance: ExoscaleInstance,
    machine: Machine | undefined,
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
      ...(machine?.nodeClaimName !== undefined && { nodeClaimName: machine.nodeClaimName }),
      ...(machine?.createdAtMs !== undefined && { createdAtMs: machine.createdAtMs }),
      deleting: machine?.isDeleting ?? false,
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
   * Starts a deletion or looks how it goes on.
   * @throws ExoscaleOperationError when the last one failed; the next call starts another.
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

  async #diskSizeOf(machine: Machine, signal: AbortSignal | undefined): Promise<number | undefined> {
    const known = this.#diskSizes.get(machine.id)
    if (known !== undefined) return known
    if (machine.isDeleting) return 0
    try {
      return (await this.#deps.api.getInstance(machine.id, signal))['disk-size'] ?? 0
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
