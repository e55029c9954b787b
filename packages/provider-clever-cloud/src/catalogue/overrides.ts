/** The file that changes and adds flavors, `FLAVORS_CONFIG_PATH` (clever-cloud.md 5.2, 20). */
import { type PricePerHour, mostPricePerHour } from '@tenon/api'
import { isAlias, isMap, isScalar, isSeq, type Pair, type YAMLMap } from 'yaml'
import { builtInFlavors } from './flavors.ts'
import { leastMemoryKi } from './instance-type.ts'
import { type ReadYaml, readYaml } from './yaml-text.ts'

/** An entry for one flavor; absent fields keep their built-in values. */
interface FlavorOverride {
  readonly name: string
  readonly cpu?: number
  readonly memoryKi?: number
  /** In euros. */
  readonly pricePerHour?: number
}

/** In the order of the file, without duplicates. */
export type FlavorOverrides = readonly FlavorOverride[]

/** For an installation without the file. */
export const noOverrides: FlavorOverrides = []

/** A file is valid as a whole or not at all. The error names the line, the field and the fix. */
export type OverridesReading =
  | { readonly ok: FlavorOverrides; readonly error?: undefined }
  | { readonly error: string; readonly ok?: undefined }

const mostCpu = 1024
/** 1 TiB. A larger number is certainly in bytes instead of KiB. */
const mostMemoryKi = 2 ** 30
const fields = ['name', 'cpu', 'memoryKi', 'priceHourly'] as const
type Field = (typeof fields)[number]

/** Flavor names are label values in upper case. */
const flavorName = /^[A-Z0-9]{1,63}$/
const builtInNames: ReadonlySet<string> = new Set(builtInFlavors.map(({ name }) => name))
const example = '- {name: M, cpu: 10, memoryKi: 15229256}'

/** An error in the file. */
class FileError extends Error {
  readonly offset: number

  constructor(offset: number, message: string) {
    super(message)
    this.offset = offset
  }
}

/**
 * Reads the file in both formats: with `priceHourly` in euros, and the later one without prices. Anything unknown
 * invalidates the whole file, so that no typo goes unnoticed.
 */
export function readOverrides(text: string): OverridesReading {
  const read = readYaml(text)
  if (read.kind === 'invalid') return { error: `line ${read.line}: ${read.message}` }
  try {
    return { ok: overridesIn(read) }
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    return { error: `line ${read.lineOf(error.offset)}: ${error.message}` }
  }
}

function overridesIn({ root }: Extract<ReadYaml, { kind: 'read' }>): FlavorOverrides {
  const offset = root?.range?.[0] ?? 0
  if (!isSeq(root)) throw new FileError(offset, `the file holds no list of flavors; write ${example}`)
  if (root.items.length === 0)
    throw new FileError(offset, `the list is empty; write ${example}, or do without the file`)
  const found = new Map<string, FlavorOverride>()
  for (const [index, item] of root.items.entries()) {
    const override = overrideIn(item, index, offset)
    const { name } = override.flavor
    if (found.has(name))
      throw new FileError(override.offset, `flavor ${name}: name: is given twice; leave one entry`)
    found.set(name, override.flavor)
  }
  return [...found.values()]
}

interface Placed {
  readonly offset: number
  readonly flavor: FlavorOverride
}

function overrideIn(item: unknown, index: number, listOffset: number): Placed {
  const offset = offsetOf(item) ?? listOffset
  const at = `entry ${index + 1}`
  if (!isMap(item)) throw new FileError(offset, `${at} is not a flavor; write ${example}`)
  const values = valuesIn(item, at, offset)
  const name = nameIn(values.get('name'), at, offset)
  const flavor = `flavor ${name}`
  const cpu = wholeNumber(values.get('cpu'), { at: `${flavor}: cpu`, least: 1, most: mostCpu, unit: 'vCPUs' })
  const memoryKi = wholeNumber(values.get('memoryKi'), {
    at: `${flavor}: memoryKi`,
    least: leastMemoryKi,
    most: mostMemoryKi,
    unit: 'KiB',
  })
  const pricePerHour = priceIn(values.get('priceHourly'), `${flavor}: priceHourly`)
  if (!builtInNames.has(name))
    for (const [field, value] of [
      ['cpu', cpu],
      ['memoryKi', memoryKi],
    ] as const)
      if (value === undefined)
        throw new FileError(
          offset,
          `${flavor}: ${field}: is missing; this version does not know the flavor: give cpu and memoryKi`,
        )
  return {
    offset: values.get('name')?.offset ?? offset,
    flavor: {
      name,
      ...(cpu !== undefined && { cpu }),
      ...(memoryKi !== undefined && { memoryKi }),
      ...(pricePerHour !== undefined && { pricePerHour }),
    },
  }
}

