/** Pools of devices: published ones, and those that the nodes of an instance type will publish (devices.md 3.7). */
import {
  type AttributeBinding,
  type CounterSet,
  type Device,
  type DeviceTaintRule,
  type InstanceType,
  type ResourceSlice,
  taintsOfRules,
} from '@tenon/api'
import { problemText } from '../../input/problem-text.ts'
import {
  attributesOf,
  capacityOf,
  type CompiledDevice,
  consumptionOf,
  countersOf,
  type DevicePlace,
  type DevicePool,
  Numbers,
  placeOf,
} from './device.ts'

/** Instance types whose nodes have the same devices. */
export interface TypeDevices {
  readonly pools: readonly DevicePool[]
}

const noDevices: TypeDevices = { pools: [] }
const everywhere: DevicePlace = { kind: 'everywhere' }

/** A device with the place from which it can be reached. */
interface PlacedDevice {
  readonly device: Device
  readonly place: DevicePlace
}

/** Makes pools; numbers of likeness are its own. */
export class PoolReader {
  readonly #rules: readonly DeviceTaintRule[]
  readonly #likeness = new Numbers()
  readonly #twins = new Numbers()
  readonly #types = new Map<string, TypeDevices>()
  readonly #byType = new WeakMap<InstanceType, TypeDevices>()

  constructor(rules: readonly DeviceTaintRule[]) {
    this.#rules = rules
  }

  /** The pools of the published slices, in order of driver and name. */
  published(slices: readonly ResourceSlice[]): readonly DevicePool[] {
    const byPool = Map.groupBy(slices, ({ spec }) => `${spec.driver}\n${spec.pool.name}`)
    return [...byPool]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([, members]) => this.#publishedPool(members))
  }

  #publishedPool(slices: readonly ResourceSlice[]): DevicePool {
    const [first] = slices
    const newest = Math.max(...slices.map(({ spec }) => spec.pool.generation))
    const current = slices
      .filter(({ spec }) => spec.pool.generation === newest)
      .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    const placed = current.flatMap(({ spec }): readonly PlacedDevice[] => {
      // What a slice with counters has beside them does not count (devices.md 3.7).
      if ((spec.sharedCounters ?? []).length > 0) return []
      return (spec.devices ?? []).flatMap((device) => {
        const place = placeOf(spec.perDeviceNodeSelection === true ? device : spec)
        return place === undefined ? [] : [{ device, place }]
      })
    })
    const { driver = '', pool } = first?.spec ?? {}
    return this.#pool(placed, {
      driver,
      name: pool?.name ?? '',
      isTemplate: false,
      isComplete: current[0]?.spec.pool.resourceSliceCount === current.length,
      counterSets: current.flatMap(({ spec }) => spec.sharedCounters ?? []),
      bindings: [],
    })
  }

  /** What the nodes of a type have; one object for types that have the same. */
  ofType(type: InstanceType): TypeDevices {
    const { resourceSliceTemplates: templates = [], attributeBindings = [] } = type
    if (templates.length === 0) return noDevices
    let known = this.#byType.get(type)
    if (known !== undefined) return known
    const key = JSON.stringify([templates, attributeBindings])
    known = this.#types.get(key)
    if (known === undefined) {
      const byPool = Map.groupBy(templates, ({ driver, pool }) => `${driver}\n${pool}`)
      known = {
        pools: [...byPool.values()].map((members) =>
          this.#pool(
            members.flatMap(({ devices }) => devices.map((device) => ({ device, place: everywhere }))),
            {
              driver: members[0]?.driver ?? '',
              name: members[0]?.pool ?? '',
              isTemplate: true,
              isComplete: true,
              counterSets: members.flatMap(({ sharedCounters = [] }) => sharedCounters),
              bindings: attributeBindings,
            },
          ),
        ),
      }
      this.#types.set(key, known)
    }
    this.#byType.set(type, known)
    return known
  }

  #pool(
    placed: readonly PlacedDevice[],
    {
      counterSets,
      bindings,
      ...head
    }: Pick<DevicePool, 'driver' | 'name' | 'isTemplate' | 'isComplete'> & {
      readonly counterSets: readonly CounterSet[]
      readonly bindings: readonly AttributeBinding[]
    },
  ): DevicePool {
    const poolNumber = this.#twins.of(JSON.stringify([head.driver, head.name, head.isTemplate]))
    const devices: CompiledDevice[] = []
    const broken = (problem: string): DevicePool => ({ ...head, problem, devices: [], counters: new Map() })
    try {
      const counters = countersOf(counterSets)
      const pool: DevicePool = { ...head, problem: undefined, devices, counters }
      const names = new Set<string>()
      for (const { device, place } of placed) {
        if (names.has(device.name)) return broken(`device ${device.name} is there twice`)
        names.add(device.name)
        const consumed = consumptionOf(device)
        for (const key of consumed.keys())
          if (!counters.has(key))
            return broken(`device ${device.name} uses counter ${key.replace('\n', '/')}, which is not there`)
        const { name, attributes, capacity, allowMultipleAllocations: isShared = false, ...rest } = device
        const taints = [
          ...(device.taints ?? []),
          ...taintsOfRules(this.#rules, {
            driver: head.driver,
            pool: head.isTemplate ? undefined : head.name,
            device: name,
          }),
        ]
        const likeness = this.#likeness.of(JSON.stringify([head.driver, attributes, capacity, isShared]))
        const groups = bindingGroups(bindings, head, name)
        const alike = isShared ? name : ''
        devices.push({
          pool,
          name,
          source: device,
          likeness,
          twin: this.#twins.of(
            JSON.stringify([poolNumber, likeness, { ...rest, taints }, placeKey(place), [...groups], alike]),
          ),
          attributes: attributesOf(device, head.driver),
          capacity: capacityOf(device, head.driver),
          isShared,
          counters: consumed,
          taints,
          place,
          bindings: groups,
        })
      }
      return pool
    } catch (error) {
      return broken(problemText(error))
    }
  }
}

