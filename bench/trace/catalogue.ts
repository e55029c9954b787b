/** The catalogue of the trace: three zones, on-demand only, nothing reserved. */
import {
  capacityTypes,
  type InstanceType,
  labels,
  type Offering,
  type Requirement,
  type Resources,
} from '@tenon/api'
import type { Catalogue } from '@tenon/ask'

/** Extended resources of the trace. */
export const gpu = 'nvidia.com/gpu'
export const rdma = 'example.com/rdma'

const zones = ['zone-a', 'zone-b', 'zone-c'] as const
const gib = 1024 ** 3
const coresOfAll = [8, 16, 32, 48, 64, 96, 128, 192, 256] as const
const families = [
  { name: 'c', gibPerCore: 2, pricePerCore: 0.034, cores: coresOfAll, coresPerGpu: undefined },
  { name: 'm', gibPerCore: 4, pricePerCore: 0.04, cores: coresOfAll, coresPerGpu: undefined },
  { name: 'r', gibPerCore: 8, pricePerCore: 0.053, cores: coresOfAll, coresPerGpu: undefined },
  { name: 'g', gibPerCore: 10, pricePerCore: 0.044, cores: [16, 32, 64, 128], coresPerGpu: 16 },
] as const
const pricePerGpu = 0.6

/** A resource that limits the number of a service's pods on a node. */
const seatOf = (service: string): string => `seats.example.com/${service}`

/** Every type. */
export const traceTypes: readonly InstanceType[] = families.flatMap(
  ({ name, gibPerCore, pricePerCore, cores, coresPerGpu }) =>
    cores.map((count): InstanceType => {
      const gpus = coresPerGpu === undefined ? 0 : count / coresPerGpu
      return {
        name: `${name}.${count}`,
        requirements: [
          is(labels.instanceType, `${name}.${count}`),
          is(labels.arch, 'amd64'),
          is(labels.os, 'linux'),
          is(labels.zone, ...zones),
          is(labels.capacityType, capacityTypes.onDemand),
        ],
        offerings: zones.map((zone) => offering(zone, pricePerCore * count + pricePerGpu * gpus)),
        capacity: {
          cpu: count * 1000,
          memory: count * gibPerCore * gib,
          pods: 110,
          'ephemeral-storage': 4096 * gib,
          [rdma]: 100,
          ...(gpus > 0 && { [gpu]: gpus }),
        },
        overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
      }
    }),
)

/** Maximum number of pods of a service on a node, for services that resources do not limit anyway. */
export type Seats = ReadonlyMap<string, number>

/** The fields of a pod that limit how many of its service fit on a node. */
interface Limited {
  readonly service: string
  readonly requests: Resources
  readonly mostPerNode: number | undefined
}

export function seatsOf(instances: Iterable<Limited>): Seats {
  const services = Map.groupBy(instances, ({ service }) => service)
  return new Map(
    Array.from(services, ([service, pods]) => {
      const most = Math.min(...pods.map(({ mostPerNode = Infinity }) => mostPerNode))
      return [service, most] as const
    }).filter(([service, most]) => mayShareNode(services.get(service) ?? [], most + 1)),
  )
}

/** Whether this many of the pods fit on a node by resources. */
function mayShareNode(pods: readonly Limited[], count: number): boolean {
  if (pods.length < count) return false
  const resources = new Set(pods.flatMap(({ requests }) => Object.keys(requests)))
  const least = Array.from(resources, (resource) => {
    const amounts = pods.map(({ requests }) => requests[resource] ?? 0).toSorted((a, b) => a - b)
    return [resource, amounts.slice(0, count).reduce((sum, amount) => sum + amount, 0)] as const
  })
  return traceTypes.some(({ capacity }) =>
    least.every(([resource, amount]) => amount <= (capacity[resource] ?? 0)),
  )
}

/**
 * What every NodePool of the trace can buy.
 * @param seats of services that limit their pods per node.
 */
export function traceCatalogue(seats: Seats): Catalogue {
  return { byNodePool: new Map(), others: typesWith(seats) }
}

/** Every type, with the seats of services that limit their pods per node. */
export function typesWith(seats: Seats): readonly InstanceType[] {
  const more = Object.fromEntries(Array.from(seats, ([service, most]) => [seatOf(service), most]))
  return traceTypes.map((type) => ({ ...type, capacity: { ...type.capacity, ...more } }))
}

/** The requests of a pod, including its seat. */
export function requestsWithSeat({ requests, service }: Limited, seats: Seats): Resources {
  return seats.has(service) ? { ...requests, [seatOf(service)]: 1 } : requests
}

function offering(zone: string, pricePerHour: number): Offering {
  return {
    requirements: [is(labels.zone, zone), is(labels.capacityType, capacityTypes.onDemand)],
    pricePerHour,
    available: true,
  }
}

function is(key: string, ...values: readonly string[]): Requirement {
  return { key, operator: 'In', values }
}
