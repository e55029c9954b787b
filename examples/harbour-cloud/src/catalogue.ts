/** What can be ordered, in the words of Kubernetes. */
import {
  capacityTypes,
  type Clock,
  type InstanceType,
  labels,
  type Offering,
  type Requirement,
  type Resources,
} from '@tenon/provider'
import type { CloudApi, Size } from './cloud-api.ts'

/** Lets pods and NodePools ask for servers of a certain size. */
export const cpusLabel = 'harbour.example.com/cpus'

/** Sizes and prices change once in a while. */
const sizesMaxAgeMs = 10 * 60_000
/** How long an offering that was sold out is not tried again. */
const soldOutMs = 3 * 60_000

const gib = 2 ** 30

/** The instance types: read from the cloud now and then, shared by all who ask. */
export class Catalogue {
  readonly #api: CloudApi
  readonly #clock: Clock
  #read: { readonly sizes: Promise<readonly Size[]>; readonly atMs: number } | undefined
  /** When offerings that were sold out are tried again, by size and zone. */
  readonly #soldOutUntilMs = new Map<string, number>()

  constructor(api: CloudApi, clock: Clock) {
    this.#api = api
    this.#clock = clock
  }

  /** All types, those that are sold out included: as not available. */
  async types(): Promise<readonly InstanceType[]> {
    const sizes = await this.#sizes()
    return sizes.map((size) => instanceTypeOf(size, (zone) => this.#soldOutUntil(size.name, zone)))
  }

  /** Remembers that a launch found nothing. */
  markSoldOut(size: string, zone: string): void {
    this.#soldOutUntilMs.set(`${size}/${zone}`, this.#clock.now() + soldOutMs)
  }

  #soldOutUntil(size: string, zone: string): number | undefined {
    const untilMs = this.#soldOutUntilMs.get(`${size}/${zone}`) ?? 0
    return untilMs > this.#clock.now() ? untilMs : undefined
  }

  #sizes(): Promise<readonly Size[]> {
    const now = this.#clock.monotonic()
    const read = this.#read
    if (read !== undefined && now - read.atMs < sizesMaxAgeMs) return read.sizes
    const fresh = { sizes: this.#api.sizes(), atMs: now }
    this.#read = fresh
    // An answer that never came is not kept.
    fresh.sizes.catch(() => {
      if (this.#read === fresh) this.#read = undefined
    })
    return fresh.sizes
  }
}

/**
 * The type of a size.
 * @param soldOutUntil until when the size is sold out in a zone, in Unix milliseconds; undefined when it is not.
 */
export function instanceTypeOf(
  { name, cpus, memoryGiB, pricePerHour }: Size,
  soldOutUntil: (zone: string) => number | undefined,
): InstanceType {
  return {
    name,
    requirements: [
      only(labels.instanceType, name),
      only(labels.arch, 'amd64'),
      only(labels.os, 'linux'),
      only(labels.capacityType, capacityTypes.onDemand),
      only(labels.zone, ...Object.keys(pricePerHour)),
      only(cpusLabel, String(cpus)),
    ],
    // What a kubelet reports: firmware and kernel keep some of the memory. Too little is safe, too much is not.
    capacity: {
      cpu: cpus * 1000,
      memory: Math.floor(memoryGiB * gib * 0.95),
      'ephemeral-storage': 40 * gib,
      pods: 110,
    },
    overhead: {
      kubeReserved: { cpu: 100, memory: gib / 4 },
      systemReserved: {},
      evictionThreshold: { memory: gib / 8, 'ephemeral-storage': 4 * gib },
    },
    offerings: Object.entries(pricePerHour).map(([zone, price]): Offering => {
      const untilMs = soldOutUntil(zone)
      return {
        requirements: [only(labels.zone, zone), only(labels.capacityType, capacityTypes.onDemand)],
        pricePerHour: price,
        available: untilMs === undefined,
        ...(untilMs !== undefined && {
          unavailability: { because: `${name} is sold out in ${zone}`, untilMs },
        }),
      }
    }),
  }
}

/** What pods get of a node. */
export function allocatableOf({ capacity, overhead }: InstanceType): Resources {
  const reserved = [overhead.kubeReserved, overhead.systemReserved, overhead.evictionThreshold]
  return Object.fromEntries(
    Object.entries(capacity).map(([name, amount]) => [
      name,
      reserved.reduce((left, part) => left - (part[name] ?? 0), amount),
    ]),
  )
}

function only(key: string, ...values: readonly string[]): Requirement {
  return { key, operator: 'In', values }
}
