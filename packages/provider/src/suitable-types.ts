/** The instance types with which a claim can be launched, for providers that choose the type themselves. */
import {
  admitsValue,
  comparePrices,
  type InstanceType,
  labels,
  type NodeClaim,
  normalizedLabel,
  type Offering,
  type OfferingRef,
  ownValue,
  parseResources,
  type Requirement,
  type Resources,
} from '@tenon/api'

/** A type with one of its offerings. */
export interface LaunchChoice {
  readonly type: InstanceType
  readonly offering: Offering
}

/** Whether a type meets the claim. Requirements on keys that the type does not have are ignored. */
export function isSuitable(claim: NodeClaim, type: InstanceType): boolean {
  return (
    admitsAll(claim.spec.requirements, type.requirements) &&
    holdsAll(type, parseResources(claim.spec.resources?.requests))
  )
}

/** Available offerings for a claim, cheapest first, ties in the order of the types. */
export function launchChoices(claim: NodeClaim, types: readonly InstanceType[]): readonly LaunchChoice[] {
  return types
    .filter((type) => isSuitable(claim, type))
    .flatMap((type) =>
      type.offerings
        .filter((offering) => offering.available && admitsAll(claim.spec.requirements, offering.requirements))
        .map((offering) => ({ type, offering })),
    )
    .toSorted((a, b) => comparePrices(a.offering.pricePerHour, b.offering.pricePerHour))
}

/** Labels for which the requirements allow exactly one value. */
export function singleValues(requirements: readonly Requirement[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    requirements.flatMap(({ key, operator, values = [] }) =>
      operator === 'In' && values.length === 1 ? [[normalizedLabel(key), values[0] as string]] : [],
    ),
  )
}

/** Capacity minus overhead; without resources that are completely reserved. */
export function allocatableOf({ capacity, overhead }: InstanceType): Resources {
  const reserved = [overhead.kubeReserved, overhead.systemReserved, overhead.evictionThreshold]
  return Object.fromEntries(
    Object.entries(capacity).map(([name, amount]) => [
      name,
      Math.max(
        0,
        reserved.reduce((left, part) => left - (ownValue(part, name) ?? 0), amount),
      ),
    ]),
  )
}

/** The offering's name in errors and events. */
export function offeringRef({ type, offering }: LaunchChoice): OfferingRef {
  const valueOf = (key: string) => offering.requirements.find((each) => each.key === key)?.values?.[0] ?? ''
  return {
    instanceType: type.name,
    zone: valueOf(labels.zone),
    capacityType: valueOf(labels.capacityType),
  }
}

function admitsAll(wanted: readonly Requirement[], offered: readonly Requirement[]): boolean {
  return wanted.every((requirement) => {
    const own = offered.find(({ key }) => key === requirement.key)
    return own === undefined || admits(requirement, own)
  })
}

function admits(wanted: Requirement, own: Requirement): boolean {
  if (own.operator === 'DoesNotExist')
    return wanted.operator === 'DoesNotExist' || wanted.operator === 'NotIn'
  if (own.operator === 'Exists') return wanted.operator !== 'DoesNotExist'
  return (own.values ?? []).some((value) => admitsValue(wanted, value))
}

/** Resources that the type does not have (for example those of an overlay) are ignored, except GPUs. */
function holdsAll(type: InstanceType, requests: Resources): boolean {
  const allocatable = allocatableOf(type)
  return Object.entries(requests).every(([name, amount]) => {
    const left = ownValue(allocatable, name)
    return left === undefined ? !name.startsWith('nvidia.com/') || amount === 0 : amount <= left
  })
}
