import { type ASTNode, Environment, Optional, type ParseResult } from '@marcbachmann/cel-js'
import type { FieldError } from '../../contract.ts'
import { isRecord, jsonEqual } from '../shape-node.ts'
import { registerKubernetesFunctions } from './cel-functions.ts'
import { celValue, escapedName } from './cel-values.ts'
import type { CompiledSchema } from './compiled-schema.ts'
import { fieldPath, type JsonSchema, type ValidationRule } from './json-schema.ts'
import { oldItems } from './value-validation.ts'

/** A validation rule ready to run. */
export interface CompiledRule {
  readonly source: ValidationRule
  readonly program: ParseResult
  readonly message: ParseResult | undefined
  /** Looks at `oldSelf`, so it runs on updates only. */
  readonly isTransition: boolean
}

/** A rule that does not compile: which of its fields, and why. */
export interface RuleError {
  readonly index: number
  readonly field: 'rule' | 'messageExpression'
  readonly message: string
}

const environments = new Map<string, Environment>()

/**
 * Building an environment is expensive; rules of all CRDs share one for each type of `oldSelf`:
 * the value, or an optional that is empty on create.
 */
function environment(oldSelfType: 'dyn' | 'optional'): Environment {
  let shared = environments.get(oldSelfType)
  if (shared === undefined) {
    shared = new Environment({ homogeneousAggregateLiterals: false, enableOptionalTypes: true })
      .registerVariable('self', 'dyn')
      .registerVariable('oldSelf', oldSelfType)
    registerKubernetesFunctions(shared)
    environments.set(oldSelfType, shared)
  }
  return shared
}

/** Compiles the rules of one schema node. */
export function compileRules(schema: JsonSchema): {
  readonly rules: readonly CompiledRule[]
  readonly errors: readonly RuleError[]
} {
  const rules: CompiledRule[] = []
  const errors: RuleError[] = []
  for (const [index, source] of (schema['x-kubernetes-validations'] ?? []).entries()) {
    const program = compileExpression(source, source.rule, schema, 'bool')
    const message =
      source.messageExpression === undefined
        ? undefined
        : compileExpression(source, source.messageExpression, schema, 'string')
    if (typeof program === 'string') errors.push({ index, field: 'rule', message: program })
    if (typeof message === 'string') errors.push({ index, field: 'messageExpression', message })
    if (typeof program === 'string' || typeof message === 'string') continue
    rules.push({ source, program, message, isTransition: names(program.ast, 'oldSelf') })
  }
  return { rules, errors }
}

/** The compiled expression, or why it does not compile. */
function compileExpression(
  source: ValidationRule,
  expression: string,
  schema: JsonSchema,
  type: 'bool' | 'string',
): ParseResult | string {
  let program: ParseResult
  try {
    program = environment(source.optionalOldSelf === true ? 'optional' : 'dyn').parse(expression)
  } catch (error) {
    return compileFailure(error)
  }
  const checked = program.check()
  if (!checked.valid) return compileFailure(checked.error)
  if (checked.type !== type && checked.type !== 'dyn') {
    return type === 'bool'
      ? 'cel expression must evaluate to a bool'
      : 'messageExpression must evaluate to a string'
  }
  const unknown = undefinedField(program.ast, schema)
  return unknown === undefined ? program : `compilation failed: ERROR: undefined field '${unknown}'`
}

function compileFailure(error: unknown): string {
  const summary = error instanceof Error && 'summary' in error ? String(error.summary) : String(error)
  return `compilation failed: ERROR: ${summary}`
}

function isNode(value: unknown): value is ASTNode {
  return isRecord(value) && 'op' in value && 'args' in value
}

function childNodes(node: ASTNode): readonly ASTNode[] {
  const found: ASTNode[] = []
  const collect = (value: unknown): void => {
    if (isNode(value)) found.push(value)
    else if (Array.isArray(value)) for (const item of value) collect(item)
  }
  collect(node.args)
  return found
}

function names(node: ASTNode, variable: string): boolean {
  if (node.op === 'id') return node.args === variable
  return childNodes(node).some((child) => names(child, variable))
}

/** The first field chain from `self` or `oldSelf` that leaves the schema. */
function undefinedField(node: ASTNode, schema: JsonSchema): string | undefined {
  if (node.op === '.' && selected(node.args[0], schema) !== undefined) {
    const parent = selected(node.args[0], schema)
    if (parent !== undefined && isClosed(parent) && fieldOf(parent, node.args[1]) === undefined)
      return node.args[1]
  }
  for (const child of childNodes(node)) {
    const unknown = undefinedField(child, schema)
    if (unknown !== undefined) return unknown
  }
  return undefined
}

function selected(node: ASTNode, schema: JsonSchema): JsonSchema | undefined {
  if (node.op === 'id') return node.args === 'self' || node.args === 'oldSelf' ? schema : undefined
  if (node.op !== '.') return undefined
  const parent = selected(node.args[0], schema)
  return parent === undefined ? undefined : fieldOf(parent, node.args[1])
}

const rootFields: Readonly<Record<string, JsonSchema>> = { apiVersion: {}, kind: {}, metadata: {} }

