/** The offerings a claim may be launched with, as the core sees them. */
import {
  comparePrices,
  type InstanceType,
  labels,
  type Offering,
  type PricePerHour,
  type Requirement,
  wellKnownLabels,
} from '@tenon/api'
import { compatible, parseRequirements, type Requirements } from '@tenon/engine'
import type { CloudProvider, OfferingRef } from '@tenon/provider'

/** An available offering of a type. */
export interface OfferedChoice {
  readonly ref: OfferingRef
  readonly pricePerHour: PricePerHour
}

interface ReadOffering {
  readonly offering: Offering
  readonly ref: OfferingRef
  readonly requirements: Requirements
}

interface ReadType {
  readonly requirements: Requirements
  readonly offerings: readonly ReadOffering[]
}

/** Finds the offerings of claims; each type is read once, as long as its object lives. */
export class OfferingFinder {
  readonly #read = new WeakMap<InstanceType, ReadType>()
  readonly #wellKnown: ReadonlySet<string>

  constructor({
    wellKnownLabels: own,
    reservationLabel,
  }: Pick<CloudProvider, 'wellKnownLabels' | 'reservationLabel'>) {
    const reserved = reservationLabel === undefined ? [] : [reservationLabel]
    this.#wellKnown = new Set([...wellKnownLabels, ...own, ...reserved])
  }

  /** Available offerings that requirements of a claim allow, cheapest first, ties by type and zone. */
  choices(requirements: readonly Requirement[], types: readonly InstanceType[]): readonly OfferedChoice[] {
    const wanted = parseRequirements(requirements)
    const named = requirements.find(({ key, operator }) => key === labels.instanceType && operator === 'In')
    const names = named === undefined ? undefined : new Set(named.values)
    return types
      .filter(({ name }) => names === undefined || names.has(name))
      .map((type) => this.#readType(type))
      .filter((type) => compatible(wanted, type.requirements, this.#wellKnown))
      .flatMap(({ offerings }) => offerings)
      .filter(({ offering }) => offering.available)
      .filter((each) => compatible(wanted, each.requirements, this.#wellKnown))
      .map(({ ref, offering: { pricePerHour } }) => ({ ref, pricePerHour }))
      .toSorted(
        (a, b) => comparePrices(a.pricePerHour, b.pricePerHour) || (textOf(a.ref) < textOf(b.ref) ? -1 : 1),
      )
  }

  /** Every offering of a type, in its order. */
  refsOf(type: InstanceType): readonly OfferingRef[] {
    return this.#readType(type).offerings.map(({ ref }) => ref)
  }

  #readType(type: InstanceType): ReadType {
    const known = this.#read.get(type)
    if (known !== undefined) return known
    const read: ReadType = {
      requirements: parseRequirements(type.requirements),
      offerings: type.offerings.map((offering) => ({
        offering,
        ref: refOf(type, offering),
        requirements: parseRequirements(offering.requirements),
      })),
    }
    this.#read.set(type, read)
    return read
  }
}

function refOf({ name }: InstanceType, { requirements }: Offering): OfferingRef {
  const valueOf = (wanted: string) => requirements.find(({ key }) => key === wanted)?.values?.[0] ?? ''
  return { instanceType: name, zone: valueOf(labels.zone), capacityType: valueOf(labels.capacityType) }
}

function textOf({ instanceType, zone, capacityType }: OfferingRef): string {
  return `${instanceType}/${zone}/${capacityType}`
}
