import {
  type InstanceType,
  mostPricePerHour,
  type Offering,
  type PricePerHour,
  type Resources,
} from '@tenon/api'
import { parseRequirements, requirementList } from '../requirements/requirements.ts'

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

/**
 * A price per hour under an overlay.
 * @param change an unsigned number replaces the price, a signed number is added, and a signed percentage is a part of
 * the price to add. The result is between 0 and {@link mostPricePerHour}. An unknown price stays unknown, unless it is
 * replaced or reduced by 100 %.
 */
export function overlaidPrice(pricePerHour: PricePerHour, change: string): PricePerHour {
  if (!/^[+-]/.test(change)) return bounded(Number(change))
  const isPercentage = change.endsWith('%')
  const by = Number(isPercentage ? change.slice(0, -1) : change)
  if (isPercentage && by <= -100) return 0
  if (pricePerHour === undefined) return undefined
  return bounded(isPercentage ? pricePerHour * (1 + by / 100) : pricePerHour + by)
}

const bounded = (pricePerHour: number): number => Math.min(mostPricePerHour, Math.max(0, pricePerHour))
