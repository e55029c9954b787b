/** Instance types made ready for repeated checks, and the filter over them (scheduling.md 5). */
import { type InstanceType, labels, type Resources } from '@tenon/api'
import type { FilterOutcome } from '../reasons/reasons.ts'
import {
  firstConflict,
  incompatibility,
  parseRequirements,
  type Requirements,
} from '../requirements/requirements.ts'
import { difference, fits, sum } from './pod-resources.ts'

interface CompiledOffering {
  readonly requirements: Requirements
  readonly capacityType: string | undefined
  readonly pricePerHour: number
}

/** An instance type with its allocatable and its available offerings, cheapest first. */
export interface CompiledType {
  readonly type: InstanceType
  readonly requirements: Requirements
  readonly allocatable: Resources
  readonly offerings: readonly CompiledOffering[]
}

/** What a type leaves for pods: capacity less overhead and huge pages. */
export function allocatableOf(type: InstanceType): Resources {
  const { kubeReserved, systemReserved, evictionThreshold } = type.overhead
  const rest: Record<string, number> = difference(
    type.capacity,
    sum(sum(kubeReserved, systemReserved), evictionThreshold),
  )
  for (const [name, amount] of Object.entries(type.capacity)) {
    if (name.startsWith('hugepages-')) rest['memory'] = Math.max(0, (rest['memory'] ?? 0) - amount)
  }
  return rest
}

export function compileType(type: InstanceType): CompiledType {
  const offerings = type.offerings
    .filter((offering) => offering.available)
    .map((offering) => {
      const requirements = parseRequirements(offering.requirements)
      const [capacityType] = requirements.get(labels.capacityType)?.values ?? []
      return { requirements, capacityType, pricePerHour: offering.pricePerHour }
    })
    .toSorted((a, b) => a.pricePerHour - b.pricePerHour)
  return {
    type,
    requirements: parseRequirements(type.requirements),
    allocatable: allocatableOf(type),
    offerings,
  }
}

export interface FilterResult {
  readonly remaining: readonly CompiledType[]
  readonly outcome: FilterOutcome
}

/** Keeps the types that meet `requirements`, hold `requests` beside their daemons, and can be bought. */
export function filterTypes(
  types: readonly CompiledType[],
  requirements: Requirements,
  requests: Resources,
  overheadOf: (type: CompiledType) => Resources,
  wellKnown: ReadonlySet<string>,
): FilterResult {
  const met = { r: false, f: false, o: false, rf: false, ro: false, fo: false }
  const remaining = types.filter((type) => {
    const compatible = firstConflict(type.requirements, requirements) === undefined
    const offered = hasOffering(type, requirements, wellKnown)
    const fitting = offered && fits(sum(requests, overheadOf(type)), type.allocatable)
    met.r ||= compatible
    met.f ||= fitting
    met.o ||= offered
    met.rf ||= compatible && fitting
    met.ro ||= compatible && offered
    met.fo ||= fitting
    return compatible && fitting
  })
  return {
    remaining,
    outcome: {
      requirementsMet: met.r,
      resourcesMet: met.f,
      offeringMet: met.o,
      requirementsAndResources: met.rf,
      requirementsAndOffering: met.ro,
      resourcesAndOffering: met.fo,
    },
  }
}

function hasOffering(
  type: CompiledType,
  requirements: Requirements,
  wellKnown: ReadonlySet<string>,
): boolean {
  return type.offerings.some((o) => incompatibility(requirements, o.requirements, wellKnown) === undefined)
}

/** Lowest price of an available offering that `requirements` allow; Infinity when there is none. */
export function cheapestPrice(
  type: CompiledType,
  requirements: Requirements,
  wellKnown: ReadonlySet<string>,
): number {
  const offering = type.offerings.find(
    (o) => incompatibility(requirements, o.requirements, wellKnown) === undefined,
  )
  return offering?.pricePerHour ?? Number.POSITIVE_INFINITY
}

/** Capacity types in which any of `types` can be bought under `requirements`, sorted. */
export function offeredCapacityTypes(
  types: readonly CompiledType[],
  requirements: Requirements,
  wellKnown: ReadonlySet<string>,
): readonly string[] {
  const found = new Set<string>()
  for (const type of types) {
    for (const offering of type.offerings) {
      if (offering.capacityType === undefined || found.has(offering.capacityType)) continue
      if (incompatibility(requirements, offering.requirements, wellKnown) === undefined)
        found.add(offering.capacityType)
    }
  }
  return [...found].toSorted()
}

/** Keys whose minValues the types do not reach, with what was found (scheduling.md 4). */
export function unmetMinValues(
  types: readonly CompiledType[],
  requirements: Requirements,
): ReadonlyMap<string, number> {
  const unmet = new Map<string, number>()
  for (const [key, set] of requirements) {
    if (set.minValues === undefined) continue
    const found = new Set<string>()
    for (const type of types) {
      for (const value of type.requirements.get(key)?.values ?? []) {
        if (set.values.has(value) !== set.complement) found.add(value)
      }
    }
    if (found.size < set.minValues) unmet.set(key, found.size)
  }
  return unmet
}