/** The value of a field. */
interface Value {
  readonly value: unknown
  readonly offset: number
  /** As written, for messages. */
  readonly shown: string
}

type Values = ReadonlyMap<Field, Value>

function valuesIn(map: YAMLMap, at: string, mapOffset: number): Values {
  const values = new Map<Field, Value>()
  for (const pair of map.items) {
    const { key, offset } = keyOf(pair, at, mapOffset)
    const field = fields.find((each) => each === key)
    if (field === undefined)
      throw new FileError(
        offset,
        `${at}: unknown field ${shown(JSON.stringify(key))}; there are ${fields.join(', ')}`,
      )
    if (values.has(field)) throw new FileError(offset, `${at}: ${field}: is given twice; leave one`)
    values.set(field, valueOf(pair, `${at}: ${field}`, offset))
  }
  return values
}

function keyOf({ key }: Pair, at: string, mapOffset: number): { key: string; offset: number } {
  const offset = offsetOf(key) ?? mapOffset
  if (!isScalar(key))
    throw new FileError(offset, `${at}: a field has no name; there are ${fields.join(', ')}`)
  return { key: String(key.value), offset }
}

function valueOf({ value }: Pair, at: string, keyOffset: number): Value {
  const offset = offsetOf(value) ?? keyOffset
  if (isAlias(value))
    throw new FileError(offset, `${at}: is an alias (*${value.source}); write the value itself`)
  if (value !== null && !isScalar(value))
    throw new FileError(offset, `${at}: holds a list or map; give one value`)
  const held: unknown = value === null ? null : value.value
  if (value === null || held === null)
    throw new FileError(offset, `${at}: is empty; give a value or leave the field out`)
  const isText = typeof held === 'string'
  // Some YAML parsers read such a number as octal.
  if (!isText && /^[+-]?0[0-9]/.test(value.source ?? ''))
    throw new FileError(offset, `${at}: is ${shown(value.source)}; write it without the 0 in front`)
  return { value: held, offset, shown: isText ? shown(JSON.stringify(held)) : shown(value.source ?? held) }
}

function nameIn(found: Value | undefined, at: string, offset: number): string {
  if (found === undefined) throw new FileError(offset, `${at}: name: is missing; give a flavor such as M`)
  const { value, shown: text } = found
  if (typeof value !== 'string')
    throw new FileError(found.offset, `${at}: name: is ${text}, not a text; put it in quotes`)
  if (flavorName.test(value)) return value
  const upper = value.toUpperCase()
  const fix = flavorName.test(upper) ? `write ${upper}` : 'write 1 to 63 upper-case letters and digits'
  throw new FileError(found.offset, `${at}: name: no flavor of Clever Cloud is called ${text}; ${fix}`)
}

function wholeNumber(
  found: Value | undefined,
  { at, least, most, unit }: { at: string; least: number; most: number; unit: string },
): number | undefined {
  if (found === undefined) return undefined
  const { value, offset } = found
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  throw new FileError(offset, `${at}: is ${found.shown}; use an integer of ${unit} from ${least} to ${most}`)
}

function priceIn(found: Value | undefined, at: string): PricePerHour {
  if (found === undefined) return undefined
  const { value, offset } = found
  // Adding 0 turns a negative zero into zero.
  if (typeof value === 'number' && value >= 0 && value <= mostPricePerHour) return value + 0
  throw new FileError(
    offset,
    `${at}: is ${found.shown}; give euros per hour from 0 to ${mostPricePerHour}, or leave the field out`,
  )
}

function offsetOf(node: unknown): number | undefined {
  return isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range?.[0] : undefined
}

/** A value for messages, on one line and shortened. */
function shown(value: unknown): string {
  const text = String(value)
  return text.length > 40 ? `${text.slice(0, 40)}…` : text
}