function placeKey(place: DevicePlace): unknown {
  if (place.kind !== 'nodes') return place
  return place.terms.map(({ requirements, names }) => [
    [...requirements.values()].map((set) => ({
      ...set,
      values: [...set.values],
      gte: `${set.gte}`,
      lte: `${set.lte}`,
    })),
    names && [...names],
  ])
}

/**
 * The group of a device by attribute: devices that are bound to each other, directly or through others, have the same
 * one; those of fewer than two devices bind nothing (devices.md 3.2).
 */
function bindingGroups(
  bindings: readonly AttributeBinding[],
  { driver, name: pool }: Pick<DevicePool, 'driver' | 'name'>,
  device: string,
): ReadonlyMap<string, number> {
  const own = JSON.stringify([driver, pool, device])
  const groups = new Map<string, number>()
  for (const attribute of new Set(bindings.map((binding) => binding.attribute))) {
    const sets = bindings
      .filter((binding) => binding.attribute === attribute)
      .map(({ devices }) => new Set(devices.map((ref) => JSON.stringify([ref.driver, ref.pool, ref.device]))))
      .filter(({ size }) => size > 1)
    const merged = connected(sets)
    const group = merged.findIndex((members) => members.has(own))
    if (group >= 0) groups.set(attribute, group)
  }
  return groups
}

/** Sets that share a member, made one. */
function connected(sets: readonly ReadonlySet<string>[]): readonly ReadonlySet<string>[] {
  let result: ReadonlySet<string>[] = []
  for (const set of sets) {
    const touching = result.filter((other) => [...set].some((member) => other.has(member)))
    result = [
      ...result.filter((other) => !touching.includes(other)),
      new Set([...set, ...touching.flatMap((other) => [...other])]),
    ]
  }
  return result
}
