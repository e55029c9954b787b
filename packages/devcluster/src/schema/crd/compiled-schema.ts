import { compileRules, type CompiledRule } from './cel-compilation.ts'
import { type JsonSchema, valueSchema } from './json-schema.ts'
import { compileExpression, type RegularExpression } from '@tenon/cel'

/** A schema prepared for validation: patterns and rules are compiled, children linked. */
export interface CompiledSchema {
  readonly schema: JsonSchema
  readonly properties: ReadonlyMap<string, CompiledSchema>
  readonly values: CompiledSchema | undefined
  readonly items: CompiledSchema | undefined
  readonly pattern: RegularExpression | undefined
  readonly intOrString: boolean
  readonly allOf: readonly CompiledSchema[]
  readonly anyOf: readonly CompiledSchema[]
  readonly oneOf: readonly CompiledSchema[]
  readonly not: CompiledSchema | undefined
  readonly rules: readonly CompiledRule[]
  /** Whether this node or one below has a rule. */
  readonly hasRules: boolean
  /** Whether this node or one below has a transition rule. */
  readonly hasTransitions: boolean
}

/** Prepares a schema. Rules that do not compile are skipped; the structural check reports them. */
export function compileSchema(schema: JsonSchema): CompiledSchema {
  const properties = new Map<string, CompiledSchema>()
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    properties.set(name, compileSchema(property))
  }
  const valuesSchema = valueSchema(schema)
  const values = valuesSchema === undefined ? undefined : compileSchema(valuesSchema)
  const items = schema.items === undefined ? undefined : compileSchema(schema.items)
  const rules = compileRules(schema).rules
  const children = [...properties.values(), values, items]
  return {
    schema,
    properties,
    values,
    items,
    pattern: schema.pattern === undefined ? undefined : compileExpression(schema.pattern).expression,
    intOrString: schema['x-kubernetes-int-or-string'] === true,
    allOf: compileAll(schema.allOf),
    anyOf: compileAll(schema.anyOf),
    oneOf: compileAll(schema.oneOf),
    not: schema.not === undefined ? undefined : compileSchema(schema.not),
    rules,
    hasRules: rules.length > 0 || children.some((child) => child?.hasRules === true),
    hasTransitions:
      rules.some((rule) => rule.isTransition) || children.some((child) => child?.hasTransitions === true),
  }
}

function compileAll(schemas: readonly JsonSchema[] | undefined): readonly CompiledSchema[] {
  return schemas?.map((schema) => compileSchema(schema)) ?? []
}
