import { Environment, type ParseResult } from '@marcbachmann/cel-js'
import type { Duration } from '@marcbachmann/cel-js/evaluator'
import { registerAddresses } from './addresses.ts'
import { registerComprehensions } from './comprehensions.ts'
import { registerLists, registerSets } from './lists.ts'
import { type CelExtensions, literalError } from './literals.ts'
import { registerConversions, useOwnFunctions, withKnownNames } from './own-functions.ts'
import { registerOptionals } from './optionals.ts'
import { registerQuantities } from './quantities.ts'
import { registerStrings } from './strings.ts'
import { durationText, timestampText } from './times.ts'
import { registerUrls } from './urls.ts'
import { registerVersions } from './versions.ts'

export type VariableType = 'dyn' | 'optional'

/** An environment with the CEL libraries of Kubernetes. Expensive to build: keep it. */
export function createEnvironment(variables: Readonly<Record<string, VariableType>>): Environment {
  const environment = new Environment({ homogeneousAggregateLiterals: false, enableOptionalTypes: true })
  for (const [name, type] of Object.entries(variables)) environment.registerVariable(name, type)
  registerConversions(environment)
  registerStrings(environment)
  registerLists(environment)
  registerSets(environment)
  registerComprehensions(environment)
  registerOptionals(environment)
  registerUrls(environment)
  registerAddresses(environment)
  registerQuantities(environment)
  registerVersions(environment)
  registerTexts(environment)
  return environment
}

function registerTexts(environment: Environment): void {
  environment
    .registerFunction('string(google.protobuf.Timestamp): string', (time: Date) => timestampText(time))
    .registerFunction('string(google.protobuf.Duration): string', (duration: Duration) =>
      durationText(duration),
    )
}

/** A compiled expression, or why it does not compile. */
export type Compiled =
  | { readonly program: ParseResult; readonly type: string; readonly error?: undefined }
  | { readonly error: string; readonly program?: undefined }

/** Compiles an expression and checks its types. */
export function compileCel(
  environment: Environment,
  expression: string,
  extensions: CelExtensions = {},
): Compiled {
  let program: ParseResult
  try {
    program = environment.parse(expression)
    const error = literalError(environment, program.ast, extensions)
    if (error !== undefined) return { error }
    useOwnFunctions(program.ast)
  } catch (error) {
    return { error: failureOf(error) }
  }
  const checked = program.check()
  return checked.valid ? { program, type: checked.type ?? 'dyn' } : { error: failureOf(checked.error) }
}

/** The library's errors have a summary besides a message with a source excerpt. */
export function failureOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return withKnownNames('summary' in error ? String(error.summary) : error.message)
}
