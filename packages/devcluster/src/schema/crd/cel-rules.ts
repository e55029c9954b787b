import { isRecord, ownValue } from '@tenon/api'
import { Optional } from '@marcbachmann/cel-js'
import type { FieldError } from '../../contract.ts'
import { failureOf } from '@tenon/cel'
import { jsonEqual } from '../shape-node.ts'
import type { CompiledRule } from './cel-compilation.ts'
import { celValue } from './cel-values.ts'
import type { CompiledSchema } from './compiled-schema.ts'
import { fieldPath } from './json-schema.ts'
import { oldItems } from './value-validation.ts'

/** A position in old and new object. */
class Position {
  readonly value: unknown
  readonly #node: CompiledSchema
  #cel: { readonly value: unknown } | undefined

  constructor(value: unknown, node: CompiledSchema) {
    this.value = value
    this.#node = node
  }

  /** The value in CEL; computed lazily, as it is expensive and most values have no rule. */
  get cel(): unknown {
    this.#cel ??= { value: celValue(this.value, this.#node) }
    return this.#cel.value
  }
}

/** Runs all rules of an object's schema. `old` is given for an update. */
export function validateRules(
  value: unknown,
  old: unknown,
  node: CompiledSchema,
  errors: FieldError[],
): void {
  if (!node.hasRules) return
  const now = new Position(value, node)
  visit(now, oldPosition(old, now, node), node, '', errors)
}

function oldPosition(old: unknown, now: Position, node: CompiledSchema): Position | undefined {
  if (old === undefined) return undefined
  return old === now.value ? now : new Position(old, node)
}

function visit(
  now: Position,
  before: Position | undefined,
  node: CompiledSchema,
  path: string,
  errors: FieldError[],
): void {
  if (!node.hasRules || now.value === null) return
  // Unchanged parts are shared with the stored object, which the rules have checked.
  if (now.value === before?.value && !node.hasTransitions) return
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
  const oldItem = oldItems(before?.value, node.schema)
  for (const [index, item] of list.entries()) {
    const position = new Position(item, items)
    visit(position, oldPosition(oldItem(item), position, items), items, `${path}[${index}]`, errors)
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
    const position = new Position(ownValue(record, key), child)
    visit(position, oldPosition(ownValue(old, key), position, child), child, fieldPath(path, key), errors)
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
  // An unchanged value that was stored before the rule existed is accepted.
  if (!rule.isTransition && site.unchanged) return
  const oldSelf = optionalOld
    ? before === undefined
      ? Optional.none()
      : Optional.of(before.cel)
    : before?.cel
  const context = { self: now.cel, oldSelf }
  try {
    if (rule.program(context) === true) return
    const { value } = now
    // Messages do not contain objects and lists.
    const shown = typeof value === 'object' ? {} : { value }
    errors.push({ ...ruleError(rule, site, ruleMessage(rule, context)), ...shown })
  } catch (error) {
    const reason = failureOf(error)
    const text = `${reason.charAt(0).toLowerCase()}${reason.slice(1)}`
    const shown = rule.source.message ?? rule.source.rule
    const words = text.startsWith('no such overload')
      ? `'${text}': call arguments did not match a supported operator, function or macro signature for rule: ${rule.source.rule}`
      : `${text} evaluating rule: ${shown}`
    errors.push({ ...ruleError(rule, site, words), value: shownType(site.node) })
  }
}

function ruleMessage(rule: CompiledRule, context: Record<string, unknown>): string {
  if (rule.message !== undefined) {
    try {
      const text: unknown = rule.message(context)
      if (typeof text === 'string' && text.trim() !== '' && !text.includes('\n')) return text
    } catch {
      // If the message expression fails, the fixed message is used.
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
  const kind = ownValue(reasonKinds, rule.source.reason ?? '') ?? 'invalid'
  const below = (rule.source.fieldPath ?? '').replace(/\['([^']+)'\]/g, '.$1').replace(/^\./, '')
  const field = below === '' ? site.path : fieldPath(site.path, below)
  return { kind, field, detail }
}

function shownType(node: CompiledSchema): string {
  return node.intOrString ? 'string' : (node.schema.type ?? 'object')
}
