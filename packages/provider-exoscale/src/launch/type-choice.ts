/** Chooses the instance type of a NodeClaim. */
import type { InstanceType, NodeClaim } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import type { Catalogue, CatalogueEntry } from '../catalogue/catalogue.ts'
import { instanceTypesOf } from '../catalogue/instance-types.ts'
import type { UnavailableOfferings } from '../catalogue/unavailable-offerings.ts'
import { launchError, launchReasons } from '../errors.ts'
import { diskSizeGib, kubeletSettings } from '../nodeclass/settings.ts'
import type { ExoscaleNodeClass } from '../nodeclass/types.ts'
import { impossibleRequirement, suitableTypes, withOffers } from './choice.ts'

export interface TypeChoiceDependencies {
  readonly catalogue: Pick<Catalogue, 'view'>
  readonly unavailable: Pick<UnavailableOfferings, 'why'>
  readonly zone: string
}

/** Chooses among the types of the zone for a claim. */
export class TypeChoice {
  readonly #deps: TypeChoiceDependencies

  constructor(deps: TypeChoiceDependencies) {
    this.#deps = deps
  }

  /**
   * The cheapest available type that meets the claim.
   * @param offered the types as decisions see them, with prices and availability.
   * @throws ProviderError if there is none.
   */
  async choose(
    claim: NodeClaim,
    nodeClass: ExoscaleNodeClass,
    offered: readonly InstanceType[] | undefined,
  ): Promise<CatalogueEntry> {
    const impossible = impossibleRequirement(claim)
    if (impossible !== undefined) {
      throw new ProviderError('create', `NodeClaim ${claim.metadata.name}: ${impossible}`, {
        reason: launchReasons.instance,
      })
    }
    const { catalogue, unavailable, zone } = this.#deps
    const view = await catalogue.view().catch((error: unknown) => {
      throw launchError(error, launchReasons.instance)
    })
    const { kubeReserved, systemReserved } = kubeletSettings(nodeClass.spec)
    const types = instanceTypesOf(view.entries, {
      zone,
      diskSizeGib: diskSizeGib(nodeClass.spec),
      kubeReserved,
      systemReserved,
      unavailability: (entry) => unavailable.why(entry.name, entry.family),
      // Devices were considered when the claim was created.
      hasGpuDriver: false,
    })
    return chosenEntry(claim, withOffers(types, offered), view.byName)
  }
}

function chosenEntry(
  claim: NodeClaim,
  types: readonly InstanceType[],
  byName: ReadonlyMap<string, CatalogueEntry>,
): CatalogueEntry {
  const suitable = suitableTypes(claim, types)
  const available = suitable.find((type) => type.offerings.some((offering) => offering.available))
  const entry = available === undefined ? undefined : byName.get(available.name)
  if (entry !== undefined) return entry
  if (suitable.length > 0) {
    const names = suitable.map((type) => type.name).join(', ')
    throw new ProviderError('insufficientCapacity', `none of ${names} is available now`)
  }
  throw new ProviderError(
    'create',
    `NodeClaim ${claim.metadata.name}: no instance type of this zone satisfies its requirements, requests and disk size`,
    { reason: launchReasons.instance },
  )
}
