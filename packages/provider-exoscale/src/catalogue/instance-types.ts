/** Converts catalogue entries to instance types for one node class. */
import {
  capacityTypes,
  type InstanceType,
  isQuantity,
  labels,
  parseResource,
  type Requirement,
  type Resources,
  type Unavailability,
} from '@tenon/api'
import { exoscaleLabels, gpuResource, podsPerNode } from '../identifiers.ts'
import type { Reservation } from '../nodeclass/types.ts'
import type { CatalogueEntry } from './catalogue.ts'
import { admitsDisk } from './disk-ranges.ts'
import { gpuDevices } from './gpu-devices.ts'

const gib = 2 ** 30

/** What the types depend on, besides the catalogue. */
export interface TypeContext {
  readonly zone: string
  readonly diskSizeGib: number
  readonly kubeReserved: Reservation
  readonly systemReserved: Reservation
  /** Why a type is unavailable; undefined if it is available as far as known. */
  readonly unavailability: (entry: CatalogueEntry) => Unavailability | undefined
  /** Whether nodes run a driver that publishes their GPUs as devices. */
  readonly hasGpuDriver: boolean
}

/** Types in the order of the entries, without those that cannot have the disk. They share no objects. */
export function instanceTypesOf(entries: readonly CatalogueEntry[], context: TypeContext): InstanceType[] {
  return entries
    .filter((entry) => admitsDisk(entry.family, entry.size, context.diskSizeGib))
    .map((entry) => instanceTypeOf(entry, context))
}

function instanceTypeOf(entry: CatalogueEntry, context: TypeContext): InstanceType {
  const unavailability = context.unavailability(entry)
  return {
    name: entry.name,
    requirements: requirementsOf(entry, context.zone),
    offerings: [
      {
        requirements: [
          { key: labels.capacityType, operator: 'In', values: [capacityTypes.onDemand] },
          { key: labels.zone, operator: 'In', values: [context.zone] },
        ],
        pricePerHour: entry.pricePerHour,
        available: unavailability === undefined,
        ...(unavailability !== undefined && { unavailability }),
      },
    ],
    capacity: capacityOf(entry, context.diskSizeGib),
    overhead: {
      kubeReserved: reservedResources(context.kubeReserved),
      systemReserved: reservedResources(context.systemReserved),
      evictionThreshold: {},
    },
    ...(context.hasGpuDriver && entry.gpus > 0 && { resourceSliceTemplates: gpuDevices(entry) }),
  }
}

/** Requirements of the type that have one value: they become labels of its instances, NodeClaims and Nodes. */
export function typeLabels(entry: CatalogueEntry, zone: string): Readonly<Record<string, string>> {
  return {
    [labels.region]: zone,
    [labels.zone]: zone,
    [labels.instanceType]: entry.name,
    [labels.arch]: 'amd64',
    [labels.os]: 'linux',
    [labels.capacityType]: capacityTypes.onDemand,
    [exoscaleLabels.family]: entry.family,
    [exoscaleLabels.size]: entry.size,
  }
}

function requirementsOf(entry: CatalogueEntry, zone: string): Requirement[] {
  const fixed = Object.entries(typeLabels(entry, zone)).map(
    ([key, value]): Requirement => ({ key, operator: 'In', values: [value] }),
  )
  const gpu: Requirement[] =
    entry.gpus > 0
      ? [
          { key: exoscaleLabels.gpuCount, operator: 'Exists' },
          { key: exoscaleLabels.accelerator, operator: 'In', values: ['nvidia'] },
        ]
      : [
          { key: exoscaleLabels.gpuCount, operator: 'DoesNotExist' },
          { key: exoscaleLabels.accelerator, operator: 'DoesNotExist' },
        ]
  return [...fixed, ...gpu, { key: labels.windowsBuild, operator: 'DoesNotExist' }]
}

/** Total resources, including reservations. */
export function capacityOf(entry: CatalogueEntry, diskSizeGib: number): Resources {
  return {
    cpu: entry.cpus * 1000,
    memory: entry.memoryBytes,
    'ephemeral-storage': diskSizeGib * gib,
    pods: podsPerNode,
    ...(entry.gpus > 0 && { [gpuResource]: entry.gpus }),
  }
}

/** Amounts of a reservation; empty or invalid values count as 0. */
export function reservedResources(reservation: Reservation): Resources {
  const parts = {
    cpu: reservation.cpu,
    memory: reservation.memory,
    'ephemeral-storage': reservation.ephemeralStorage,
  }
  const amounts = Object.entries(parts).map(([name, text]): [string, number] => [
    name,
    text !== undefined && isQuantity(text) ? parseResource(name, text) : 0,
  ])
  return Object.fromEntries(amounts)
}
