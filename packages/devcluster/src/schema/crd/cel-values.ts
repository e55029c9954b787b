import { ownValue, setOwn } from '@tenon/api'
import { Environment } from '@marcbachmann/cel-js'
import { escapedName } from '../cel/names.ts'
import type { CompiledSchema } from './compiled-schema.ts'

const converter = new Environment().registerVariable('text', 'string')
const toTimestamp = converter.parse('timestamp(text)')
const toDuration = converter.parse('duration(text)')

/**
 * Converts JSON to CEL values: integers are ints, formatted text is a timestamp or a duration, field names are escaped.
 */
export function celValue(value: unknown, node: CompiledSchema | undefined): unknown {
  if (typeof value === 'number') return celNumber(value, node)
  if (typeof value === 'string') return celText(value, node)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => celValue(item, node?.items))
  return celRecord(value as Readonly<Record<string, unknown>>, node)
}

function celNumber(value: number, node: CompiledSchema | undefined): unknown {
  if (node?.schema.type === 'number') return value
  return Number.isInteger(value) ? BigInt(value) : value
}

function celText(value: string, node: CompiledSchema | undefined): unknown {
  const format = node?.schema.format
  if (format === undefined || node?.intOrString === true) return value
  try {
    if (format === 'date-time') return toTimestamp({ text: value })
    if (format === 'duration') return toDuration({ text: value })
    if (format === 'date') return toTimestamp({ text: `${value}T00:00:00Z` })
  } catch {
    // Validation reports the invalid format; rules see the text.
    return value
  }
  return format === 'byte' ? new Uint8Array(Buffer.from(value, 'base64')) : value
}

function celRecord(record: Readonly<Record<string, unknown>>, node: CompiledSchema | undefined): unknown {
  const converted: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const key in record) {
    const property = node?.properties.get(key)
    const name = property === undefined && node?.values !== undefined ? key : escapedName(key)
    setOwn(converted, name, celValue(ownValue(record, key), property ?? node?.values))
  }
  // The CEL library reads the member `constructor` to find a value's type, but a label may have that name.
  return Object.hasOwn(converted, 'constructor') ? new Map(Object.entries(converted)) : converted
}
