/** MachineDeployments in the core's terms (cluster-api.md 5, 12). */
import {
  type InstanceType,
  labels,
  lowestPrice,
  type Offering,
  ownValue,
  type Requirement,
  type Resources,
  setOwn,
  type Unavailability,
} from '@tenon/api'
import { compareKeys, compareTexts } from '../hub/keys.ts'
import { type Participant } from './participant.ts'
import { describedLabels } from './pool-rules.ts'

/** Reasons that one offering tells. */
const mostReasons = 3

/**
 * All types, by name. MachineDeployments of one name are one type; those that also are alike in zone, capacity type,
 * labels and capacity are one offering, at the price of the cheapest that can grow.
 * @param customLabels keys of labels, beside those of {@link describedLabels}, that the types tell; all of them without
 * it. A label that a NodePool does not name says nothing to it: the core would take no type that has one.
 */
export function instanceTypesOf(
  participants: readonly Participant[],
  customLabels?: ReadonlySet<string>,
): readonly InstanceType[] {
  const byName = Map.groupBy(
    participants.toSorted((a, b) => compareKeys(a.key, b.key)),
    ({ typeName }) => typeName,
  )
  return [...byName]
    .toSorted(([a], [b]) => compareTexts(a, b))
    .map(([name, members]) => typeOf(name, members, customLabels))
}

function typeOf(
  name: string,
  members: readonly Participant[],
  customLabels: ReadonlySet<string> | undefined,
): InstanceType {
  const keys = statedKeys(members, customLabels)
  const differing = keys.filter((key) => new Set(members.map((each) => ownValue(each.labels, key))).size > 1)
  const offeringKeys = [...new Set([labels.zone, labels.capacityType, ...differing])]
  const capacity = members.map((each) => each.capacity).reduce(common)
  const alike = Map.groupBy(members, (each) =>
    JSON.stringify([
      offeringKeys.map((key) => ownValue(each.labels, key) ?? null),
      Object.entries(overrideOf(each, capacity)).toSorted(([a], [b]) => compareTexts(a, b)),
    ]),
  )
  return frozen({
    name,
    requirements: keys.flatMap((key) => requirementOfAll(members, key)),
    offerings: [...alike]
      .toSorted(([a], [b]) => compareTexts(a, b))
      .map(([, group]) => offeringOf(group, offeringKeys, capacity)),
    capacity,
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
  })
}

/** In alphabetical order. */
function statedKeys(
  members: readonly Participant[],
  customLabels: ReadonlySet<string> | undefined,
): readonly string[] {
  const custom = members
    .flatMap((each) => Object.keys(each.labels))
    .filter((key) => customLabels === undefined || customLabels.has(key))
  return [...new Set([...describedLabels, ...custom])].toSorted(compareTexts)
}

/** What holds of a label whichever MachineDeployment it is; nothing when only some have it. */
function requirementOfAll(members: readonly Participant[], key: string): readonly Requirement[] {
  const values = new Set(members.map((each) => ownValue(each.labels, key)))
  if (values.size === 1) return members.slice(0, 1).flatMap((each) => requirementOf(each, key))
  const known = [...values].filter((value) => value !== undefined).toSorted(compareTexts)
  return known.length < values.size ? [] : [{ key, operator: 'In', values: known }]
}

/**
 * What a MachineDeployment says of a label. Nodes do not have a described label that it lacks, though their NodePool
 * asks for it; other labels they get from the NodePool.
 */
function requirementOf({ labels: own }: Participant, key: string): readonly Requirement[] {
  const value = ownValue(own, key)
  if (value !== undefined) return [{ key, operator: 'In', values: [value] }]
  return describedLabels.includes(key) ? [{ key, operator: 'DoesNotExist' }] : []
}

function offeringOf(group: readonly Participant[], keys: readonly string[], capacity: Resources): Offering {
  const growing = group.filter(({ unavailability }) => unavailability === undefined)
  const [first] = group
  const override = first === undefined ? {} : overrideOf(first, capacity)
  const unavailability = reasonOf(group)
  return {
    requirements: group.slice(0, 1).flatMap((each) => keys.flatMap((key) => requirementOf(each, key))),
    pricePerHour: lowestPrice((growing.length > 0 ? growing : group).map((each) => each.pricePerHour)),
    available: growing.length > 0,
    ...(growing.length === 0 && unavailability !== undefined && { unavailability }),
    ...(Object.keys(override).length > 0 && { capacityOverride: override }),
  }
}

function reasonOf(group: readonly Participant[]): Unavailability | undefined {
  const reasons = group.flatMap(({ unavailability }) => unavailability?.because ?? [])
  if (reasons.length === 0) return undefined
  const rest = reasons.length - mostReasons
  const told = reasons.slice(0, mostReasons).join(', ')
  return { because: rest > 0 ? `${told} and ${rest} more cannot grow either` : told }
}

/** What both have, of each resource the smaller amount. */
function common(a: Resources, b: Resources): Resources {
  const shared: Record<string, number> = {}
  for (const [resource, amount] of Object.entries(a)) {
    const other = ownValue(b, resource)
    if (other !== undefined) setOwn(shared, resource, Math.min(amount, other))
  }
  return shared
}

/** Where a MachineDeployment has more than its type. */
function overrideOf({ capacity }: Participant, ofType: Resources): Resources {
  const more: Record<string, number> = {}
  for (const [resource, amount] of Object.entries(capacity))
    if (ownValue(ofType, resource) !== amount) setOwn(more, resource, amount)
  return more
}

/** Types are shared by all who ask: a change by one would reach the others. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(frozen)
    Object.freeze(value)
  }
  return value
}
