/** Device pools: published ones, and those that nodes of an instance type will publish (devices.md 3.7). */
import {
  type AttributeBinding,
  compileCapacity,
  type CompiledCapacity,
  type CounterSet,
  type Device,
  deviceAmount,
  type DeviceAmount,
  type DeviceAmounts,
  type DeviceAttribute,
  type DeviceTaint,
  type DeviceTaintRule,
  type InstanceType,
  type NodeSelector,
  qualifiedDeviceName,
  type ResourceSlice,
  taintsOfRules,
} from '@tenon/api'
import { problemText } from '../../input/problem-text.ts'
import { parseRequirements, type Requirements } from '../../requirements/requirements.ts'

/** The devices of an instance type's nodes; types with equal devices share one object. */
export interface TypeDevices {
  readonly pools: readonly DevicePool[]
  /** Extended resources that its nodes have themselves, so that devices do not serve them; absent = none. */
  readonly counted?: ReadonlySet<string>
}

const noDevices: TypeDevices = { pools: [] }
const everywhere: NodeAccess = { kind: 'everywhere' }

/** A device and the nodes that have access to it. */
interface AccessibleDevice {
  readonly device: Device
  readonly place: NodeAccess
}

/** Compiles pools. */
export class PoolReader {
  readonly #rules: readonly DeviceTaintRule[]
  readonly #selectorClass = new Numbers()
  readonly #equivalenceClasses = new Numbers()
  readonly #types = new Map<string, TypeDevices>()
  readonly #byType = new WeakMap<InstanceType, TypeDevices>()

  constructor(rules: readonly DeviceTaintRule[]) {
    this.#rules = rules
  }

