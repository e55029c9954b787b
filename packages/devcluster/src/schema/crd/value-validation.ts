import { isRecord, ownValue } from '@tenon/api'
import type { FieldError } from '../../contract.ts'
import { jsonEqual } from '../shape-node.ts'
import type { CompiledSchema } from './compiled-schema.ts'
import { fitsIntegerFormat, hasFormat } from './formats.ts'
import { fieldPath, type JsonSchema } from './json-schema.ts'

/**
 * Validates a value with a CRD's schema, except CEL rules, worded like the API server. `old` is the stored value for an
 * update: unchanged values are accepted even if the schema became stricter.
 */
export function validateValue(
  value: unknown,
  old: unknown,
  node: CompiledSchema,
  path: string,
  errors: FieldError[],
): void {
  if (old !== undefined && jsonEqual(value, old)) return
  if (!checkType(value, node, path, errors)) return
  if (value === null) return
  checkEnum(value, node.schema, path, errors)
  if (typeof value === 'string') checkString(value, node, path, errors)
  else if (typeof value === 'number') checkNumber(value, node.schema, path, errors)
  else if (Array.isArray(value)) checkList(value, old, node, path, errors)
  else if (isRecord(value)) checkRecord(value, isRecord(old) ? old : undefined, node, path, errors)
  checkCombinations(value, node, path, errors)
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

function inBody(path: string, words: string): string {
  return `${path} in body ${words}`
}

/** Returns false if the value cannot be checked further. */
function checkType(value: unknown, node: CompiledSchema, path: string, errors: FieldError[]): boolean {
  const { schema } = node
  const actual = typeOf(value)
  if (node.intOrString) {
    if (actual === 'integer' || actual === 'string' || (actual === 'null' && schema.nullable === true))
      return true
    errors.push(typeError(path, 'integer,string', actual))
    return false
  }
  if (schema.type === undefined || (actual === 'null' && schema.nullable === true)) return true
  if (schema.type === actual || (schema.type === 'number' && actual === 'integer')) return true
  errors.push(typeError(path, schema.type, actual))
  return false
}

function typeError(path: string, expected: string, actual: string): FieldError {
  const detail = inBody(path, `must be of type ${expected}: ${JSON.stringify(actual)}`)
  return { kind: 'typeInvalid', field: path, value: actual, detail }
}

function checkEnum(value: unknown, schema: JsonSchema, path: string, errors: FieldError[]): void {
  if (schema.enum === undefined || schema.enum.some((allowed) => jsonEqual(allowed, value))) return
  const supported = schema.enum.map((allowed) => JSON.stringify(allowed)).join(', ')
  errors.push({ kind: 'notSupported', field: path, value, detail: `supported values: ${supported}` })
}

function invalid(path: string, value: unknown, words: string): FieldError {
  return { kind: 'invalid', field: path, value, detail: inBody(path, words) }
}

/** Only the first problem of a text is reported, besides its format. */
function checkString(value: string, node: CompiledSchema, path: string, errors: FieldError[]): void {
  const { schema } = node
  const wrong = sizeOrPatternError(value, node, path)
  if (wrong !== undefined) errors.push(wrong)
  if (schema.format !== undefined && !node.intOrString && !hasFormat(schema.format, value)) {
    const words = `must be of type ${schema.format}: ${JSON.stringify(value)}`
    errors.push({ ...invalid(path, value, words), kind: 'typeInvalid' })
  }
}

function sizeOrPatternError(value: string, node: CompiledSchema, path: string): FieldError | undefined {
  const { minLength, maxLength, pattern } = node.schema
  // Lengths count code points of one or two UTF-16 units, so most texts need not be counted.
  const units = value.length
  const isNear = units < 2 * (minLength ?? 0) || units > (maxLength ?? units)
  const length = isNear ? Array.from(value).length : units
  if (maxLength !== undefined && length > maxLength) {
    const detail = `may not be more than ${maxLength} bytes`
    return { kind: 'tooLong', field: path, value, detail }
  }
  if (minLength !== undefined && length < minLength) {
    return invalid(path, value, `should be at least ${minLength} chars long`)
  }
  if (node.pattern !== undefined && !node.pattern.matches(value)) {
    return invalid(path, value, `should match '${pattern}'`)
  }
  return undefined
}

function checkNumber(value: number, schema: JsonSchema, path: string, errors: FieldError[]): void {
  const { minimum, maximum } = schema
  if (minimum !== undefined && (schema.exclusiveMinimum === true ? value <= minimum : value < minimum)) {
    const words = schema.exclusiveMinimum === true ? 'greater than' : 'greater than or equal to'
    errors.push(invalid(path, value, `should be ${words} ${minimum}`))
  }
  if (maximum !== undefined && (schema.exclusiveMaximum === true ? value >= maximum : value > maximum)) {
    const words = schema.exclusiveMaximum === true ? 'less than' : 'less than or equal to'
    errors.push(invalid(path, value, `should be ${words} ${maximum}`))
  }
  if (schema.multipleOf !== undefined && !Number.isInteger(value / schema.multipleOf)) {
    errors.push(invalid(path, value, `should be a multiple of ${schema.multipleOf}`))
  }
  if (schema.format !== undefined && !fitsIntegerFormat(schema.format, value)) {
    errors.push(invalid(path, value, `must be of type ${schema.format}: "${value}"`))
  }
}

function checkList(
  list: readonly unknown[],
  old: unknown,
  node: CompiledSchema,
  path: string,
  errors: FieldError[],
): void {
  const { schema, items } = node
  if (schema.maxItems !== undefined && list.length > schema.maxItems) {
    errors.push({
      kind: 'tooMany',
      field: path,
      value: list.length,
      detail: tooMany(list.length, schema.maxItems),
    })
  }
  if (schema.minItems !== undefined && list.length < schema.minItems) {
    errors.push(invalid(path, list.length, `should have at least ${schema.minItems} items`))
  }
  const oldItem = oldItems(old, schema)
  if (items !== undefined) {
    for (const [index, item] of list.entries()) {
      validateValue(item, oldItem(item), items, `${path}[${index}]`, errors)
    }
  }
  checkDuplicates(list, schema, path, errors)
}

function tooMany(actual: number, allowed: number): string {
  return `${actual}: must have at most ${allowed} items`
}

/** Finds the stored item with the identity of a new one, in lists with item identities. */
export function oldItems(old: unknown, schema: JsonSchema): (item: unknown) => unknown {
  if (!Array.isArray(old) || schema['x-kubernetes-list-type'] !== 'map') return () => undefined
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const byKey = new Map<string, unknown>(old.map((item: unknown) => [mapKey(item, keys, schema), item]))
  return (item) => byKey.get(mapKey(item, keys, schema))
}

function mapKey(item: unknown, keys: readonly string[], schema: JsonSchema): string {
  if (!isRecord(item)) return ''
  return JSON.stringify(
    keys.map((key) => ownValue(item, key) ?? ownValue(schema.items?.properties, key)?.default ?? null),
  )
}

function checkDuplicates(
  list: readonly unknown[],
  schema: JsonSchema,
  path: string,
  errors: FieldError[],
): void {
  const listType = schema['x-kubernetes-list-type']
  if (listType !== 'set' && listType !== 'map') return
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const seen = new Set<string>()
  for (const [index, item] of list.entries()) {
    const identity = listType === 'set' ? JSON.stringify(item) : mapKey(item, keys, schema)
    if (seen.has(identity)) {
      const value = listType === 'set' || !isRecord(item) ? item : pick(item, keys)
      errors.push({ kind: 'duplicate', field: `${path}[${index}]`, value, detail: '' })
    }
    seen.add(identity)
  }
}

function pick(item: Readonly<Record<string, unknown>>, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(keys.map((key) => [key, ownValue(item, key)]))
}

function checkRecord(
  record: Readonly<Record<string, unknown>>,
  old: Readonly<Record<string, unknown>> | undefined,
  node: CompiledSchema,
  path: string,
  errors: FieldError[],
): void {
  const { schema } = node
  for (const name of schema.required ?? []) {
    if (ownValue(record, name) === undefined) {
      errors.push({ kind: 'required', field: fieldPath(path, name), detail: '' })
    }
  }
  if (schema.maxProperties !== undefined || schema.minProperties !== undefined) {
    checkSize(Object.keys(record).length, schema, path, errors)
  }
  for (const key in record) {
    const value = ownValue(record, key)
    const child = node.properties.get(key) ?? node.values
    if (child !== undefined && value !== undefined) {
      validateValue(value, ownValue(old, key), child, fieldPath(path, key), errors)
    }
  }
}

function checkSize(size: number, schema: JsonSchema, path: string, errors: FieldError[]): void {
  if (schema.maxProperties !== undefined && size > schema.maxProperties) {
    errors.push({ kind: 'tooMany', field: path, value: size, detail: tooMany(size, schema.maxProperties) })
  }
  if (schema.minProperties !== undefined && size < schema.minProperties) {
    errors.push(invalid(path, size, `should have at least ${schema.minProperties} properties`))
  }
}

function holds(value: unknown, node: CompiledSchema, path: string): boolean {
  const errors: FieldError[] = []
  validateValue(value, undefined, node, path, errors)
  return errors.length === 0
}

function checkCombinations(value: unknown, node: CompiledSchema, path: string, errors: FieldError[]): void {
  for (const part of node.allOf) validateValue(value, undefined, part, path, errors)
  const combination = (words: string): FieldError => ({
    kind: 'invalid',
    field: path,
    value: shownValue(value),
    detail: words,
  })
  if (node.anyOf.length > 0 && !node.anyOf.some((part) => holds(value, part, path))) {
    errors.push(combination(inBody(path, 'must validate at least one schema (anyOf)')))
  }
  if (node.oneOf.length > 0) {
    const valid = node.oneOf.filter((part) => holds(value, part, path)).length
    if (valid !== 1) {
      const found = valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`
      errors.push(combination(inBody(path, `must validate one and only one schema (oneOf). ${found}`)))
    }
  }
  if (node.not !== undefined && holds(value, node.not, path)) {
    errors.push(combination(inBody(path, 'must not validate the schema (not)')))
  }
}

/** Messages show objects and lists by their type. */
function shownValue(value: unknown): unknown {
  return typeof value === 'object' ? typeOf(value) : value
}
