/** The offerings with which a claim may be launched. */
import {
  comparePrices,
  type InstanceType,
  labels,
  type LaunchScope,
  type NodeClassReference,
  type Offering,
  type OfferingRef,
  type PricePerHour,
  type Requirement,
} from '@tenon/api'
import { compatible, parseRequirements, type Requirements } from '../../requirements/requirements.ts'

/** An available offering of a type. */
export interface ClaimOffering {
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

/** Each type is read once, by object. */
const known = new WeakMap<InstanceType, ReadType>()

/**
 * Available offerings that meet the requirements of a claim, cheapest first, ties by type and zone.
 * @param wellKnown label keys that offerings may have although the claim does not ask for them.
 */
export function offeringsOf(
  requirements: readonly Requirement[],
  types: readonly InstanceType[],
  wellKnown: ReadonlySet<string>,
): readonly ClaimOffering[] {
  const wanted = parseRequirements(requirements)
  const named = requirements.find(({ key, operator }) => key === labels.instanceType && operator === 'In')
  const names = named === undefined ? undefined : new Set(named.values)
  return types
    .filter(({ name }) => names === undefined || names.has(name))
    .map(readType)
    .filter((type) => compatible(wanted, type.requirements, wellKnown))
    .flatMap(({ offerings }) => offerings)
    .filter(({ offering }) => offering.available)
    .filter((each) => compatible(wanted, each.requirements, wellKnown))
    .map(({ ref, offering: { pricePerHour } }) => ({ ref, pricePerHour }))
    .toSorted(
      (a, b) =>
        comparePrices(a.pricePerHour, b.pricePerHour) || (offeringKey(a.ref) < offeringKey(b.ref) ? -1 : 1),
    )
}

/** Every offering of a type, in its order. */
export function offeringRefs(type: InstanceType): readonly OfferingRef[] {
  return readType(type).offerings.map(({ ref }) => ref)
}

/** A key for maps, and a text for users. */
export function offeringKey({ instanceType, zone, capacityType }: OfferingRef): string {
  return `${instanceType}/${zone}/${capacityType}`
}

/** The NodePool and node class of a launch. */
export interface LaunchPlace {
  readonly nodePool: string
  readonly nodeClassRef: NodeClassReference
}

/** All scopes by which launches of the offering may be avoided, widest first. */
export function scopesOf(ref: OfferingRef, { nodePool, nodeClassRef }: LaunchPlace): readonly LaunchScope[] {
  const nodeClass = `${nodeClassRef.kind}/${nodeClassRef.name}`
  const every = { instanceType: '', zone: '', capacityType: '' }
  return [
    { ...every, nodePool },
    { ...every, nodeClass },
    { ...every, nodeClass, instanceType: ref.instanceType },
    ref,
  ]
}

/** Like {@link offeringKey}. */
export function scopeKey(scope: LaunchScope): string {
  const { nodeClass, nodePool } = scope
  if (nodePool !== undefined) return `NodePool/${nodePool}`
  return nodeClass === undefined ? offeringKey(scope) : `${nodeClass} ${scope.instanceType}`
}

function readType(type: InstanceType): ReadType {
  const read: ReadType = known.get(type) ?? {
    requirements: parseRequirements(type.requirements),
    offerings: type.offerings.map((offering) => ({
      offering,
      ref: refOf(type, offering),
      requirements: parseRequirements(offering.requirements),
    })),
  }
  known.set(type, read)
  return read
}

function refOf({ name }: InstanceType, { requirements }: Offering): OfferingRef {
  const valueOf = (wanted: string) => requirements.find(({ key }) => key === wanted)?.values?.[0] ?? ''
  return { instanceType: name, zone: valueOf(labels.zone), capacityType: valueOf(labels.capacityType) }
}