  /** The pools of the slices, in order of driver and name. */
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
    const placed = current.flatMap(({ spec }): readonly AccessibleDevice[] => {
      // A slice with shared counters has no devices (devices.md 3.7).
      if ((spec.sharedCounters ?? []).length > 0) return []
      return (spec.devices ?? []).flatMap((device) => {
        const place = nodeAccessOf(spec.perDeviceNodeSelection === true ? device : spec)
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

  /** The devices of a type's nodes; the same object for equal devices. */
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
    placed: readonly AccessibleDevice[],
    {
      counterSets,
      bindings,
      ...head
    }: Pick<DevicePool, 'driver' | 'name' | 'isTemplate' | 'isComplete'> & {
      readonly counterSets: readonly CounterSet[]
      readonly bindings: readonly AttributeBinding[]
    },
  ): DevicePool {
    const poolNumber = this.#equivalenceClasses.of(JSON.stringify([head.driver, head.name, head.isTemplate]))
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
        const selectorClass = this.#selectorClass.of(
          JSON.stringify([head.driver, attributes, capacity, isShared]),
        )
        const groups = bindingGroups(bindings, head, name)
        const alike = isShared ? name : ''
        devices.push({
          pool,
          name,
          source: device,
          selectorClass,
          equivalenceClass: this.#equivalenceClasses.of(
            JSON.stringify([
              poolNumber,
              selectorClass,
              { ...rest, taints },
              placeKey(place),
              [...groups],
              alike,
            ]),
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

function placeKey(place: NodeAccess): unknown {
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
 * The binding group of each device, by attribute: devices that are bound to each other, also indirectly, have the same
 * group. Bindings of fewer than two devices are ignored (devices.md 3.2).
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

/** Merges sets with common members. */
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

/** The nodes that have access to a device. */
type NodeAccess =
  | { readonly kind: 'everywhere' }
  | { readonly kind: 'node'; readonly name: string }
  /** Nodes that meet one of the terms. */
  | { readonly kind: 'nodes'; readonly terms: readonly NodeAccessTerm[] }

export interface NodeAccessTerm {
  readonly requirements: Requirements
  /** Node names that the term allows; undefined = any. */
  readonly names: ReadonlySet<string> | undefined
}

export interface CompiledDevice {
  readonly pool: DevicePool
  readonly name: string
  readonly source: Device
  /** Equal for devices that no selector can tell apart. */
  readonly selectorClass: number
  /** Equal for devices that are interchangeable while both are free. */
  readonly equivalenceClass: number
  /** Values as text by qualified attribute name; a list has several. */
  readonly attributes: ReadonlyMap<string, ReadonlySet<string>>
  readonly capacity: ReadonlyMap<string, CompiledCapacity>
  readonly isShared: boolean
  /** Counters of its pool that it consumes while in use, by set and counter. */
  readonly counters: DeviceAmounts
  readonly taints: readonly DeviceTaint[]
  readonly place: NodeAccess
  /** Its binding group, by qualified name of an attribute whose value is not known yet. */
  readonly bindings: ReadonlyMap<string, number>
}

/**
 * The devices of one pool of a driver. Devices of templates and published devices are never in the same pool.
 */
export interface DevicePool {
  readonly driver: string
  readonly name: string
  readonly isTemplate: boolean
  /** Whether all slices of its generation exist. */
  readonly isComplete: boolean
  /** What is wrong with the pool. If set, none of its devices is used. */
  readonly problem: string | undefined
  readonly devices: readonly CompiledDevice[]
  /** Totals by set and counter. */
  readonly counters: DeviceAmounts
}

function counterKey(set: string, counter: string): string {
  return `${set}\n${counter}`
}

/** Numbers texts: equal texts get equal numbers. */
class Numbers {
  readonly #numbers = new Map<string, number>()

  of(text: string): number {
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    this.#numbers.set(text, this.#numbers.size)
    return this.#numbers.size - 1
  }
}

/** The attribute's values as text; values of different types differ. */
function valuesOf(attribute: DeviceAttribute): ReadonlySet<string> {
  const { int, bool, string: text, version } = attribute
  const values: string[] = []
  const add = (type: string, items: readonly unknown[] | undefined) => {
    for (const item of items ?? []) values.push(`${type}:${String(item)}`)
  }
  add('int', int === undefined ? attribute.ints : [int])
  add('bool', bool === undefined ? attribute.bools : [bool])
  add('string', text === undefined ? attribute.strings : [text])
  add('version', version === undefined ? attribute.versions : [version])
  return new Set(values)
}

function attributesOf(device: Device, driver: string): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map(
    Object.entries(device.attributes ?? {}).map(([name, value]) => [
      qualifiedDeviceName(name, driver),
      valuesOf(value),
    ]),
  )
}

/** @throws RangeError when an amount is not a quantity. */
function capacityOf(device: Device, driver: string): ReadonlyMap<string, CompiledCapacity> {
  return new Map(
    Object.entries(device.capacity ?? {}).map(([name, capacity]) => [
      qualifiedDeviceName(name, driver),
      compileCapacity(capacity),
    ]),
  )
}

/** @throws RangeError when an amount is not a quantity. */
function consumptionOf(device: Device): DeviceAmounts {
  const amounts = new Map<string, DeviceAmount>()
  for (const { counterSet, counters } of device.consumesCounters ?? [])
    for (const [name, { value }] of Object.entries(counters))
      amounts.set(counterKey(counterSet, name), deviceAmount(value))
  return amounts
}

/** @throws RangeError when an amount is not a quantity, or a set occurs twice. */
function countersOf(sets: readonly CounterSet[]): DeviceAmounts {
  const amounts = new Map<string, DeviceAmount>()
  const names = new Set<string>()
  for (const { name, counters } of sets) {
    if (names.has(name)) throw new RangeError(`counter set ${name} is there twice`)
    names.add(name)
    for (const [counter, { value }] of Object.entries(counters))
      amounts.set(counterKey(name, counter), deviceAmount(value))
  }
  return amounts
}

/** Which nodes a slice or device names or selects; undefined if none. */
function nodeAccessOf(at: {
  readonly nodeName?: string
  readonly nodeSelector?: NodeSelector
  readonly allNodes?: boolean
}): NodeAccess | undefined {
  if (at.nodeName !== undefined && at.nodeName !== '') return { kind: 'node', name: at.nodeName }
  if (at.nodeSelector !== undefined) return { kind: 'nodes', terms: nodeAccessTerms(at.nodeSelector) }
  return at.allNodes === true ? { kind: 'everywhere' } : undefined
}

export function nodeAccessTerms(selector: NodeSelector): readonly NodeAccessTerm[] {
  return selector.nodeSelectorTerms.map(({ matchExpressions = [], matchFields }) => {
    const named = matchFields?.filter(({ key }) => key === 'metadata.name') ?? []
    const allowed = named.map(({ operator, values }) => (operator === 'In' ? (values ?? []) : []))
    const [first, ...others] = allowed
    const names = first?.filter((name) => others.every((values) => values.includes(name)))
    return { requirements: parseRequirements(matchExpressions), names: names && new Set(names) }
  })
}
