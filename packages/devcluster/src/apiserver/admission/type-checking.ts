import type { ASTNode } from '@marcbachmann/cel-js'
import type { SchemaNode, StoredObject } from '../../contract.ts'
import { compileAdmission } from '../../schema/cel/admission.ts'
import { escapedName } from '../../schema/cel/names.ts'
import { childNodes } from '@tenon/cel'
import { propertiesOf } from '../../schema/shape-node.ts'
import type { Registry } from '../kinds/registry.ts'
import type { ResourceRule } from './matching.ts'

/** Maximum kinds that are type-checked. */
const maxKinds = 10

interface Expression {
  readonly field: string
  readonly text: string
}

interface Kind {
  readonly title: string
  readonly schema: SchemaNode
}

/** The status of a ValidatingAdmissionPolicy: fields in its expressions that matched kinds do not have. */
export function policyStatus(registry: Registry, policy: StoredObject, generation: number): object {
  const spec = (policy['spec'] ?? {}) as {
    readonly matchConstraints?: { readonly resourceRules?: readonly ResourceRule[] }
    readonly validations?: readonly { readonly expression: string; readonly messageExpression?: string }[]
  }
  const kinds = matchedKinds(registry, spec.matchConstraints?.resourceRules ?? [])
  const expressions = (spec.validations ?? []).flatMap(
    ({ expression, messageExpression }, index): Expression[] => [
      { field: `spec.validations[${index}].expression`, text: expression },
      ...(messageExpression === undefined
        ? []
        : [{ field: `spec.validations[${index}].messageExpression`, text: messageExpression }]),
    ],
  )
  const expressionWarnings = expressions.flatMap(({ field, text }) => {
    const warnings = kinds.flatMap((kind) => warningOf(kind, text) ?? [])
    return warnings.length === 0 ? [] : [{ fieldRef: field, warning: warnings.join('\n') }]
  })
  const typeChecking = expressionWarnings.length === 0 ? {} : { expressionWarnings }
  return { observedGeneration: generation, typeChecking }
}

/** Rules with wildcards are skipped, as their kinds cannot be listed. */
function matchedKinds(registry: Registry, rules: readonly ResourceRule[]): readonly Kind[] {
  const found = new Map<string, Kind>()
  for (const { apiGroups = [], apiVersions = [], resources = [] } of rules) {
    for (const { group, version, kind, plural, schema } of registry.definitions()) {
      if (!apiGroups.includes(group) || !apiVersions.includes(version) || !resources.includes(plural))
        continue
      const title = `${group === '' ? version : `${group}/${version}`}, Kind=${kind}`
      found.set(title, { title, schema })
    }
  }
  return [...found.values()].slice(0, maxKinds)
}

function warningOf({ title, schema }: Kind, text: string): string | undefined {
  const { program } = compileAdmission(text)
  const unknown = program && undefinedField(program.ast, schema)
  if (unknown === undefined) return undefined
  const { name, offset } = unknown
  const line = text.split('\n')[0] ?? ''
  return [
    `${title}: ERROR: <input>:1:${offset + 1}: undefined field '${name}'`,
    ` | ${line}`,
    ` | ${'.'.repeat(offset)}^`,
  ].join('\n')
}

interface Unknown {
  readonly name: string
  readonly offset: number
}

/** The first field chain from `object` or `oldObject` that is not in the schema. */
function undefinedField(node: ASTNode, schema: SchemaNode): Unknown | undefined {
  if (node.op === '.') {
    const [holder, name] = node.args
    const parent = selected(holder, schema)
    if (parent !== undefined && isClosed(parent) && fieldOf(parent, name) === undefined) {
      return { name, offset: holder.end }
    }
  }
  for (const child of childNodes(node)) {
    const unknown = undefinedField(child, schema)
    if (unknown !== undefined) return unknown
  }
  return undefined
}

function selected(node: ASTNode, schema: SchemaNode): SchemaNode | undefined {
  if (node.op === 'id') return node.args === 'object' || node.args === 'oldObject' ? schema : undefined
  if (node.op !== '.') return undefined
  const [holder, name] = node.args
  const parent = selected(holder, schema)
  return parent === undefined ? undefined : fieldOf(parent, name)
}

function fieldOf(schema: SchemaNode, name: string): SchemaNode | undefined {
  const found = Object.entries(propertiesOf(schema)).find(([key]) => escapedName(key) === name)
  return found?.[1] ?? schema.additionalProperties
}

function isClosed(schema: SchemaNode): boolean {
  const hasFields = schema.type === 'object' && Object.keys(propertiesOf(schema)).length > 0
  return hasFields && schema.additionalProperties === undefined && schema.preserveUnknownFields !== true
}
