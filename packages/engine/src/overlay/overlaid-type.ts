import type { InstanceType, Offering, Resources } from '@tenon/api'
import { parseRequirements, requirementList } from '../requirements/requirements.ts'
import { overlaidPrice } from './price.ts'

/** What overlays change of one instance type for the NodePools it is offered to. */
export interface TypeOverlay {
  /** Resources in place of the type's own, or beside them. */
  readonly capacity: Resources
  /** By {@link offeringKey}: a price, or how to change it, as {@link overlaidPrice} takes it. */
  readonly priceByOffering: ReadonlyMap<string, string>
}

/** Equal for offerings of the same requirements, in whatever order they are stated. */
export function offeringKey({ requirements }: Pick<Offering, 'requirements'>): string {
  return JSON.stringify(requirementList(parseRequirements(requirements)))
}

/**
 * The type with its overlay; a fresh object that shares what is not changed. What single offerings
 * override stays theirs.
 */
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
