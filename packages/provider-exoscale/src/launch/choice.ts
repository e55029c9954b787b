/** Chooses the instance type of a claim. */
import { admitsValue, comparePrices, type InstanceType, labels, type NodeClaim, ownValue } from '@tenon/api'
import { isSuitable } from '@tenon/provider'

/** Types that meet the claim, cheapest first, ties by name, unknown prices last. */
export function suitableTypes(claim: NodeClaim, types: readonly InstanceType[]): InstanceType[] {
  return types
    .filter((type) => isSuitable(claim, type))
    .sort((a, b) => {
      const byPrice = comparePrices(a.offerings[0]?.pricePerHour, b.offerings[0]?.pricePerHour)
      return byPrice || (a.name < b.name ? -1 : 1)
    })
}

/** The types with the given prices and availability; requirements may only become stricter. */
export function withOffers(
  types: readonly InstanceType[],
  offered: readonly InstanceType[] = [],
): readonly InstanceType[] {
  const byName = new Map(offered.map((type) => [type.name, type.offerings[0]]))
  return types.map((type) => {
    const offer = byName.get(type.name)
    if (offer === undefined) return type
    const { pricePerHour } = offer
    const offerings = type.offerings.map((own) => ({
      ...own,
      pricePerHour,
      available: own.available && offer.available,
    }))
    return { ...type, offerings }
  })
}

/**
 * A requirement of the claim that no instance of this cloud can meet; undefined if there is none. Needs no API call.
 */
export function impossibleRequirement(claim: NodeClaim): string | undefined {
  const fixed: Readonly<Record<string, string>> = { [labels.os]: 'linux', [labels.arch]: 'amd64' }
  for (const requirement of claim.spec.requirements) {
    const value = ownValue(fixed, requirement.key)
    if (value !== undefined && !admitsValue(requirement, value)) {
      return `requirement ${requirement.key} excludes ${value}, the only value on Exoscale`
    }
  }
  return undefined
}
