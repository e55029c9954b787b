/** Converts flavors to instance types (clever-cloud.md 6). */
import {
  capacityTypes,
  type InstanceType,
  labels,
  ownValue,
  parseResource,
  type PricePerHour,
  type Requirement,
  type Resources,
} from '@tenon/api'
import { ownNames, platformLabels } from '../names.ts'
import { builtInFlavors, type FlavorSize, formerMemoryKi, sharedSize } from './flavors.ts'
import type { NodeSize } from './reports.ts'

const bytesPerKi = 1024
const reservedMemory = parseResource('memory', sharedSize.kubeReservedMemory)

/** A flavor with less memory would have none left for pods. */
export const leastMemoryKi: number = Math.floor(reservedMemory / bytesPerKi) + 1

const sharedCapacity: Resources = {
  'ephemeral-storage': parseResource('ephemeral-storage', sharedSize.ephemeralStorage),
  pods: parseResource('pods', sharedSize.pods),
}
const sharedThreshold: Resources = {
  'ephemeral-storage':
    parseResource('ephemeral-storage', sharedSize.ephemeralStorage) -
    parseResource('ephemeral-storage', sharedSize.allocatableEphemeralStorage),
}

/** What a type is built from. */
interface Origin {
  readonly flavor: string
  readonly region: string
  /** Absent if only the name of the flavor is known. */
  readonly size: Pick<FlavorSize, 'cpu' | 'memoryKi'> | undefined
  /** The size that its nodes have reported. */
  readonly observed: NodeSize | undefined
}

/** A type that can be launched. */
export function servedType(origin: Origin, pricePerHour: PricePerHour): InstanceType {
  return frozen({
    ...shapeOf(origin),
    offerings: [{ requirements: offeringRequirements(origin.region), pricePerHour, available: true }],
  })
}

/** The type of existing nodes whose flavor cannot be launched; unknown amounts are 0. */
export function unservedType(origin: Origin): InstanceType {
  return frozen({
    ...shapeOf(origin),
    offerings: [
      {
        requirements: offeringRequirements(origin.region),
        pricePerHour: undefined,
        available: false,
        unavailability: { because: 'the catalogue of flavors does not list it' },
      },
    ],
  })
}

function shapeOf({ flavor, region, size, observed }: Origin): Omit<InstanceType, 'offerings'> {
  const labelled = size ?? (observed && labelledSize(observed))
  const stated: Resources = {
    ...(size && { cpu: size.cpu * 1000, memory: size.memoryKi * bytesPerKi }),
    ...sharedCapacity,
  }
  return {
    name: flavor,
    requirements: [
      is(labels.instanceType, flavor),
      is(labels.arch, 'amd64'),
      is(labels.os, 'linux'),
      // The platform has no regions apart from zones. Without this label, pods that select a region would
      // launch nodes forever.
      is(labels.region, region),
      is(labels.zone, region),
      is(labels.capacityType, capacityTypes.onDemand),
      is(platformLabels.flavor, flavor),
      is(platformLabels.role, 'worker'),
      ...(labelled
        ? [
            is(ownNames.instanceCpu, String(labelled.cpu)),
            is(ownNames.instanceMemory, ...memoryLabels(flavor, labelled.memoryKi)),
          ]
        : []),
    ],
    capacity: observed === undefined ? stated : { ...stated, ...observed.capacity },
    overhead: {
      // Nodes report the remainder after all reservations: keeping the threshold would subtract it twice.
      kubeReserved: observed === undefined ? (size ? { memory: reservedMemory } : {}) : reservedOf(observed),
      systemReserved: {},
      evictionThreshold: observed === undefined ? sharedThreshold : {},
    },
  }
}

function labelledSize({ capacity }: NodeSize): Pick<FlavorSize, 'cpu' | 'memoryKi'> {
  const amount = (resource: string): number => ownValue(capacity, resource) ?? 0
  return { cpu: Math.floor(amount('cpu') / 1000), memoryKi: Math.floor(amount('memory') / bytesPerKi) }
}

function reservedOf({ capacity, allocatable }: NodeSize): Resources {
  return Object.fromEntries(
    Object.entries(capacity).map(([resource, amount]) => [
      resource,
      amount - (ownValue(allocatable, resource) ?? 0),
    ]),
  )
}

function offeringRequirements(region: string): readonly Requirement[] {
  return [is(labels.capacityType, capacityTypes.onDemand), is(labels.zone, region)]
}

function is(key: string, ...values: readonly string[]): Requirement {
  return { key, operator: 'In', values }
}

/**
 * Both the actual memory and the value of the Go provider, so that NodePools and pods may use either. A custom size has
 * only one value.
 */
function memoryLabels(flavor: string, memoryKi: number): readonly string[] {
  const builtIn = builtInFlavors.find(({ name }) => name === flavor)
  const former = builtIn?.memoryKi === memoryKi ? formerMemoryKi.get(flavor) : undefined
  return [memoryKi, ...(former === undefined ? [] : [former])].map(String)
}

/** Types are shared by all callers, who must not change them. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(frozen)
    Object.freeze(value)
  }
  return value
}
