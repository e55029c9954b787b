/** Which instance type a claim gets. */
import {
  admitsValue,
  comparePrices,
  type InstanceType,
  labels,
  type NodeClaim,
  parseResources,
  type Requirement,
  ownValue,
} from '@tenon/api'

/** Types the claim admits, cheapest first, ties by name; unpriced ones last. */
export function suitableTypes(claim: NodeClaim, types: readonly InstanceType[]): InstanceType[] {
  const requests = parseResources(claim.spec.resources?.requests)
  return types
    .filter((type) => claim.spec.requirements.every((requirement) => admits(requirement, type)))
    .filter((type) => holdsAll(type, requests))
    .sort((a, b) => {
      const byPrice = comparePrices(a.offerings[0]?.pricePerHour, b.offerings[0]?.pricePerHour)
      return byPrice || (a.name < b.name ? -1 : 1)
    })
}

/** The types with the offers that decisions saw, where they are stricter or priced otherwise. */
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

/** What in the claim no machine of this cloud can satisfy, or undefined. Needs no call. */
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

/** Keys a type says nothing about are labels of the pool and do not narrow the choice. */
function admits(requirement: Requirement, type: InstanceType): boolean {
  const own = type.requirements.find((candidate) => candidate.key === requirement.key)
  if (own === undefined) return true
  if (own.operator === 'DoesNotExist') {
    return requirement.operator === 'DoesNotExist' || requirement.operator === 'NotIn'
  }
  if (own.operator === 'Exists') return requirement.operator !== 'DoesNotExist'
  return (own.values ?? []).some((value) => admitsValue(requirement, value))
}

/** Resources the type does not know (added by an overlay, say) are not judged here. */
function holdsAll(type: InstanceType, requests: Readonly<Record<string, number>>): boolean {
  const { kubeReserved, systemReserved, evictionThreshold } = type.overhead
  return Object.entries(requests).every(([name, amount]) => {
    const capacity = ownValue(type.capacity, name)
    if (capacity === undefined) return !name.startsWith('nvidia.com/') || amount === 0
    const reserved =
      (ownValue(kubeReserved, name) ?? 0) +
      (ownValue(systemReserved, name) ?? 0) +
      (ownValue(evictionThreshold, name) ?? 0)
    return amount <= capacity - reserved
  })
}
