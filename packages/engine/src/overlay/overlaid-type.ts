import type { InstanceType, Offering, Resources } from '@tenon/api'
import { parseRequirements, requirementList } from '../requirements/requirements.ts'
import { overlaidPrice } from './price.ts'

/** What overlays change of an instance type for NodePools. */
export interface TypeOverlay {
  /** Resources that replace those of the type, or are added to them. */
  readonly capacity: Resources
  /** By {@link offeringKey}: the `change` of {@link overlaidPrice}. */
  readonly priceByOffering: ReadonlyMap<string, string>
}

/** Equal for offerings with equal requirements in any order. */
export function offeringKey({ requirements }: Pick<Offering, 'requirements'>): string {
  return JSON.stringify(requirementList(parseRequirements(requirements)))
}

/** A copy of the type with its overlay; unchanged parts are shared. Overrides of offerings stay. */
export function overlaidType(type: InstanceType, { capacity, priceByOffering }: TypeOverlay): InstanceType {
  const isPriced = (offering: Offering) => priceByOffering.has(offeringKey(offering))
  const hasPrice = priceByOffering.size > 0 && type.offerings.some(isPriced)
  const hasCapacity = Object.keys(capacity).length > 0
  return {
    ...type,
    ...(hasPrice && {
      offerings: type.offerings.map((offering) => overlaidOffering(offering, priceByOffering)),
    }),
    ...(hasCapacity && { capacity: { ...type.capacity, ...capacity } }),
    overlaid: { price: hasPrice, capacity: hasCapacity },
  }
}

function overlaidOffering(offering: Offering, priceByOffering: ReadonlyMap<string, string>): Offering {
  const change = priceByOffering.get(offeringKey(offering))
  if (change === undefined) return offering
  return { ...offering, pricePerHour: overlaidPrice(offering.pricePerHour, change) }
}
