import { isIPv4 } from 'node:net'

/** The part of an OpenAPI 3.0 schema that the API document uses. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly nullable?: boolean
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly uniqueItems?: boolean
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: boolean
}

type Fields = Readonly<Record<string, unknown>>

const formats: Readonly<Record<string, (text: string) => boolean>> = {
  uuid: (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text),
  'date-time': (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text),
  ipv4: (text) => isIPv4(text),
}

/** Complaints about a value, each with its path; fields that the schema does not know are one, too. */
export class SchemaChecker {
  readonly #schemas: Readonly<Record<string, Schema>>
  readonly #tolerated: ReadonlySet<string>

  /** @param tolerated names of undeclared fields that live replies carry as well. */
  constructor(schemas: Readonly<Record<string, Schema>>, tolerated: readonly string[]) {
    this.#schemas = schemas
    this.#tolerated = new Set(tolerated)
  }

  check(schema: Schema, value: unknown, path = '$'): string[] {
    const known = this.#resolve(schema)
    if (value === null) return known.nullable === true ? [] : [`${path} is null`]
    if (known.enum !== undefined && !known.enum.includes(value)) return [`${path} is ${String(value)}`]
    if (known.type === 'object') return this.#object(known, value, path)
    if (known.type === 'array') return this.#array(known, value, path)
    if (known.type === 'string') return textComplaints(known, value, path)
    if (known.type === 'integer') return integerComplaints(known, value, path)
    return typeof value === known.type ? [] : [`${path} is no ${String(known.type)}`]
  }

  #resolve(schema: Schema): Schema {
    const name = schema.$ref?.split('/').at(-1)
    return name === undefined ? schema : (this.#schemas[name] ?? {})
  }

  #object(schema: Schema, value: unknown, path: string): string[] {
    if (typeof value !== 'object' || Array.isArray(value)) return [`${path} is no object`]
    const fields = value as Fields
    const missing = (schema.required ?? []).filter((name) => fields[name] === undefined)
    return [
      ...missing.map((name) => `${path}.${name} is missing`),
      ...Object.entries(fields).flatMap(([name, field]) => {
        const child = schema.properties?.[name] ?? schema.additionalProperties
        if (child !== undefined) return this.check(child, field, `${path}.${name}`)
        return this.#tolerated.has(name) ? [] : [`${path}.${name} is not declared`]
      }),
    ]
  }

  #array(schema: Schema, value: unknown, path: string): string[] {
    if (!Array.isArray(value)) return [`${path} is no list`]
    const distinct = new Set(value.map((item) => JSON.stringify(item))).size
    return [
      ...(schema.uniqueItems === true && distinct < value.length ? [`${path} has duplicates`] : []),
      ...(value.length > (schema.maxItems ?? Number.POSITIVE_INFINITY) ? [`${path} is too long`] : []),
      ...value.flatMap((item, index) => this.check(schema.items ?? {}, item, `${path}[${index}]`)),
    ]
  }
}

function textComplaints(schema: Schema, value: unknown, path: string): string[] {
  if (typeof value !== 'string') return [`${path} is no text`]
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, format = '' } = schema
  if (value.length < minLength || value.length > maxLength) return [`${path} has ${value.length} characters`]
  return formats[format]?.(value) === false ? [`${path} is no ${format}: ${value}`] : []
}

function integerComplaints(schema: Schema, value: unknown, path: string): string[] {
  if (typeof value !== 'number' || !Number.isInteger(value)) return [`${path} is no integer`]
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema
  const tooLow = schema.exclusiveMinimum === true ? value <= minimum : value < minimum
  return tooLow || value > maximum ? [`${path} is out of bounds: ${value}`] : []
}
