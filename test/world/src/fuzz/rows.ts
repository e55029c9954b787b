/** The nodes that the pools of a case could launch, computed from the objects alone. */
import {
  type KubeObject,
  labels,
  type NodePool,
  parseResource,
  type PodSpec,
  type Requirement,
  type Taint,
  ownValue,
} from '@tenon/api'
import { exoscaleInstanceTypes, exoscalePricePerHour } from '@tenon/simulator-exoscale'
import { defaultCatalogue, readCatalogue } from '@tenon/provider-kwok'
import type { Case, FuzzProvider } from './case.ts'
import { cleverFlavors } from './clever-flavors.ts'

/** Millicores, bytes and counts. */
export type Amounts = Readonly<Record<string, number>>

/** One instance that a pool could launch. */
export interface Row {
  readonly pool: NodePool
  readonly type: string
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly capacity: Amounts
  /** The capacity according to the catalogue: the real one is unknown before an instance of the type exists. */
  readonly promised: Amounts
  readonly allocatable: Amounts
  /** Undefined if unknown. */
  readonly pricePerHour: number | undefined
}

interface Instance {
  readonly type: string
  readonly labels: Readonly<Record<string, string>>
  readonly capacity: Amounts
  readonly promised: Amounts
  readonly allocatable: Amounts
  readonly pricePerHour: number | undefined
}

/** @param wanted values that pods ask for, of keys that pools leave open. */
export function rowsOf(given: Case, wanted: ReadonlyMap<string, ReadonlySet<string>>): readonly Row[] {
  const pools = given.objects.filter((object): object is NodePool => object.kind === 'NodePool')
  return pools.flatMap((pool) => {
    const classes = given.objects.filter(({ kind }) => kind === pool.spec.template.spec.nodeClassRef.kind)
    const nodeClass = classes.find(
      ({ metadata }) => metadata.name === pool.spec.template.spec.nodeClassRef.name,
    )
    if (nodeClass === undefined) return []
    const instances = instancesOf[given.provider](given, nodeClass)
    return instances.flatMap((instance) =>
      labelings(pool, instance.labels, wanted).map((all) => ({
        ...instance,
        pool,
        labels: all,
        taints: pool.spec.template.spec.taints ?? [],
      })),
    )
  })
}

const instancesOf: Readonly<
  Record<FuzzProvider, (given: Case, nodeClass: KubeObject) => readonly Instance[]>
> = { kwok: kwokInstances, exoscale: exoscaleInstances, 'clever-cloud': cleverInstances }

const cleverRegion = 'par'

function cleverInstances({ surroundings }: Case, nodeClass: KubeObject): readonly Instance[] {
  const { spec } = nodeClass as KubeObject & {
    readonly spec?: { readonly labels?: Readonly<Record<string, string>> }
  }
  const share = (surroundings.memoryPercent ?? 100) / 100
  return cleverFlavors
    .filter(({ name }) => surroundings.soldOut?.includes(name) !== true)
    .map(({ name, cpu, memoryKi, price }): Instance => {
      const promised = {
        cpu: cpu * 1000,
        memory: memoryKi * 1024,
        'ephemeral-storage': 40_971_488 * 1024,
        pods: 110,
      }
      const capacity = { ...promised, memory: Math.floor(memoryKi * share) * 1024 }
      return {
        type: name,
        labels: {
          ...spec?.labels,
          [labels.instanceType]: name,
          [labels.zone]: cleverRegion,
          [labels.region]: cleverRegion,
          [labels.arch]: 'amd64',
          [labels.os]: 'linux',
          [labels.capacityType]: 'on-demand',
          'clever-cloud.com/flavor': name,
          'clever-cloud.com/cluster-node-role': 'worker',
          'karpenter.clever-cloud.com/instance-cpu': String(cpu),
          'karpenter.clever-cloud.com/instance-memory': String(memoryKi),
        },
        capacity,
        promised,
        allocatable: {
          ...less(capacity, { memory: 100 * 2 ** 20 }),
          'ephemeral-storage': 37_759_323_279,
        },
        pricePerHour: price,
      }
    })
}

function kwokInstances({ catalogue, surroundings }: Case): readonly Instance[] {
  const types = catalogue === undefined ? defaultCatalogue() : readCatalogue(JSON.stringify(catalogue)).types
  const share = (surroundings.memoryPercent ?? 100) / 100
  return types.flatMap((type) =>
    type.offerings.map((offering): Instance => {
      const own = [...type.requirements, ...offering.requirements]
      const single = own.flatMap(({ key, values = [] }) =>
        values.length === 1 ? [[key, values[0] ?? '']] : [],
      )
      return {
        type: type.name,
        labels: Object.fromEntries(single) as Record<string, string>,
        capacity: type.capacity,
        promised: type.capacity,
        allocatable: {
          ...less(type.capacity, { cpu: 100 }),
          memory: Math.floor(((type.capacity['memory'] ?? 0) - 10 * 2 ** 20) * share),
        },
        pricePerHour: offering.pricePerHour,
      }
    }),
  )
}

const zone = 'ch-gva-2'

