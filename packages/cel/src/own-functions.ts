import { type ASTNode, Environment, Optional } from '@marcbachmann/cel-js'
import { childNodes } from './nodes.ts'
import { ownValue } from '@tenon/api'
import type { CelType, Checker, Evaluator, Scope } from './macros.ts'

/**
 * Functions that behave differently in the library and the API server. The library does not allow overriding
 * them, so expressions are rewritten to call a function with another name.
 */
const replaced: ReadonlySet<string> = new Set([
  'int',
  'matches',
  'indexOf',
  'lastIndexOf',
  'substring',
  'split',
  'trim',
  'lowerAscii',
  'upperAscii',
])

const prefix = 'kubernetes_'

/** The internal name of a replacement. */
export function ownName(name: string): string {
  return replaced.has(name) ? `${prefix}${name}` : name
}

/** Restores the public function names in a message of the library. */
export function withKnownNames(message: string): string {
  return message.replaceAll(prefix, '')
}

/** Rewrites a parsed expression to call the replacements. */
export function useOwnFunctions(node: ASTNode): void {
  if (node.op === 'call' && node.args[0] === 'has') {
    replaceMacro(node, presenceMacro(node.args[1][0] as ASTNode))
  }
  if (node.op === 'call' || node.op === 'rcall') (node.args as unknown[])[0] = ownName(node.args[0])
  for (const child of childNodes(node)) useOwnFunctions(child)
}

/** Parsed nodes have a `macro` member that the library's types do not declare. */
function replaceMacro(node: ASTNode, macro: object): void {
  const internal: ASTNode & { setMeta?: (key: 'macro', value: object) => unknown } = node
  internal.setMeta?.('macro', macro)
}

const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n } as const
const libraryInt = new Environment().registerVariable('value', 'dyn').parse('int(value)')

/** `int(text)`: decimal digits with an optional sign; unlike the library's, neither empty nor in another base. */
function toInt(value: unknown): bigint {
  if (typeof value !== 'string') return libraryInt({ value }) as bigint
  const integer = /^[+-]?[0-9]+$/.test(value) ? BigInt(value) : undefined
  if (integer === undefined || integer < int64.min || integer > int64.max) {
    throw new Error("type conversion error from 'string' to 'int'")
  }
  return integer
}

export function registerConversions(environment: Environment): void {
  environment.registerFunction(`${ownName('int')}(dyn): int`, toInt)
}

/** One call of `has`. */
interface Call {
  readonly field: ASTNode
}

/**
 * `has(value.field)` of any value. The library's version only works on fields of variables, not on results of
 * calls or index expressions.
 */
function presenceMacro(field: ASTNode) {
  return {
    field,
    async: false,
    typeCheck: (checker: Checker, call: Call, scope: Scope): CelType => {
      if (call.field.op !== '.' && call.field.op !== '.?') {
        throw checker.createError('invalid_macro_argument', 'invalid argument to has() macro', call.field)
      }
      checker.check(call.field.args[0], scope)
      return checker.getType('bool')
    },
    evaluate: (evaluator: Evaluator, call: Call, scope: Scope): boolean => {
      const [holder, name] = (call.field as ASTNode & { op: '.' }).args
      return hasField(evaluator.run(holder, scope), name)
    },
  }
}

function hasField(holder: unknown, name: string): boolean {
  if (holder instanceof Optional) return holder.hasValue() && hasField(holder.value(), name)
  if (holder instanceof Map) return holder.has(name)
  if (typeof holder !== 'object' || holder === null || Array.isArray(holder)) {
    throw new Error('no such overload')
  }
  return Object.hasOwn(holder, name) && ownValue(holder as Record<string, unknown>, name) !== undefined
}
