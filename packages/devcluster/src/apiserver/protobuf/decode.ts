import { wireFields } from '@tenon/api'
import { rfc3339, rfc3339Micro } from '@tenon/runtime'
import { type WireValue, WireReader } from './wire-reader.ts'

/** A field of a message, from the table. */
interface Field {
  readonly name: string
  readonly form: 'single' | 'list' | 'map'
  /** It is only sent if set, so a zero is a value. */
  readonly pointer: boolean
  /** In JSON, its fields are fields of the parent. */
  readonly inlined: boolean
  /** Scalar type or message name. */
  readonly type: string
}

type Json = Record<string, unknown>

const messages = new Map<string, ReadonlyMap<number, Field>>()

/** Prefix of every encoded object. */
const magic = [0x6b, 0x38, 0x73, 0x00]

const groupPackages: Readonly<Record<string, string>> = {
  'rbac.authorization.k8s.io': 'rbac',
  'flowcontrol.apiserver.k8s.io': 'flowcontrol',
}

/**
 * Decodes an object in the protobuf format of Kubernetes clients.
 * @returns the object as JSON, or `undefined` if it is malformed or of an unknown kind.
 */
export function decodeProtobuf(bytes: Uint8Array): Json | undefined {
  if (!magic.every((byte, index) => bytes[index] === byte)) return undefined
  try {
    const envelope = fieldsOf(new WireReader(bytes.subarray(magic.length)))
    const typeMeta = fieldsOf(new WireReader(bytesOf(envelope.get(1))))
    const apiVersion = textOf(typeMeta.get(1))
    const kind = textOf(typeMeta.get(2))
    const message = messageName(apiVersion, kind)
    if (message === undefined) return undefined
    return { apiVersion, kind, ...decodeMessage(message, bytesOf(envelope.get(2))) }
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function messageName(apiVersion: string, kind: string): string | undefined {
  const [first = '', second] = apiVersion.split('/')
  const group = second === undefined ? 'core' : first
  const name = `${groupPackages[group] ?? group.split('.')[0]}.${second ?? first}.${kind}`
  const meta = `meta.v1.${kind}`
  if (wireFields[name] !== undefined) return name
  return wireFields[meta] === undefined ? undefined : meta
}

function fieldsOf(reader: WireReader): Map<number, WireValue> {
  const fields = new Map<number, WireValue>()
  for (let entry = reader.next(); entry !== undefined; entry = reader.next())
    fields.set(entry.number, entry.value)
  return fields
}

function bytesOf(value: WireValue | undefined): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array()
}

function textOf(value: WireValue | undefined): string {
  return new TextDecoder().decode(bytesOf(value))
}

function numberOf(value: WireValue | undefined): number {
  return typeof value === 'bigint' ? Number(BigInt.asIntN(64, value)) : 0
}

function descriptionOf(message: string): ReadonlyMap<number, Field> {
  let fields = messages.get(message)
  if (fields === undefined) {
    fields = new Map(
      (wireFields[message] ?? '')
        .split('|')
        .filter((text) => text !== '')
        .map(parseField),
    )
    messages.set(message, fields)
  }
  return fields
}

function parseField(text: string): [number, Field] {
  const [number = '', name = '', type = ''] = text.split(' ')
  const form = type.startsWith('[]') ? 'list' : type.startsWith('{}') ? 'map' : 'single'
  const plain = type.replace(/^(\[\]|\{\})/, '')
  const field: Field = {
    name,
    form,
    pointer: plain.startsWith('*'),
    inlined: plain.startsWith('^'),
    type: plain.replace(/^[*^]/, ''),
  }
  return [Number(number), field]
}

function decodeMessage(message: string, bytes: Uint8Array): Json {
  const fields = descriptionOf(message)
  const result: Json = {}
  const reader = new WireReader(bytes)
  for (let entry = reader.next(); entry !== undefined; entry = reader.next()) {
    const field = fields.get(entry.number)
    if (field !== undefined) put(result, field, entry.value)
  }
  return result
}

function put(result: Json, field: Field, wire: WireValue): void {
  const { name, type } = field
  if (field.form === 'map') {
    const pair = fieldsOf(new WireReader(bytesOf(wire)))
    const map = (result[name] ?? {}) as Json
    result[name] = { ...map, [textOf(pair.get(1))]: decodeValue(type, pair.get(2) ?? new Uint8Array()) }
    return
  }
  const value = decodeValue(type, wire)
  if (field.form === 'list') result[name] = [...((result[name] ?? []) as unknown[]), value]
  else if (field.inlined) Object.assign(result, value)
  // Clients send zero values of everything that is not a pointer; JSON omits them.
  else if (field.pointer || !isZero(value)) result[name] = value
}

function isZero(value: unknown): boolean {
  return value === undefined || value === '' || value === false || value === 0
}

function decodeValue(type: string, wire: WireValue): unknown {
  switch (type) {
    case 'string':
      return textOf(wire)
    case 'bool':
      return wire === 1n
    case 'int32':
    case 'int64':
    case 'uint32':
    case 'uint64':
      return numberOf(wire)
    case 'double':
      return typeof wire === 'number' ? wire : 0
    case 'bytes':
      return Buffer.from(bytesOf(wire)).toString('base64')
    default:
      return special(type, bytesOf(wire))
  }
}

/** Messages whose JSON is not an object with their fields. */
function special(type: string, bytes: Uint8Array): unknown {
  if (type === 'api.resource.Quantity') return textOf(fieldsOf(new WireReader(bytes)).get(1))
  if (type === 'util.intstr.IntOrString') return intOrString(bytes)
  if (type === 'meta.v1.Time') return time(bytes, rfc3339)
  if (type === 'meta.v1.MicroTime') return time(bytes, rfc3339Micro)
  if (type === 'meta.v1.FieldsV1' || type === 'runtime.RawExtension') {
    const text = textOf(fieldsOf(new WireReader(bytes)).get(1))
    return text === '' ? undefined : JSON.parse(text)
  }
  const decoded = decodeMessage(type, bytes)
  // A named list type is a message with the items.
  return type.endsWith('.ExtraValue') ? (decoded['items'] ?? []) : decoded
}

function intOrString(bytes: Uint8Array): number | string {
  const fields = fieldsOf(new WireReader(bytes))
  return fields.get(1) === 1n ? textOf(fields.get(3)) : numberOf(fields.get(2))
}

function time(bytes: Uint8Array, format: (ms: number) => string): string | undefined {
  if (bytes.length === 0) return undefined
  const fields = fieldsOf(new WireReader(bytes))
  return format(numberOf(fields.get(1)) * 1000 + numberOf(fields.get(2)) / 1e6)
}
