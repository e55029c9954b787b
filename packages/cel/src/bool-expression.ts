import type { Environment } from '@marcbachmann/cel-js'
import { compileCel, failureOf } from './environment.ts'
import { costProblem } from './iterations.ts'
import type { CelExtensions } from './literals.ts'

/** Evaluates an expression on a value: its result, or why the evaluation failed. */
export type CelExpression = (value: unknown) => boolean | { readonly problem: string }

/**
 * Compiles an expression over one variable that must return a bool.
 * @returns the expression, or why it does not compile.
 */
export function compileCelBool(
  environment: Environment,
  variable: string,
  text: string,
  extensions: CelExtensions,
): CelExpression | string {
  const { program, error, ...rest } = compileCel(environment, text, extensions)
  if (program === undefined) return error ?? 'the expression does not compile'
  const costs = costProblem(program.ast)
  if (costs !== undefined) return costs
  const type = 'type' in rest ? rest.type : 'dyn'
  if (type !== 'bool' && type !== 'dyn') return `must evaluate to bool or the unknown type, not ${type}`
  return (value) => {
    try {
      const result: unknown = program({ [variable]: value })
      return typeof result === 'boolean' ? result : { problem: 'the expression does not come to a bool' }
    } catch (failure) {
      return { problem: failureOf(failure) }
    }
  }
}
