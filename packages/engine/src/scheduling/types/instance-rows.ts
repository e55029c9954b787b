/** Instance types compiled for fast checks: room, requirements and prices. */
import {
  comparePrices,
  type InstanceType,
  labels,
  type Offering,
  type PricePerHour,
  type Requirement,
  type Resources,
} from '@tenon/api'
import { requireReadableType } from '../../eligibility/input-shapes.ts'
import {
  compatible,
  overlaps,
  parseRequirements,
  type Requirements,
} from '../../requirements/requirements.ts'
import { VectorCache } from '../pods/resource-space.ts'
import { allocatableGroups } from './allocatable.ts'

/** An offering. */
export interface CompiledOffering {
  /** One object for equal requirements. */
  readonly requirements: Requirements
  readonly capacityType: string | undefined
  readonly pricePerHour: PricePerHour
  /** Instances left in its reservation; only for reserved capacity. */
  readonly reservationCapacity: number
}

/** Offerings of a type that leave the same amounts for pods. */
export interface OfferingGroup {
  readonly allocatable: Resources
  /** Available ones, cheapest first, unknown prices last. */
  readonly offerings: readonly CompiledOffering[]
  readonly sale: Sale
}

/** Everything about offerings but their prices, in their order; one object for equal groups. */
export interface Sale {
  readonly terms: readonly Terms[]
}

export interface CompiledType {
  readonly type: InstanceType
  readonly requirements: Requirements
  readonly groups: readonly OfferingGroup[]
  /** The distinct requirements of the type's offerings, available or not. */
  readonly sold: readonly Requirements[]
}

/**
 * Compiles types. Most types of a catalogue have the same few kinds of offerings, which are compiled once. A catalogue
 * rarely changes, so a reader that is kept between decisions compiles each type once. The key is the type object, so a
 * changed type must be a new object.
 */
export class TypeReader {
  /** Vectors of amounts, kept between decisions likewise. */
  readonly vectors = new VectorCache()
  readonly #known = new WeakMap<InstanceType, CompiledType | InvalidType>()
  readonly #terms = new Map<string, Terms>()
  readonly #sales = new Map<string, Sale>()
  #nextTerms = 0

  /** The compiled type, or what is wrong with it. */
  read(type: InstanceType): CompiledType | InvalidType {
    let known = this.#known.get(type)
    if (known === undefined) {
      known = this.#compile(type)
      if (isObject(type)) this.#known.set(type, known)
    }
    return known
  }

  #compile(type: InstanceType): CompiledType | InvalidType {
    try {
      requireReadableType(type)
      return {
        type,
        requirements: parseRequirements(type.requirements),
        groups: allocatableGroups(type).map((group) => ({
          allocatable: group.allocatable,
          ...this.#sold(group.offerings),
        })),
        sold: [
          ...new Set(type.offerings.map(({ requirements }) => this.#termsOf(requirements).requirements)),
        ],
      }
    } catch (error) {
      return { problem: error }
    }
  }

  #sold(offerings: readonly Offering[]): Pick<OfferingGroup, 'offerings' | 'sale'> {
    const sorted = offerings
      .map((offering) => ({ terms: this.#termsOf(offering.requirements), offering }))
      .toSorted((a, b) => comparePrices(a.offering.pricePerHour, b.offering.pricePerHour))
    const key = sorted.map(({ terms }) => terms.id).join(' ')
    let sale = this.#sales.get(key)
    if (sale === undefined) {
      if (this.#sales.size >= termsKept) this.#sales.clear()
      sale = { terms: sorted.map(({ terms }) => terms) }
      this.#sales.set(key, sale)
    }
    return {
      offerings: sorted.map(({ terms: { requirements, capacityType }, offering }) => ({
        requirements,
        capacityType,
        pricePerHour: offering.pricePerHour,
        reservationCapacity: offering.reservationCapacity ?? 0,
      })),
      sale,
    }
  }

  #termsOf(list: readonly Requirement[]): Terms {
    let key = ''
    for (const { key: label, operator, values } of list) key += `${label} ${operator} ${values?.join(',')};`
    let terms = this.#terms.get(key)
    if (terms === undefined) {
      if (this.#terms.size >= termsKept) this.#terms.clear()
      const requirements = parseRequirements(list)
      const only = (label: string) => requirements.get(label)?.values.values().next().value
      terms = { id: this.#nextTerms++, requirements, capacityType: only(labels.capacityType) }
      this.#terms.set(key, terms)
    }
    return terms
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/** An invalid type. */
export interface InvalidType {
  readonly problem: unknown
}

/** Maximum cached terms; reservations come and go, each with its own id. */
const termsKept = 10_000

/** Everything about an offering but its price. */
interface Terms extends Pick<CompiledOffering, 'requirements' | 'capacityType'> {
  readonly id: number
}

/** Whether a type meets the requirements on the keys that both have. */
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
 * Keys whose minValues the types do not meet, with the number of values found (scheduling.md 4). All values of a type
 * count, even those that the claim does not allow.
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
