import { ownValue } from '@tenon/api'
import { type ASTNode, Optional } from '@marcbachmann/cel-js'
import type { CelType, Checker, Evaluator, Scope } from './macros.ts'

/** One call of `has`. */
interface Call {
  readonly field: ASTNode
}

/**
 * `has(value.field)` of any value. The library's version only works on fields of variables, not on results of
 * calls or index expressions.
 */
export function presenceMacro(field: ASTNode) {
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
