/** Values checked against the schemas of an OpenAPI 3.0 document. */
import { isIPv4 } from 'node:net'

/** The part of an OpenAPI 3.0 schema that is understood. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly nullable?: boolean
  readonly enum?: readonly unknown[]
  readonly pattern?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly uniqueItems?: boolean
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: boolean
  readonly exclusiveMaximum?: boolean
  readonly oneOf?: readonly Schema[]
}

/** The last line says nothing about a value. */
const understood: ReadonlySet<string> = new Set(
  `$ref type format nullable enum pattern properties additionalProperties required items uniqueItems oneOf
  minItems maxItems minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum
  description readOnly writeOnly example default title deprecated`.split(/\s+/),
)

/** Formats of texts; those of numbers are told by their type. */
const formats: Readonly<Record<string, (text: string) => boolean>> = {
  uuid: (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text),
  'date-time': (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text),
  ipv4: (text) => isIPv4(text),
  byte: (text) => /^[A-Za-z0-9+/]*={0,2}$/.test(text),
}

type Fields = Readonly<Record<string, unknown>>

/** Complaints about a value at a path; none when it fits. */
type Check = (value: unknown, path: string) => readonly string[]

const fine: readonly string[] = []

/** Checks by schema. A field that its schema does not declare is a complaint, too. */
export class SchemaChecker {
  readonly #schemas: Readonly<Record<string, Schema>>
  readonly #tolerated: ReadonlySet<string>
  readonly #checks = new Map<Schema, Check>()

  /** @param tolerated names of undeclared fields that live replies carry as well. */
  constructor(schemas: Readonly<Record<string, Schema>>, tolerated: readonly string[] = []) {
    this.#schemas = schemas
    this.#tolerated = new Set(tolerated)
  }

  /** @throws Error when the schema uses a keyword that is not understood. */
  check(schema: Schema, value: unknown, path = '$'): readonly string[] {
    return this.#compiled(schema)(value, path)
  }

  /** The schema itself, references followed. */
  resolve(schema: Schema): Schema {
    const name = schema.$ref?.split('/').at(-1)
    if (name === undefined) return schema
    const known = this.#schemas[name]
    if (known === undefined) throw new Error(`the document has no schema ${name}`)
    return this.resolve(known)
  }

  #compiled(schema: Schema): Check {
    const known = this.#checks.get(schema)
    if (known !== undefined) return known
    const strange = Object.keys(schema).find((keyword) => !understood.has(keyword))
    if (strange !== undefined) throw new Error(`the schema keyword ${strange} is not understood`)
    // A schema may contain itself: what refers to it meanwhile finds it here.
    let compiled: Check | undefined
    this.#checks.set(schema, (value, path) => compiled?.(value, path) ?? fine)
    compiled = schema.$ref === undefined ? this.#nullable(schema) : this.#reference(schema)
    this.#checks.set(schema, compiled)
    return compiled
  }

  #reference(schema: Schema): Check {
    const check = this.#compiled(this.resolve(schema))
    if (schema.nullable !== true) return check
    return (value, path) => (value === null ? fine : check(value, path))
  }

  #nullable(schema: Schema): Check {
    const check = this.#typed(schema)
    const nothing = schema.nullable === true ? () => fine : (path: string) => [`${path} is null`]
    return (value, path) => (value === null ? nothing(path) : check(value, path))
  }

  #typed(schema: Schema): Check {
    const { enum: values, oneOf } = schema
    if (oneOf !== undefined) return this.#oneOf(oneOf)
    if (values !== undefined) {
      return (value, path) => (values.includes(value) ? fine : [`${path} is ${String(value)}`])
    }
    if (schema.type === 'object' || schema.properties !== undefined) return this.#object(schema)
    if (schema.type === 'array') return this.#array(schema)
    if (schema.type === 'string') return textCheck(schema)
    if (schema.type === 'integer' || schema.type === 'number') return numberCheck(schema)
    if (schema.type === undefined) return () => fine
    const { type } = schema
    return (value, path) => (typeof value === type ? fine : [`${path} is no ${type}`])
  }

  #oneOf(schemas: readonly Schema[]): Check {
    const checks = schemas.map((schema) => this.#compiled(schema))
    return (value, path) => {
      const fitting = checks.filter((check) => check(value, path).length === 0).length
      return fitting === 1 ? fine : [`${path} fits ${fitting} of ${checks.length} alternatives, not one`]
    }
  }

  #object(schema: Schema): Check {
    const { required = [], properties = {}, additionalProperties } = schema
    const checks = new Map(Object.entries(properties).map(([name, child]) => [name, this.#compiled(child)]))
    const others = additionalProperties === undefined ? undefined : this.#compiled(additionalProperties)
    return (value, path) => {
      if (typeof value !== 'object' || Array.isArray(value)) return [`${path} is not an object`]
      const fields = value as Fields
      const complaints: string[] = []
      for (const name of required) {
        if (fields[name] === undefined) complaints.push(`${path}.${name} is missing`)
      }
      for (const [name, field] of Object.entries(fields)) {
        if (field === undefined) continue
        const check = checks.get(name) ?? others
        if (check !== undefined) complaints.push(...check(field, `${path}.${name}`))
        else if (!this.#tolerated.has(name)) complaints.push(`${path}.${name} is not declared`)
      }
      return complaints
    }
  }

  #array(schema: Schema): Check {
    const { items = {}, uniqueItems = false, minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema
    const check = this.#compiled(items)
    return (value, path) => {
      if (!Array.isArray(value)) return [`${path} is not a list`]
      const list = value as readonly unknown[]
      const complaints = list.flatMap((item) => check(item, `${path}[]`))
      if (list.length < minItems || list.length > maxItems)
        complaints.push(`${path} has ${list.length} items`)
      if (uniqueItems && new Set(list.map((item) => JSON.stringify(item))).size < list.length) {
        complaints.push(`${path} has duplicates`)
      }
      return complaints
    }
  }
}

function textCheck({ minLength = 0, maxLength = Number.POSITIVE_INFINITY, ...schema }: Schema): Check {
  const { format = '' } = schema
  const pattern = schema.pattern === undefined ? undefined : new RegExp(schema.pattern)
  const isFormed = formats[format]
  return (value, path) => {
    if (typeof value !== 'string') return [`${path} is not a string`]
    if (value.length < minLength || value.length > maxLength)
      return [`${path} has ${value.length} characters`]
    if (pattern?.test(value) === false) return [`${path} is not as ${schema.pattern}: ${value}`]
    return isFormed?.(value) === false ? [`${path} is no ${format}: ${value}`] : fine
  }
}

function numberCheck(schema: Schema): Check {
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema
  return (value, path) => {
    const isNumber = schema.type === 'integer' ? Number.isInteger(value) : typeof value === 'number'
    if (!isNumber) return [`${path} is no ${schema.type}`]
    const number = value as number
    const isLow = schema.exclusiveMinimum === true ? number <= minimum : number < minimum
    const isHigh = schema.exclusiveMaximum === true ? number >= maximum : number > maximum
    return isLow || isHigh ? [`${path} is out of bounds: ${number}`] : fine
  }
}
