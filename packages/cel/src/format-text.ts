import { Duration, UnsignedInt } from '@marcbachmann/cel-js/evaluator'
import { durationText, timestampText } from './times.ts'

const defaultPrecision = 6
const verbs = /%(?:%|(?:\.(\d+))?(.?))/gsu

/** Implements `text.format(values)`. */
export function formatText(text: string, values: readonly unknown[]): string {
  let next = 0
  return text.replace(verbs, (whole, precision: string | undefined, verb: string | undefined) => {
    if (whole === '%%') return '%'
    if (verb === undefined || verb === '') throw new Error('unexpected end of string')
    if (!'sdfexXob'.includes(verb)) throw new Error(`unrecognized formatting clause "${verb}"`)
    if (next >= values.length) throw new Error(`index ${next} out of range`)
    const digits = precision === undefined ? defaultPrecision : Number(precision)
    return formatValue(values[next++], verb, digits)
  })
}

function formatValue(value: unknown, verb: string, precision: number): string {
  switch (verb) {
    case 'd':
      if (isInteger(value)) return value.toString()
      throw new Error(`decimal clause can only be used on integers, was given ${typeName(value)}`)
    case 'f':
      return fixed(doubleOf(value, 'fixed-point'), precision)
    case 'e':
      return scientific(doubleOf(value, 'scientific'), precision)
    case 'b':
      if (typeof value === 'boolean') return value ? '1' : '0'
      return inBase(value, 2, 'binary')
    case 'o':
      return inBase(value, 8, 'octal')
    case 'x':
    case 'X': {
      const digits = hexadecimal(value)
      return verb === 'X' ? digits.toUpperCase() : digits
    }
    default:
      return display(value)
  }
}

function isInteger(value: unknown): value is bigint | UnsignedInt {
  return typeof value === 'bigint' || value instanceof UnsignedInt
}

function inBase(value: unknown, base: number, clause: string): string {
  if (isInteger(value)) return value.valueOf().toString(base)
  const kinds = clause === 'binary' ? 'integers and bools' : 'integers'
  throw new Error(`${clause} clause can only be used on ${kinds}, was given ${typeName(value)}`)
}

function hexadecimal(value: unknown): string {
  if (isInteger(value)) return value.valueOf().toString(16)
  if (typeof value === 'string' || value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  throw new Error(
    `hex clause can only be used on integers, byte buffers, and strings, was given ${typeName(value)}`,
  )
}

const namedDoubles: ReadonlyMap<unknown, number> = new Map([
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
])

function doubleOf(value: unknown, clause: string): number {
  const number = typeof value === 'number' ? value : namedDoubles.get(value)
  if (number !== undefined) return number
  throw new Error(`${clause} clause can only be used on doubles, was given ${typeName(value)}`)
}

function unbounded(value: number): string | undefined {
  if (Number.isNaN(value)) return 'NaN'
  return Number.isFinite(value) ? undefined : `${value < 0 ? '-' : ''}∞`
}

/** Kubernetes formats doubles in English, with thousands separators. */
function fixed(value: number, precision: number): string {
  const [whole = '', fraction] = value.toFixed(precision).split('.')
  const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, ',')
  return unbounded(value) ?? (fraction === undefined ? grouped : `${grouped}.${fraction}`)
}

const superscripts = '⁰¹²³⁴⁵⁶⁷⁸⁹'

function scientific(value: number, precision: number): string {
  const [mantissa = '', exponent = '0'] = value.toExponential(precision).split('e')
  const digits = exponent.replace(/^[+-]/, '').padStart(2, '0')
  const raised = Array.from(digits, (digit) => superscripts[Number(digit)]).join('')
  return unbounded(value) ?? `${mantissa}\u202f×\u202f10${exponent.startsWith('-') ? '⁻' : ''}${raised}`
}

function typeName(value: unknown): string {
  if (value === null) return 'null_type'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'bigint') return 'int'
  if (typeof value === 'number') return 'double'
  if (typeof value === 'string') return 'string'
  if (value instanceof Uint8Array) return 'bytes'
  if (value instanceof Date) return 'google.protobuf.Timestamp'
  if (value instanceof Duration) return 'google.protobuf.Duration'
  if (Array.isArray(value)) return 'list'
  return value instanceof UnsignedInt ? 'uint' : 'map'
}

/** Formats a value for `%s`. */
function display(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(displayWithin).join(', ')}]`
  if (value instanceof Date) return timestampText(value)
  if (value instanceof Duration) return durationText(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString()
  if (typeof value === 'number') return doubleText(value)
  if (typeof value !== 'object' || value === null || value instanceof UnsignedInt) return String(value)
  const entries = value instanceof Map ? [...value] : Object.entries(value)
  const pairs = entries.map(([key, entry]) => `${displayWithin(key)}:${displayWithin(entry)}`)
  return `{${pairs.sort().join(', ')}}`
}

/** Formats a value inside a list or map, as CEL source. */
function displayWithin(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (value instanceof Uint8Array) return `b${JSON.stringify(Buffer.from(value).toString())}`
  if (value instanceof Date) return `timestamp(${JSON.stringify(timestampText(value))})`
  if (value instanceof Duration) return `duration(${JSON.stringify(durationText(value))})`
  if (typeof value === 'number' && Number.isFinite(value)) return value.toFixed(defaultPrecision)
  if (typeof value === 'number') return JSON.stringify(doubleText(value))
  return display(value)
}

/** Formats a double as `string()` does. */
function doubleText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  if (value === Number.NEGATIVE_INFINITY) return '-Inf'
  return String(value)
}
