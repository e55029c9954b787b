/** Devices compiled for selectors, constraints and counters. */
import {
  type CompiledCapacity,
  compileCapacity,
  type CounterSet,
  type Device,
  type DeviceAmount,
  type DeviceAmounts,
  deviceAmount,
  type DeviceAttribute,
  type DeviceTaint,
  type NodeSelector,
  qualifiedDeviceName,
} from '@tenon/api'
import { parseRequirements, type Requirements } from '../../requirements/requirements.ts'

/** The nodes that have access to a device. */
export type NodeAccess =
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
export class Numbers {
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

export function attributesOf(device: Device, driver: string): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map(
    Object.entries(device.attributes ?? {}).map(([name, value]) => [
      qualifiedDeviceName(name, driver),
      valuesOf(value),
    ]),
  )
}

/** @throws RangeError when an amount is not a quantity. */
export function capacityOf(device: Device, driver: string): ReadonlyMap<string, CompiledCapacity> {
  return new Map(
    Object.entries(device.capacity ?? {}).map(([name, capacity]) => [
      qualifiedDeviceName(name, driver),
      compileCapacity(capacity),
    ]),
  )
}

/** @throws RangeError when an amount is not a quantity. */
export function consumptionOf(device: Device): DeviceAmounts {
  const amounts = new Map<string, DeviceAmount>()
  for (const { counterSet, counters } of device.consumesCounters ?? [])
    for (const [name, { value }] of Object.entries(counters))
      amounts.set(counterKey(counterSet, name), deviceAmount(value))
  return amounts
}

/** @throws RangeError when an amount is not a quantity, or a set occurs twice. */
export function countersOf(sets: readonly CounterSet[]): DeviceAmounts {
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
export function nodeAccessOf(at: {
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
