import { setOwn } from '@tenon/api'
import { compileAdmission } from '../../schema/cel/admission.ts'
import { failureOf } from '@tenon/cel'
import { escapedName } from '../../schema/cel/names.ts'
import type { StoredObject } from '../../contract.ts'
import { type Attributes, requestOf } from './attributes.ts'

/** The result of an expression. */
export type Evaluation =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'error'; readonly message: string }

/** A condition with a name (`matchConditions`). */
export interface NamedCondition {
  readonly name: string
  readonly expression: string
}

/** The variables that an expression may name. */
export type Scope = Readonly<Record<string, unknown>>

export function evaluate(expression: string, scope: Scope): Evaluation {
  const { program, error } = compileAdmission(expression)
  if (program === undefined) return { kind: 'error', message: `compilation failed: ${error}` }
  try {
    return { kind: 'value', value: program(scope) }
  } catch (failure) {
    return { kind: 'error', message: failureOf(failure) }
  }
}

/** The variables of the expressions of one write. */
export function scopeOf(
  attributes: Attributes,
  namespaceObject: StoredObject | undefined,
  params: StoredObject | undefined,
): Scope {
  return {
    object: dynamicValue(attributes.object ?? null),
    oldObject: dynamicValue(attributes.oldObject ?? null),
    request: dynamicValue(requestOf(attributes)),
    params: dynamicValue(params ?? null),
    namespaceObject: dynamicValue(namespaceObject ?? null),
    variables: {},
  }
}

/** JSON for expressions: integers are ints, and all field names can be used. */
function dynamicValue(value: unknown): unknown {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(dynamicValue)
  const record = Object.create(null) as Record<string, unknown>
  for (const [key, entry] of Object.entries(value)) {
    if (entry === undefined) continue
    const converted = dynamicValue(entry)
    setOwn(record, key, converted)
    const escaped = escapedName(key)
    // A map is read by key, an object by the escaped name. Which of them this is cannot be told here, so it
    // gets both.
    if (escaped !== key) Object.defineProperty(record, escaped, { value: converted })
  }
  // The CEL library reads the member `constructor` to find a value's type, but a label may have that name.
  return Object.hasOwn(record, 'constructor') ? new Map(Object.entries(record)) : record
}

/** The result of all `matchConditions`. */
export type Conditions =
  | { readonly kind: 'met' }
  | { readonly kind: 'unmet' }
  | { readonly kind: 'error'; readonly message: string }

/** A false condition takes precedence over one that fails. */
export function evaluateConditions(conditions: readonly NamedCondition[], scope: Scope): Conditions {
  let failure: string | undefined
  for (const { name, expression } of conditions) {
    const evaluation = evaluate(expression, scope)
    if (evaluation.kind === 'error') failure ??= `${name}: ${evaluation.message}`
    else if (evaluation.value === false) return { kind: 'unmet' }
    else if (evaluation.value !== true) failure ??= `${name}: does not evaluate to a bool`
  }
  return failure === undefined ? { kind: 'met' } : { kind: 'error', message: failure }
}
