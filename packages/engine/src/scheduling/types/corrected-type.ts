/** Corrects instance types by the resources that their instances turned out to have. */
import { type InstanceType, type Offering, ownValue, type Resources, setOwn } from '@tenon/api'
import { allocatableOf } from './allocatable.ts'

/**
 * Observed capacity and allocatable of a type's instances, in canonical units; unknown resources are absent.
 */
export interface InstanceFigures {
  readonly capacity: Resources
  readonly allocatable: Resources
}

/** Resources of which instances have less than the catalogue says, with both amounts. */
export interface Shortfall {
  readonly capacity: Readonly<Record<string, Amounts>>
  readonly allocatable: Readonly<Record<string, Amounts>>
}

interface Amounts {
  readonly said: number
  readonly found: number
}

/**
 * What instances of a type lack; undefined if they lack nothing. Resources that the type does not list are ignored, and
 * so is a capacity that leaves as much for pods.
 */
export function shortfallOf(type: InstanceType, found: InstanceFigures): Shortfall | undefined {
  const allocatable = less(allocatableOf(type), found.allocatable)
  const capacity = lessOf(less(type.capacity, found.capacity), allocatable)
  const isShort = Object.keys(capacity).length + Object.keys(allocatable).length > 0
  return isShort ? { capacity, allocatable } : undefined
}

/**
 * The type limited to what its instances have; a copy that shares unchanged parts. Where allocatable is known, overhead
 * is the difference to capacity. Overrides of offerings stay.
 */
export function correctedType(type: InstanceType, found: InstanceFigures): InstanceType {
  const { capacity: short = {} } = shortfallOf(type, found) ?? {}
  const capacity = Object.fromEntries(Object.entries(short).map(([name, each]) => [name, each.found]))
  const smaller: InstanceType = {
    ...type,
    capacity: { ...type.capacity, ...capacity },
    offerings: type.offerings.map((offering) => withinCapacity(offering, capacity)),
  }
  const nominal = allocatableOf(type)
  const kubeReserved: Record<string, number> = { ...type.overhead.kubeReserved }
  const systemReserved: Record<string, number> = { ...type.overhead.systemReserved }
  const evictionThreshold: Record<string, number> = { ...type.overhead.evictionThreshold }
  const unreserved = allocatableOf({ ...smaller, overhead: nothingReserved })
  for (const [name, amount] of Object.entries(found.allocatable)) {
    const [most, left] = [ownValue(nominal, name), ownValue(unreserved, name)]
    if (most === undefined || left === undefined) continue
    delete kubeReserved[name]
    delete evictionThreshold[name]
    setOwn(systemReserved, name, Math.max(0, left - Math.min(amount, most)))
  }
  return { ...smaller, overhead: { kubeReserved, systemReserved, evictionThreshold } }
}

const nothingReserved = { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} }

function lessOf(amounts: Record<string, Amounts>, others: Record<string, Amounts>): Record<string, Amounts> {
  return Object.fromEntries(Object.entries(amounts).filter(([name]) => Object.hasOwn(others, name)))
}

function less(said: Resources, found: Resources): Record<string, Amounts> {
  const amounts: Record<string, Amounts> = {}
  for (const [name, amount] of Object.entries(found)) {
    const nominal = ownValue(said, name)
    if (nominal !== undefined && amount < nominal) setOwn(amounts, name, { said: nominal, found: amount })
  }
  return amounts
}

function withinCapacity(offering: Offering, capacity: Resources): Offering {
  const own = offering.capacityOverride
  if (own === undefined) return offering
  const capacityOverride = Object.fromEntries(
    Object.entries(own).map(([name, amount]) => [name, Math.min(amount, ownValue(capacity, name) ?? amount)]),
  )
  return { ...offering, capacityOverride }
}