function fieldOf(schema: JsonSchema, name: string): JsonSchema | undefined {
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    if (escapedName(key) === name) return property
  }
  return rootFields[name]
}

function isClosed(schema: JsonSchema): boolean {
  return (
    schema.type === 'object' && schema.properties !== undefined && schema.additionalProperties === undefined
  )
}

/** Where a rule looks: the JSON value, and the same value as CEL sees it. */
interface Position {
  readonly value: unknown
  readonly cel: unknown
}

/** Runs every rule of an object's schema. `old` is given on update. */
export function validateRules(
  value: unknown,
  old: unknown,
  node: CompiledSchema,
  errors: FieldError[],
): void {
  if (!node.hasRules) return
  const now = { value, cel: celValue(value, node) }
  const before = old === undefined ? undefined : { value: old, cel: celValue(old, node) }
  visit(now, before, node, '', errors)
}

function visit(
  now: Position,
  before: Position | undefined,
  node: CompiledSchema,
  path: string,
  errors: FieldError[],
): void {
  if (!node.hasRules || now.value === null) return
  const unchanged = before !== undefined && jsonEqual(now.value, before.value)
  for (const rule of node.rules) runRule(rule, now, before, { node, path, unchanged }, errors)
  if (Array.isArray(now.value)) visitItems(now, before, node, path, errors)
  else if (isRecord(now.value)) visitFields(now, before, node, path, errors)
}

function visitItems(
  now: Position,
  before: Position | undefined,
  node: CompiledSchema,
  path: string,
  errors: FieldError[],
): void {
  const { items } = node
  if (items?.hasRules !== true) return
  const list = now.value as readonly unknown[]
  const cels = now.cel as readonly unknown[]
  const oldItem = oldItems(before?.value, node.schema)
  for (const [index, item] of list.entries()) {
    const old = oldItem(item)
    const oldPosition = old === undefined ? undefined : { value: old, cel: celValue(old, items) }
    visit({ value: item, cel: cels[index] }, oldPosition, items, `${path}[${index}]`, errors)
  }
}

function visitFields(
  now: Position,
  before: Position | undefined,
  node: CompiledSchema,
  path: string,
  errors: FieldError[],
): void {
  const record = now.value as Readonly<Record<string, unknown>>
  const old = isRecord(before?.value) ? before.value : undefined
  for (const key in record) {
    const property = node.properties.get(key)
    const child = property ?? node.values
    if (child?.hasRules !== true) continue
    const name = property === undefined ? key : escapedName(key)
    const oldValue = old?.[key]
    visit(
      { value: record[key], cel: (now.cel as Record<string, unknown>)[name] },
      oldValue === undefined
        ? undefined
        : { value: oldValue, cel: (before?.cel as Record<string, unknown> | undefined)?.[name] },
      child,
      fieldPath(path, key),
      errors,
    )
  }
}

interface RuleSite {
  readonly node: CompiledSchema
  readonly path: string
  readonly unchanged: boolean
}

function runRule(
  rule: CompiledRule,
  now: Position,
  before: Position | undefined,
  site: RuleSite,
  errors: FieldError[],
): void {
  const optionalOld = rule.source.optionalOldSelf === true
  if (rule.isTransition && !optionalOld && before === undefined) return
  // What was stored before a rule existed is not refused as long as it stays the same.
  if (!rule.isTransition && site.unchanged) return
  const oldSelf = optionalOld
    ? before === undefined
      ? Optional.none()
      : Optional.of(before.cel)
    : before?.cel
  const context = { self: now.cel, oldSelf }
  try {
    if (rule.program(context) === true) return
    errors.push(ruleError(rule, site, ruleMessage(rule, context)))
  } catch (error) {
    const reason = error instanceof Error && 'summary' in error ? String(error.summary) : String(error)
    const words = `${reason.charAt(0).toLowerCase()}${reason.slice(1)} evaluating rule: ${rule.source.message ?? rule.source.rule}`
    errors.push(ruleError(rule, site, words))
  }
}

function ruleMessage(rule: CompiledRule, context: Record<string, unknown>): string {
  if (rule.message !== undefined) {
    try {
      const text: unknown = rule.message(context)
      if (typeof text === 'string' && text.trim() !== '' && !text.includes('\n')) return text
    } catch {
      // A message that cannot be computed falls back to the fixed one.
    }
  }
  return rule.source.message?.trim() ?? `failed rule: ${rule.source.rule}`
}

const reasonKinds: Readonly<Record<string, FieldError['kind']>> = {
  FieldValueInvalid: 'invalid',
  FieldValueForbidden: 'forbidden',
  FieldValueRequired: 'required',
  FieldValueDuplicate: 'duplicate',
}

function ruleError(rule: CompiledRule, site: RuleSite, detail: string): FieldError {
  const kind = reasonKinds[rule.source.reason ?? ''] ?? 'invalid'
  const below = (rule.source.fieldPath ?? '').replace(/\['([^']+)'\]/g, '.$1').replace(/^\./, '')
  const field = below === '' ? site.path : fieldPath(site.path, below)
  return { kind, field, value: shownType(site.node), detail }
}

function shownType(node: CompiledSchema): string {
  return node.intOrString ? 'string' : (node.schema.type ?? 'object')
}
