/** Encodes Kubernetes objects as protobuf messages without an envelope, as Go programs read them. */
import { isRecord, type KubeObject, ownValue, wireFields } from '@tenon/api'
import { ProtobufWriter } from './protobuf-writer.ts'

interface Field {
  readonly number: number
  readonly name: string
  readonly form: 'single' | 'list' | 'map'
  /** In JSON, its fields are fields of the parent. */
  readonly isInlined: boolean
  /** Scalar type or message name. */
  readonly type: string
}

type Json = Readonly<Record<string, unknown>>

const messages = new Map<string, readonly Field[]>()

/** @param message such as `core.v1.Pod`. Unknown members are left out. */
export function encodeObject(message: 'core.v1.Pod' | 'core.v1.Node', object: KubeObject): Uint8Array {
  return encodeMessage(message, { ...object })
}

function encodeMessage(message: string, value: Json): Uint8Array {
  const writer = new ProtobufWriter()
  for (const field of fieldsOf(message)) writeField(writer, field, value)
  return writer.finish()
}

function writeField(writer: ProtobufWriter, field: Field, parent: Json): void {
  const { number, name, form, type, isInlined } = field
  if (isInlined) {
    const bytes = encodeMessage(type, parent)
    if (bytes.length > 0) writer.bytes(number, bytes)
    return
  }
  const value = ownValue(parent, name)
  if (value === undefined || value === null) return
  if (form === 'single') writeValue(writer, number, type, value)
  else if (form === 'list' && Array.isArray(value))
    for (const each of value as readonly unknown[]) writeValue(writer, number, type, each)
  else if (form === 'map' && isRecord(value)) {
    for (const [key, each] of Object.entries(value)) {
      const entry = new ProtobufWriter()
      entry.text(1, key)
      writeValue(entry, 2, type, each)
      writer.bytes(number, entry.finish())
    }
  }
}

function writeValue(writer: ProtobufWriter, number: number, type: string, value: unknown): void {
  switch (type) {
    case 'string':
      writer.text(number, String(value))
      break
    case 'bool':
      writer.integer(number, value === true ? 1 : 0)
      break
    case 'int32':
    case 'int64':
    case 'uint32':
    case 'uint64':
      if (Number.isSafeInteger(value)) writer.integer(number, value as number)
      break
    case 'double':
      if (typeof value === 'number') writer.double(number, value)
      break
    case 'bytes':
      writer.bytes(number, Buffer.from(String(value), 'base64'))
      break
    default:
      writer.bytes(number, encodeSpecial(type, value))
  }
}

/** Messages whose JSON is not an object with their fields; all others are encoded by table. */
function encodeSpecial(type: string, value: unknown): Uint8Array {
  const writer = new ProtobufWriter()
  switch (type) {
    case 'api.resource.Quantity':
      writer.text(1, String(value))
      return writer.finish()
    case 'util.intstr.IntOrString':
      writer.integer(1, typeof value === 'number' ? 0 : 1)
      if (typeof value === 'number') writer.integer(2, value)
      else writer.text(3, String(value))
      return writer.finish()
    case 'meta.v1.Time':
    case 'meta.v1.MicroTime': {
      const ms = Date.parse(String(value))
      if (Number.isNaN(ms)) return writer.finish()
      writer.integer(1, Math.floor(ms / 1000))
      writer.integer(2, (ms - Math.floor(ms / 1000) * 1000) * 1e6)
      return writer.finish()
    }
    case 'meta.v1.FieldsV1':
    case 'runtime.RawExtension':
      writer.text(1, JSON.stringify(value))
      return writer.finish()
    default:
      return isRecord(value) ? encodeMessage(type, value) : writer.finish()
  }
}

function fieldsOf(message: string): readonly Field[] {
  const known = messages.get(message)
  if (known !== undefined) return known
  const fields = (ownValue(wireFields, message) ?? '')
    .split('|')
    .filter((text) => text !== '')
    .map(parseField)
  messages.set(message, fields)
  return fields
}

/**
 * A field in the table: `2 spec core.v1.PodSpec`, with `[]` for a list, `{}` for a map, and `*` and `^` as in Go.
 */
function parseField(text: string): Field {
  const [number = '', name = '', type = ''] = text.split(' ')
  const plain = type.replace(/^(?:\[\]|\{\})/, '')
  return {
    number: Number(number),
    name,
    form: type.startsWith('[]') ? 'list' : type.startsWith('{}') ? 'map' : 'single',
    isInlined: plain.startsWith('^'),
    type: plain.replace(/^[*^]/, ''),
  }
}
