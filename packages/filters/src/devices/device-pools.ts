/** Published device pools, built from ResourceSlices as kube-scheduler does. */
import {
  type CompiledCapacity,
  compileCapacity,
  type Device,
  type DeviceAmount,
  type DeviceAmounts,
  deviceAmount,
  type DeviceTaint,
  type DeviceTaintRule,
  type NodeSelector,
  qualifiedDeviceName,
  type ResourceSlice,
  taintsOfRules,
} from '@tenon/api'

/** The nodes with access to a device: one, those that match a selector, or all. */
interface DevicePlace {
  readonly nodeName?: string
  readonly nodeSelector?: NodeSelector
}

/** One device of a pool. */
export interface PublishedDevice {
  readonly pool: PublishedPool
  readonly source: Device
  readonly place: DevicePlace
  /** Values as text with their type, by qualified name; a list has several. */
  readonly attributes: ReadonlyMap<string, ReadonlySet<string>>
  readonly capacity: ReadonlyMap<string, CompiledCapacity>
  /** What it consumes of the counters of its pool, by set and counter. */
  readonly counters: DeviceAmounts
  /** Taints of its driver and of DeviceTaintRules. */
  readonly taints: readonly DeviceTaint[]
  /** Cached results of selectors, by expression. */
  readonly answers: Map<string, boolean>
}

/** The newest generation of one pool of a driver. */
export interface PublishedPool {
  readonly driver: string
  readonly name: string
  /** Whether it has as many slices as `resourceSliceCount` says. */
  readonly isComplete: boolean
  /** Why none of its devices can be used. */
  readonly problem: string | undefined
  readonly devices: readonly PublishedDevice[]
  readonly counters: DeviceAmounts
}

/** The pool of these slices, with the taints of the rules. */
export function poolOf(members: readonly ResourceSlice[], rules: readonly DeviceTaintRule[]): PublishedPool {
  const newest = Math.max(...members.map(({ spec }) => spec.pool.generation))
  const slices = members
    .filter(({ spec }) => spec.pool.generation === newest)
    .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  const { driver = '', pool: { name = '', resourceSliceCount = 0 } = {} } = slices[0]?.spec ?? {}
  const head = { driver, name, isComplete: slices.length === resourceSliceCount }
  try {
    const counters = countersOf(slices)
    const devices: PublishedDevice[] = []
    const pool: PublishedPool = { ...head, problem: undefined, devices, counters }
    const names = new Set<string>()
    const placed = slices.flatMap(({ spec }) =>
      (spec.devices ?? []).map((source) => ({
        source,
        at: spec.perDeviceNodeSelection === true ? source : spec,
      })),
    )
    for (const { source, at } of placed) {
      if (names.has(source.name)) throw new RangeError(`device ${source.name} is there twice`)
      names.add(source.name)
      const added = taintsOfRules(rules, { driver, pool: name, device: source.name })
      const device = deviceOf(pool, source, at, added)
      if (![...device.counters.keys()].every((counter) => counters.has(counter)))
        throw new RangeError(`device ${source.name} consumes a counter that is not there`)
      devices.push(device)
    }
    return pool
  } catch (error) {
    // An amount that is not a quantity, or a problem found above.
    if (!(error instanceof RangeError)) throw error
    return { ...head, problem: error.message, devices: [], counters: new Map() }
  }
}

function countersOf(slices: readonly ResourceSlice[]): DeviceAmounts {
  const amounts = new Map<string, DeviceAmount>()
  for (const set of slices.flatMap(({ spec }) => spec.sharedCounters ?? []))
    for (const [counter, { value }] of Object.entries(set.counters)) {
      const key = `${set.name}\n${counter}`
      if (amounts.has(key)) throw new RangeError(`counter set ${set.name} is there twice`)
      amounts.set(key, deviceAmount(value))
    }
  return amounts
}

function deviceOf(
  pool: PublishedPool,
  source: Device,
  at: DevicePlace,
  added: readonly DeviceTaint[],
): PublishedDevice {
  const { attributes = {}, capacity = {}, consumesCounters = [], taints = [] } = source
  const { nodeName, nodeSelector } = at
  const named = <T>(values: Readonly<Record<string, T>>) =>
    Object.entries(values).map(([name, value]) => [qualifiedDeviceName(name, pool.driver), value] as const)
  return {
    pool,
    source,
    answers: new Map(),
    taints: [...taints, ...added],
    place: { ...(nodeName && { nodeName }), ...(nodeSelector && { nodeSelector }) },
    attributes: new Map(named(attributes).map(([name, value]) => [name, textsOf(value)])),
    capacity: new Map(named(capacity).map(([name, value]) => [name, compileCapacity(value)])),
    counters: new Map(
      consumesCounters.flatMap(({ counterSet, counters }) =>
        Object.entries(counters).map(
          ([counter, { value }]) => [`${counterSet}\n${counter}`, deviceAmount(value)] as const,
        ),
      ),
    ),
  }
}

/** Values of different types are different. */
function textsOf(attribute: NonNullable<Device['attributes']>[string]): ReadonlySet<string> {
  const texts = new Set<string>()
  for (const [type, value] of Object.entries(attribute))
    for (const item of Array.isArray(value) ? (value as readonly unknown[]) : [value])
      texts.add(`${type.replace(/s$/, '')}:${String(item)}`)
  return texts
}
