/** What an instance type leaves for pods, and what a launch may cost (scheduling.md 13.1). */
import {
  capacityTypes,
  comparePrices,
  difference,
  type InstanceType,
  labels,
  type Offering,
  ownValue,
  type PricePerHour,
  type Resources,
  sum,
} from '@tenon/api'
import { compatible, parseRequirements, type Requirements } from '../../requirements/requirements.ts'

/** Offerings of one type that leave the same resources for pods. */
export interface AllocatableGroup {
  readonly allocatable: Resources
  readonly offerings: readonly Offering[]
}

/**
 * The available offerings of a type by what they leave for pods. The group without overrides comes
 * first, even if it is empty; the others follow in the order of their first offering.
 */
export function allocatableGroups(type: InstanceType): readonly AllocatableGroup[] {
  const groups = new Map<string, { allocatable: Resources; offerings: Offering[] }>()
  groups.set(overrideKey({}), { allocatable: allocatableOf(type), offerings: [] })
  for (const offering of type.offerings) {
    if (!offering.available) continue
    const key = overrideKey(offering)
    const group = groups.get(key)
    if (group !== undefined) group.offerings.push(offering)
    else groups.set(key, { allocatable: allocatableWith(type, offering), offerings: [offering] })
  }
  return [...groups.values()]
}

/** What a type leaves for pods, without overrides of offerings. */
export function allocatableOf(type: InstanceType): Resources {
  return allocatableWith(type, {})
}

type Overrides = Pick<Offering, 'capacityOverride' | 'overheadOverride'>

/** Equal for equal overrides in any order. */
function overrideKey({ capacityOverride, overheadOverride }: Overrides): string {
  const sorted = (amounts: Resources | undefined) =>
    Object.entries(amounts ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([sorted(capacityOverride), sorted(overheadOverride)])
}

/** Capacity minus overhead; huge pages are also subtracted from memory. */
function allocatableWith(type: InstanceType, overrides: Overrides): Resources {
  const { kubeReserved, systemReserved, evictionThreshold } = type.overhead
  const capacity = { ...type.capacity, ...overrides.capacityOverride }
  const overhead = {
    ...sum(sum(kubeReserved, systemReserved), evictionThreshold),
    ...overrides.overheadOverride,
  }
  const rest: Record<string, number> = { ...difference(capacity, overhead) }
  for (const name in capacity) {
    if (!name.startsWith('hugepages-') || rest['memory'] === undefined) continue
    rest['memory'] = Math.max(0, rest['memory'] - (ownValue(capacity, name) as number))
  }
  return rest
}

const launchOrder = [capacityTypes.reserved, capacityTypes.spot, capacityTypes.onDemand]

/**
 * The highest price per hour of a launch under `requirements`: the maximum over the available offerings of the capacity
 * type that is tried first. Undefined if there is none, or one of their prices is unknown.
 */
export function worstLaunchPrice(
  type: InstanceType,
  requirements: Requirements,
  wellKnown: ReadonlySet<string>,
): PricePerHour {
  const open = type.offerings.flatMap((offering) => {
    if (!offering.available) return []
    const offered = parseRequirements(offering.requirements)
    if (!compatible(requirements, offered, wellKnown)) return []
    return [{ capacityTypes: offered.get(labels.capacityType)?.values, price: offering.pricePerHour }]
  })
  for (const capacityType of launchOrder) {
    const prices = open.flatMap((each) => (each.capacityTypes?.has(capacityType) ? [each.price] : []))
    if (prices.length > 0) return highestPrice(prices)
  }
  return undefined
}

/** The highest of the prices; undefined if one is unknown. */
export function highestPrice(prices: readonly PricePerHour[]): PricePerHour {
  return prices.toSorted(comparePrices).at(-1)
}
