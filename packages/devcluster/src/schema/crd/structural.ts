import { ownValue } from '@tenon/api'
import type { FieldError } from '../../contract.ts'
import { compileExpression } from '@tenon/cel'
import { jsonEqual } from '../shape-node.ts'
import { compileRules } from './cel-compilation.ts'
import { compileSchema } from './compiled-schema.ts'
import { applySchemaDefaults } from './defaulting.ts'
import type { JsonSchema } from './json-schema.ts'
import { validateValue } from './value-validation.ts'

const types = ['array', 'boolean', 'integer', 'number', 'object', 'string']

/** Keywords that define structure, which are only allowed outside of allOf, anyOf, oneOf and not. */
const structureKeywords = [
  'type',
  'description',
  'title',
  'default',
  'nullable',
  'additionalProperties',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
] as const

/** Keywords that a structural schema may not contain at all. */
const forbiddenKeywords = [
  '$ref',
  'definitions',
  'dependencies',
  'patternProperties',
  'additionalItems',
  'id',
  'deprecated',
  'discriminator',
  'readOnly',
  'writeOnly',
  'xml',
]

type Report = (kind: FieldError['kind'], field: string, detail: string, value?: unknown) => void

/** Why a CRD's schema is not structural or invalid; empty if it is valid. */
export function structuralErrors(schema: JsonSchema, path: string): readonly FieldError[] {
  const errors: FieldError[] = []
  const report: Report = (kind, field, detail, value) => {
    errors.push({ kind, field, detail, ...(value === undefined ? {} : { value }) })
  }
  if (schema.type === undefined) report('required', `${path}.type`, 'must not be empty at the root')
  else if (schema.type !== 'object')
    report('invalid', `${path}.type`, 'must be object at the root', schema.type)
  checkNode(schema, path, report, true)
  if (errors.length === 0) checkDefaults(schema, path, errors)
  return errors
}

function checkNode(schema: JsonSchema, path: string, report: Report, isRoot: boolean): void {
  checkType(schema, path, report, isRoot)
  checkKeywords(schema, path, report)
  checkListsAndMaps(schema, path, report)
  checkCombinations(schema, path, report)
  for (const { index, field, message } of compileRules(schema).errors) {
    const rule = schema['x-kubernetes-validations']?.[index]
    report('invalid', `${path}.x-kubernetes-validations[${index}].${field}`, message, rule?.[field])
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (isRoot && name === 'metadata') continue
    checkNode(property, `${path}.properties[${name}]`, report, false)
  }
  if (schema.items !== undefined) checkNode(schema.items, `${path}.items`, report, false)
  if (typeof schema.additionalProperties === 'object') {
    checkNode(schema.additionalProperties, `${path}.additionalProperties`, report, false)
  }
}

function checkType(schema: JsonSchema, path: string, report: Report, isRoot: boolean): void {
  if (schema.type !== undefined) {
    if (!types.includes(schema.type)) {
      const supported = types.map((type) => JSON.stringify(type)).join(', ')
      report('notSupported', `${path}.type`, `supported values: ${supported}`, schema.type)
    }
    return
  }
  const free =
    schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true
  if (!free && !isRoot) report('required', `${path}.type`, 'must not be empty for specified object fields')
}

function checkKeywords(schema: JsonSchema, path: string, report: Report): void {
  for (const keyword of forbiddenKeywords) {
    if (schema[keyword as keyof JsonSchema] !== undefined)
      report('forbidden', `${path}.${keyword}`, `${keyword} is not supported`)
  }
  if (schema.uniqueItems === true) {
    report(
      'forbidden',
      `${path}.uniqueItems`,
      'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
    )
  }
  checkPattern(schema, path, report)
  if (schema['x-kubernetes-embedded-resource'] === true) {
    if (schema.type !== 'object') {
      report(
        'invalid',
        `${path}.type`,
        'must be object if x-kubernetes-embedded-resource is true',
        schema.type ?? '',
      )
    }
    if (schema.properties === undefined && schema['x-kubernetes-preserve-unknown-fields'] !== true) {
      report(
        'required',
        `${path}.properties`,
        'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
      )
    }
  }
}

function checkListsAndMaps(schema: JsonSchema, path: string, report: Report): void {
  if (schema.type === 'array' && schema.items === undefined) {
    report('required', `${path}.items`, 'must be specified')
  }
  if (schema.properties !== undefined && schema.additionalProperties !== undefined) {
    report('forbidden', `${path}.additionalProperties`, 'must not be used in conjunction with properties')
  }
  if (schema.additionalProperties === false) {
    report('forbidden', `${path}.additionalProperties`, 'must not be set to false')
  }
  const mapType = schema['x-kubernetes-map-type']
  if (mapType !== undefined && mapType !== 'atomic' && mapType !== 'granular') {
    report('notSupported', `${path}.x-kubernetes-map-type`, 'supported values: "atomic", "granular"', mapType)
  }
  checkListType(schema, path, report)
}

