import { WireWriter } from './wire-writer.ts'

type Json = Readonly<Record<string, unknown>>

/** How a field is encoded: once, once per item, once per key, or as a message with the items. */
type Form = 'single' | 'list' | 'named' | 'wrapped'

interface Field {
  readonly number: number
  readonly form: Form
  /** `string`, `bool`, `any` (a value as YAML text), a message or a union. */
  readonly type: string
}

interface Message {
  readonly fields: ReadonlyMap<string, Field>
  /** For keys that begin with `x-`. */
  readonly extensions: Field | undefined
  /** For every other key. */
  readonly others: Field | undefined
}

/**
 * The used messages of gnostic's `openapiv2/OpenAPIv2.proto`: number, JSON key and type of each field. `[]` is a list,
 * `{}` a name-value entry per key, `()` a message with one or several items.
 */
const descriptions: Readonly<Record<string, string>> = {
  Document: '1 swagger string|2 info Info|8 paths Paths|9 definitions Definitions|16 x-* {}any',
  Info: '1 title string|2 version string|3 description string|7 x-* {}any',
  Paths: '1 x-* {}any|2 * {}PathItem',
  PathItem:
    '2 get Operation|3 put Operation|4 post Operation|5 delete Operation|6 options Operation|' +
    '7 head Operation|8 patch Operation|9 parameters []ParametersItem|10 x-* {}any',
  Operation:
    '1 tags []string|2 summary string|3 description string|5 operationId string|6 produces []string|' +
    '7 consumes []string|8 parameters []ParametersItem|9 responses Responses|10 schemes []string|' +
    '11 deprecated bool|13 x-* {}any',
  BodyParameter: '1 description string|2 name string|3 in string|4 required bool|5 schema Schema|6 x-* {}any',
  PathParameter:
    '1 required bool|2 in string|3 description string|4 name string|5 type string|6 format string|' +
    '9 default any|19 uniqueItems bool|20 enum []any|22 x-* {}any',
  QueryParameter:
    '1 required bool|2 in string|3 description string|4 name string|6 type string|7 format string|' +
    '10 default any|20 uniqueItems bool|21 enum []any|23 x-* {}any',
  Responses: '1 * {}ResponseValue|2 x-* {}any',
  Response: '1 description string|2 schema SchemaItem|5 x-* {}any',
  Reference: '1 $ref string|2 description string',
  Definitions: '1 * {}Schema',
  Properties: '1 * {}Schema',
  Schema:
    '1 $ref string|2 format string|3 title string|4 description string|5 default any|' +
    '19 required []string|20 enum []any|21 additionalProperties AdditionalProperties|22 type ()string|' +
    '23 items ()Schema|24 allOf []Schema|25 properties Properties|31 x-* {}any',
}

/** Union messages: the number and type for a value. */
const unions: Readonly<Record<string, (value: unknown) => readonly [number: number, type: string]>> = {
  AdditionalProperties: (value) => (typeof value === 'boolean' ? [2, 'bool'] : [1, 'Schema']),
  ParametersItem: (value) => (isReference(value) ? [2, 'Reference'] : [1, 'Parameter']),
  Parameter: (value) => (placeOf(value) === 'body' ? [1, 'BodyParameter'] : [2, 'NonBodyParameter']),
  NonBodyParameter: (value) => (placeOf(value) === 'path' ? [4, 'PathParameter'] : [3, 'QueryParameter']),
  ResponseValue: (value) => (isReference(value) ? [2, 'Reference'] : [1, 'Response']),
  SchemaItem: () => [1, 'Schema'],
}

const messages = new Map(Object.entries(descriptions).map(([name, text]) => [name, parseMessage(text)]))

/**
 * Encodes an OpenAPI 2 document in the protobuf form that Kubernetes clients request. Keys that the form does not have
 * are omitted.
 */
export function encodeOpenApiV2(document: object): Uint8Array {
  const writer = new WireWriter()
  writeFields(writer, 'Document', document as Json)
  return writer.finish()
}

function parseMessage(text: string): Message {
  const fields = new Map<string, Field>()
  for (const part of text.split('|')) {
    const [number = '', key = '', type = ''] = part.split(' ')
    fields.set(key, { number: Number(number), form: formOf(type), type: type.replace(/^\W+/, '') })
  }
  const extensions = fields.get('x-*')
  const others = fields.get('*')
  fields.delete('x-*')
  fields.delete('*')
  return { fields, extensions, others }
}

function formOf(type: string): Form {
  if (type.startsWith('[]')) return 'list'
  if (type.startsWith('{}')) return 'named'
  return type.startsWith('()') ? 'wrapped' : 'single'
}

function writeFields(writer: WireWriter, type: string, value: Json): void {
  const message = messages.get(type)
  if (message === undefined) throw new Error(`no OpenAPI message ${type}`)
  for (const [key, content] of Object.entries(value)) {
    const field =
      message.fields.get(key) ?? (key.startsWith('x-') ? message.extensions : undefined) ?? message.others
    if (field !== undefined && content !== undefined) writeField(writer, field, key, content)
  }
}

function writeField(writer: WireWriter, field: Field, key: string, content: unknown): void {
  const { number, form, type } = field
  switch (form) {
    case 'single':
      writeValue(writer, number, type, content)
      break
    case 'list':
      for (const item of itemsOf(content)) writeValue(writer, number, type, item)
      break
    case 'named':
      writer.message(number, () => {
        writer.text(1, key)
        writeValue(writer, 2, type, content)
      })
      break
    case 'wrapped':
      writer.message(number, () => {
        for (const item of itemsOf(content)) writeValue(writer, 1, type, item)
      })
      break
    default:
      form satisfies never
  }
}

function writeValue(writer: WireWriter, number: number, type: string, value: unknown): void {
  if (type === 'string') writer.text(number, String(value))
  else if (type === 'bool') writer.bool(number, value === true)
  // JSON is valid YAML.
  else if (type === 'any') writer.message(number, () => writer.text(2, JSON.stringify(value)))
  else
    writer.message(number, () => {
      const choose = unions[type]
      if (choose === undefined) writeFields(writer, type, value as Json)
      else writeValue(writer, ...choose(value), value)
    })
}

function itemsOf(content: unknown): readonly unknown[] {
  return Array.isArray(content) ? content : [content]
}

function isReference(value: unknown): boolean {
  return (value as Json)['$ref'] !== undefined
}

function placeOf(parameter: unknown): unknown {
  return (parameter as Json)['in']
}
