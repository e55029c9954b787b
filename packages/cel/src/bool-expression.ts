import type { Environment } from '@marcbachmann/cel-js'
import { compileCel, createEnvironment, failureOf } from './environment.ts'

/** Asks the expression of a value: what it says, or why that cannot be told. */
export type CelExpression = (value: unknown) => boolean | { readonly problem: string }

const environments = new Map<string, Environment>()

/** Compiles an expression over one variable that has to come to a bool. @returns the expression, or why it does not compile. */
export function compileCelBool(variable: string, text: string): CelExpression | string {
  let environment = environments.get(variable)
  if (environment === undefined) {
    environment = createEnvironment({ [variable]: 'dyn' })
    environments.set(variable, environment)
  }
  const { program, error, ...rest } = compileCel(environment, text)
  if (program === undefined) return error ?? 'the expression does not compile'
  const type = 'type' in rest ? rest.type : 'dyn'
  if (type !== 'bool' && type !== 'dyn') return `the expression comes to ${type}, not to bool`
  return (value) => {
    try {
      const result: unknown = program({ [variable]: value })
      return typeof result === 'boolean' ? result : { problem: 'the expression does not come to a bool' }
    } catch (failure) {
      return { problem: failureOf(failure) }
    }
  }
}
