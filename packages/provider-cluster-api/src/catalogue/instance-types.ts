/** Converts MachineDeployments to instance types (cluster-api.md 5, 12). */
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

/** Maximum reasons in one offering's message. */
const mostReasons = 3

/**
 * All types, by name. MachineDeployments with equal type names are one type; those that are also equal in zone,
 * capacity type, labels and capacity are one offering, at the lowest price of those that can grow.
 * @param customLabels label keys that types have in addition to {@link describedLabels}; default: all. A NodePool only
 * sees labels that it names, as the core would reject types with unknown ones.
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

/** The common requirement of all members on a label; none if only some have it. */
function requirementOfAll(members: readonly Participant[], key: string): readonly Requirement[] {
  const values = new Set(members.map((each) => ownValue(each.labels, key)))
  if (values.size === 1) return members.slice(0, 1).flatMap((each) => requirementOf(each, key))
  const known = [...values].filter((value) => value !== undefined).toSorted(compareTexts)
  return known.length < values.size ? [] : [{ key, operator: 'In', values: known }]
}

/**
 * The requirement of a MachineDeployment on a label. Its nodes never have a described label that it lacks, even if the
 * NodePool sets it; they get other labels from the NodePool.
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
  const shown = reasons.slice(0, mostReasons).join(', ')
  return { because: rest > 0 ? `${shown} and ${rest} more cannot grow either` : shown }
}

/** The minimum per resource, of resources that both have. */
function common(a: Resources, b: Resources): Resources {
  const shared: Record<string, number> = {}
  for (const [resource, amount] of Object.entries(a)) {
    const other = ownValue(b, resource)
    if (other !== undefined) setOwn(shared, resource, Math.min(amount, other))
  }
  return shared
}

/** The capacity that a MachineDeployment has in addition to its type. */
function overrideOf({ capacity }: Participant, ofType: Resources): Resources {
  const more: Record<string, number> = {}
  for (const [resource, amount] of Object.entries(capacity))
    if (ownValue(ofType, resource) !== amount) setOwn(more, resource, amount)
  return more
}

/** Types are shared by all callers, who must not change them. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(frozen)
    Object.freeze(value)
  }
  return value
}