function exoscaleInstances({ surroundings }: Case, nodeClass: KubeObject): readonly Instance[] {
  const { spec = {} } = nodeClass as KubeObject & {
    readonly spec?: {
      readonly diskSize?: number
      readonly imageTemplateSelector?: { readonly variant?: string }
      readonly kubelet?: {
        readonly kubeReserved?: Readonly<Record<string, string>>
        readonly systemReserved?: Readonly<Record<string, string>>
      }
    }
  }
  const { kubeReserved = {}, systemReserved = {} } = spec.kubelet ?? {}
  const of = (block: Readonly<Record<string, string>>, name: 'cpu' | 'memory', usual: string): number =>
    parseResource(name, block[name] ?? usual)
  const reserved = {
    cpu: of(kubeReserved, 'cpu', '200m') + of(systemReserved, 'cpu', '100m'),
    memory: of(kubeReserved, 'memory', '300Mi') + of(systemReserved, 'memory', '100Mi'),
    'ephemeral-storage': 4 * 2 ** 30,
  }
  const share = (surroundings.memoryPercent ?? 100) / 100
  return exoscaleInstanceTypes
    .filter(({ zones, gpus, name, family }) => {
      const isSold = zones.includes(zone) && surroundings.soldOut?.includes(name) !== true
      // They need another image and another disk size.
      return isSold && gpus === 0 && family !== 'storage'
    })
    .map(({ name, family, size, cpus, memoryBytes }): Instance => {
      const capacity = {
        cpu: cpus * 1000,
        memory: Math.floor(memoryBytes * share),
        'ephemeral-storage': (spec.diskSize ?? 50) * 2 ** 30,
        pods: 110,
      }
      return {
        type: name,
        labels: {
          [labels.instanceType]: name,
          [labels.zone]: zone,
          [labels.region]: zone,
          [labels.arch]: 'amd64',
          [labels.os]: 'linux',
          [labels.capacityType]: 'on-demand',
          'exoscale.com/instance-family': family,
          'exoscale.com/instance-size': size,
        },
        capacity,
        promised: { ...capacity, memory: memoryBytes },
        allocatable: less(capacity, reserved),
        pricePerHour: exoscalePricePerHour(family, size),
      }
    })
    .filter(({ allocatable }) => Object.values(allocatable).every((amount) => amount > 0))
}

/**
 * The possible labels of a new node: those of the instance and the template, with each choice that the pool
 * leaves.
 */
function labelings(
  pool: NodePool,
  instance: Readonly<Record<string, string>>,
  wanted: ReadonlyMap<string, ReadonlySet<string>>,
): readonly Readonly<Record<string, string>>[] {
  const { template } = pool.spec
  const { group, kind, name } = template.spec.nodeClassRef
  const fixed = new Map<string, string>([
    ...Object.entries(template.metadata?.labels ?? {}),
    ...Object.entries(instance),
    [labels.nodePool, pool.metadata.name],
    [`${group}/${kind.toLowerCase()}`, name],
    ['karpenter.sh/registered', 'true'],
    ['karpenter.sh/initialized', 'true'],
  ])
  let open: Map<string, string>[] = [fixed]
  for (const requirement of template.spec.requirements ?? []) {
    const { key } = requirement
    open = open.flatMap((each) => {
      const value = each.get(key)
      if (value !== undefined) return admits(requirement, value) ? [each] : []
      return choices(requirement, wanted.get(key)).map((choice) =>
        choice === undefined ? each : new Map([...each, [key, choice]]),
      )
    })
    if (open.length > 16) open = open.slice(0, 16)
  }
  return open.map((each) => Object.fromEntries(each))
}

/** Stands for a generated value, different on each node, of a key without requested values. */
export const unnamed = 'any'

/** Possible values of a key that the instance does not have; undefined if none. */
function choices(
  { operator, values = [] }: Requirement,
  wanted: ReadonlySet<string> = new Set(),
): readonly (string | undefined)[] {
  if (operator === 'In') return values
  if (operator === 'Exists') return wanted.size === 0 ? [unnamed] : [...wanted]
  if (operator === 'DoesNotExist' || operator === 'NotIn') return [undefined]
  const bound = Number(values[0] ?? 0)
  return [String(operator === 'Gt' || operator === 'Gte' ? bound + 1 : Math.max(0, bound - 1))]
}

function admits({ operator, values = [] }: Requirement, value: string): boolean {
  const bound = Number(values[0] ?? 0)
  switch (operator) {
    case 'In':
      return values.includes(value)
    case 'NotIn':
      return !values.includes(value)
    case 'Exists':
      return true
    case 'DoesNotExist':
      return false
    case 'Gt':
      return Number(value) > bound
    case 'Lt':
      return Number(value) < bound
    case 'Gte':
      return Number(value) >= bound
    case 'Lte':
      return Number(value) <= bound
  }
}

/** Subtracts; only resources of the first are kept. */
export function less(amounts: Amounts, by: Amounts): Amounts {
  return Object.fromEntries(
    Object.entries(amounts).map(([name, amount]) => [name, amount - (ownValue(by, name) ?? 0)]),
  )
}

/** Sums up containers; a limit without a request counts as a request. */
export function requestsOf({ containers }: PodSpec): Amounts {
  return containers.reduce<Amounts>(
    (sum, { resources = {} }) => {
      const asked = { ...resources.limits, ...resources.requests }
      return plus(
        sum,
        Object.fromEntries(Object.entries(asked).map(([name, text]) => [name, parseResource(name, text)])),
      )
    },
    { pods: 1 },
  )
}

export function plus(a: Amounts, b: Amounts): Amounts {
  const sum = new Map(Object.entries(a))
  for (const [name, more] of Object.entries(b)) sum.set(name, (sum.get(name) ?? 0) + more)
  return Object.fromEntries(sum)
}

export const fits = (wanted: Amounts, room: Amounts): boolean => {
  const left = new Map(Object.entries(room))
  return Object.entries(wanted).every(([name, asked]) => asked === 0 || asked <= (left.get(name) ?? 0))
}
