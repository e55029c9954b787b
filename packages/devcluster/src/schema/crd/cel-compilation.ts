import { ownValue } from '@tenon/api'
import type { ASTNode, Environment, ParseResult } from '@marcbachmann/cel-js'
import { childNodes, compileCel } from '@tenon/cel'
import { createEnvironment } from '../cel/environment.ts'
import { escapedName } from '../cel/names.ts'
import type { JsonSchema, ValidationRule } from './json-schema.ts'

/** A validation rule ready to run. */
export interface CompiledRule {
  readonly source: ValidationRule
  readonly program: ParseResult
  readonly message: ParseResult | undefined
  /** Uses `oldSelf`, so it only runs on updates. */
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
 * The rules of all CRDs share an environment per type of `oldSelf`: the value, or an optional that is empty on create.
 */
function environment(oldSelfType: 'dyn' | 'optional'): Environment {
  let shared = environments.get(oldSelfType)
  if (shared === undefined) {
    shared = createEnvironment({ self: 'dyn', oldSelf: oldSelfType })
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
  const compiled = compileCel(environment(source.optionalOldSelf === true ? 'optional' : 'dyn'), expression)
  if (compiled.error !== undefined) return `compilation failed: ERROR: ${compiled.error}`
  const { program } = compiled
  if (compiled.type !== type && compiled.type !== 'dyn') {
    return type === 'bool'
      ? 'cel expression must evaluate to a bool'
      : 'messageExpression must evaluate to a string'
  }
  const unknown = undefinedField(program.ast, schema)
  return unknown === undefined ? program : `compilation failed: ERROR: undefined field '${unknown}'`
}

function names(node: ASTNode, variable: string): boolean {
  if (node.op === 'id') return node.args === variable
  return childNodes(node).some((child) => names(child, variable))
}

/** The first field chain from `self` or `oldSelf` that is not in the schema. */
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
  return ownValue(rootFields, name)
}

function isClosed(schema: JsonSchema): boolean {
  return (
    schema.type === 'object' && schema.properties !== undefined && schema.additionalProperties === undefined
  )
}
