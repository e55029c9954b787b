/** Instance types as rows that are cheap to test: what they leave for pods, and what they cost. */
import { type InstanceType, labels, type Requirement, type Resources } from '@tenon/api'
import { requireReadableType } from '../eligibility/pool-shape.ts'
import { compatible, overlaps, parseRequirements, type Requirements } from '../requirements/requirements.ts'
import { allocatableGroups } from './allocatable.ts'

/** One way to buy a type. */
export interface CompiledOffering {
  /** The same object for all offerings that say the same. */
  readonly requirements: Requirements
  readonly capacityType: string | undefined
  readonly pricePerHour: number
  /** Instances left in its reservation, of reserved capacity only. */
  readonly reservationCapacity: number
}

/** Offerings of a type that leave the same amounts for pods. */
export interface OfferingGroup {
  readonly allocatable: Resources
  /** Available ones, cheapest first. */
  readonly offerings: readonly CompiledOffering[]
}

export interface CompiledType {
  readonly type: InstanceType
  readonly requirements: Requirements
  readonly groups: readonly OfferingGroup[]
}

/** Reads types. A catalogue sells most of them in the same few ways, which are read once. */
export class TypeReader {
  readonly #known = new Map<InstanceType, CompiledType | undefined>()
  readonly #terms = new Map<string, Terms>()

  /**
   * @returns undefined for a type that was found malformed before.
   * @throws RangeError or TypeError when the type is malformed, once for each type.
   */
  read(type: InstanceType): CompiledType | undefined {
    if (this.#known.has(type)) return this.#known.get(type)
    this.#known.set(type, undefined)
    requireReadableType(type)
    const compiled = {
      type,
      requirements: parseRequirements(type.requirements),
      groups: allocatableGroups(type).map(({ allocatable, offerings }) => ({
        allocatable,
        offerings: offerings
          .map((offering) => ({
            ...this.#termsOf(offering.requirements),
            pricePerHour: offering.pricePerHour,
            reservationCapacity: offering.reservationCapacity ?? 0,
          }))
          .toSorted((a, b) => a.pricePerHour - b.pricePerHour),
      })),
    }
    this.#known.set(type, compiled)
    return compiled
  }

  #termsOf(list: readonly Requirement[]): Terms {
    let key = ''
    for (const { key: label, operator, values } of list) key += `${label} ${operator} ${values?.join(',')};`
    let terms = this.#terms.get(key)
    if (terms === undefined) {
      const requirements = parseRequirements(list)
      const only = (label: string) => requirements.get(label)?.values.values().next().value
      terms = { requirements, capacityType: only(labels.capacityType) }
      this.#terms.set(key, terms)
    }
    return terms
  }
}

/** What an offering says beside its price. */
type Terms = Pick<CompiledOffering, 'requirements' | 'capacityType'>

/** Whether a type meets the requirements on the keys that both name. */
export function meets(type: CompiledType, requirements: Requirements): boolean {
  return overlaps(type.requirements, requirements)
}

/** The offerings that `requirements` allow, cheapest first. */
export function offeringsWithin(
  group: OfferingGroup,
  requirements: Requirements,
  wellKnown: ReadonlySet<string>,
): readonly CompiledOffering[] {
  return group.offerings.filter((offering) => compatible(requirements, offering.requirements, wellKnown))
}

/**
 * Keys whose minValues the types do not reach, with what was found (scheduling.md 4). All values of a
 * type count, also those that the claim itself does not allow.
 */
export function unmetMinValues(
  types: readonly CompiledType[],
  requirements: Requirements,
): ReadonlyMap<string, number> {
  const unmet = new Map<string, number>()
  if (types.length === 0) return unmet
  for (const [key, set] of requirements) {
    if (set.minValues === undefined) continue
    const found = new Set<string>()
    for (const type of types) {
      const offered = type.requirements.get(key)
      if (offered !== undefined && !offered.complement) for (const value of offered.values) found.add(value)
    }
    if (found.size < set.minValues) unmet.set(key, found.size)
  }
  return unmet
}
