import { type ASTNode, type Environment, Optional } from '@marcbachmann/cel-js'
import { entriesOf } from './equality.ts'
import {
  type CelType,
  type Checker,
  type Evaluator,
  type LocalScope,
  type MacroCall,
  nameOf,
  type Scope,
} from './macros.ts'

/** One call of `optMap` or `optFlatMap`. */
interface Call {
  readonly optional: ASTNode
  readonly name: string
  readonly body: ASTNode
  scope: LocalScope | undefined
}

/** `value.optMap(name, body)`: evaluates the body if there is a value. Flat: the body returns an optional. */
function optionalMacro(isFlat: boolean) {
  return ({ args, receiver }: MacroCall) => ({
    optional: receiver,
    name: nameOf(args[0] as ASTNode),
    body: args[1] as ASTNode,
    scope: undefined,
    async: false,
    typeCheck: (checker: Checker, call: Call, scope: Scope): CelType => {
      const type = checker.check(call.optional, scope)
      call.scope = scope.forkWithVariable(call.name, type.valueType ?? checker.getType('dyn'))
      const body = checker.check(call.body, call.scope)
      return isFlat ? body : checker.registry.getOptionalType(body)
    },
    evaluate: (evaluator: Evaluator, call: Call, scope: Scope): unknown => {
      const optional = evaluator.run(call.optional, scope)
      if (!(optional instanceof Optional)) throw new Error('no such overload')
      if (!optional.hasValue()) return Optional.none()
      const local = (call.scope as LocalScope).reuse(scope).setIterValue(optional.value(), evaluator)
      const value = evaluator.run(call.body, local)
      return isFlat ? value : Optional.of(value)
    },
  })
}

/** Whether a value is the zero value of its type. */
function isZero(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return !value
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length === 0
  return !(value instanceof Date) && entriesOf(value).length === 0
}

const present = (list: readonly Optional[]): unknown[] =>
  list.filter((one) => one.hasValue()).map((one) => one.value())

/** Registers the functions of optionals that the library lacks. */
export function registerOptionals(environment: Environment): void {
  environment
    .registerFunction('optional.optMap(ast, ast): dyn', optionalMacro(false))
    .registerFunction('optional.optFlatMap(ast, ast): dyn', optionalMacro(true))
    .registerFunction('list.unwrapOpt(): list', present)
    .registerFunction(
      'OptionalNamespace.unwrap(list): list',
      (_optional: unknown, list: readonly Optional[]) => present(list),
    )
    .registerFunction(
      'OptionalNamespace.ofNonZeroValue(A): optional<A>',
      (_optional: unknown, value: unknown) => (isZero(value) ? Optional.none() : Optional.of(value)),
    )
}