function checkListType(schema: JsonSchema, path: string, report: Report): void {
  const listType = schema['x-kubernetes-list-type']
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  if (listType === undefined) {
    if (keys.length > 0)
      report(
        'required',
        `${path}.x-kubernetes-list-type`,
        'must be map if x-kubernetes-list-map-keys is non-empty',
      )
    return
  }
  if (!['atomic', 'set', 'map'].includes(listType)) {
    report(
      'notSupported',
      `${path}.x-kubernetes-list-type`,
      'supported values: "atomic", "map", "set"',
      listType,
    )
  }
  if (schema.type !== 'array') {
    report(
      'invalid',
      `${path}.type`,
      'must be array if x-kubernetes-list-type is specified',
      schema.type ?? '',
    )
  }
  if (listType !== 'map') return
  if (keys.length === 0) {
    report(
      'required',
      `${path}.x-kubernetes-list-map-keys`,
      'must not be empty if x-kubernetes-list-type is map',
    )
  }
  for (const [index, key] of keys.entries())
    checkMapKey(schema, key, `${path}.x-kubernetes-list-map-keys[${index}]`, path, report)
}

function checkMapKey(schema: JsonSchema, key: string, keyPath: string, path: string, report: Report): void {
  const property = ownValue(schema.items?.properties, key)
  if (property === undefined) {
    report('invalid', keyPath, 'entries must all be names of item properties', key)
  } else if (property.default === undefined && schema.items?.required?.includes(key) !== true) {
    report(
      'required',
      `${path}.items.properties[${key}].default`,
      'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
    )
  }
}

function checkPattern(schema: JsonSchema, path: string, report: Report): void {
  if (schema.pattern === undefined || schema.pattern === '') return
  const { error } = compileExpression(schema.pattern)
  if (error === undefined) return
  const words = `must be a valid regular expression, but isn't: ${error}`
  report('invalid', `${path}.pattern`, words, schema.pattern)
}

function checkCombinations(schema: JsonSchema, path: string, report: Report): void {
  const mayHaveTypes = isIntOrString(schema.anyOf)
  for (const keyword of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const [index, part] of (schema[keyword] ?? []).entries()) {
      const isFirstOfAll = keyword === 'allOf' && index === 0
      const mayHaveType = keyword === 'anyOf' && mayHaveTypes
      checkPart(part, `${path}.${keyword}[${index}]`, report, { mayHaveType, isFirstOfAll })
    }
  }
  if (schema.not !== undefined) {
    checkPart(schema.not, `${path}.not`, report, { mayHaveType: false, isFirstOfAll: false })
  }
}

/** The only combination whose parts may have a type: `[{ type: integer }, { type: string }]`. */
function isIntOrString(parts: readonly JsonSchema[] | undefined): boolean {
  return jsonEqual(parts, [{ type: 'integer' }, { type: 'string' }])
}

interface PartPlace {
  readonly mayHaveType: boolean
  /** Whether the first part of a top-level `allOf` may also be this int-or-string combination. */
  readonly isFirstOfAll: boolean
}

/** A part of allOf, anyOf, oneOf or not: it may restrict values but not define structure. */
function checkPart(part: JsonSchema, path: string, report: Report, place: PartPlace): void {
  for (const keyword of structureKeywords) {
    if (part[keyword] === undefined || (keyword === 'type' && place.mayHaveType)) continue
    report('forbidden', `${path}.${keyword}`, 'must be empty to be structural')
  }
  checkPattern(part, path, report)
  const nested: PartPlace = { mayHaveType: false, isFirstOfAll: false }
  for (const [name, property] of Object.entries(part.properties ?? {})) {
    checkPart(property, `${path}.properties[${name}]`, report, nested)
  }
  if (part.items !== undefined) checkPart(part.items, `${path}.items`, report, nested)
  for (const keyword of ['allOf', 'anyOf', 'oneOf'] as const) {
    const mayHaveType = keyword === 'anyOf' && place.isFirstOfAll && isIntOrString(part.anyOf)
    for (const [index, child] of (part[keyword] ?? []).entries()) {
      checkPart(child, `${path}.${keyword}[${index}]`, report, { mayHaveType, isFirstOfAll: false })
    }
  }
  if (part.not !== undefined) checkPart(part.not, `${path}.not`, report, nested)
}

/** Defaults must be valid themselves. */
function checkDefaults(schema: JsonSchema, path: string, errors: FieldError[]): void {
  if (schema.default !== undefined) {
    validateValue(
      applySchemaDefaults(schema.default, schema),
      undefined,
      compileSchema(schema),
      `${path}.default`,
      errors,
    )
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    checkDefaults(property, `${path}.properties[${name}]`, errors)
  }
  if (schema.items !== undefined) checkDefaults(schema.items, `${path}.items`, errors)
  if (typeof schema.additionalProperties === 'object') {
    checkDefaults(schema.additionalProperties, `${path}.additionalProperties`, errors)
  }
}
