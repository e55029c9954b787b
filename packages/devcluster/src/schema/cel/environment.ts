import type { Environment } from '@marcbachmann/cel-js'
import { createEnvironment as createCelEnvironment, type VariableType } from '@tenon/cel'
import { registerFormats } from './named-formats.ts'

/** A CEL environment with everything that the API server offers. Creating one is expensive, so keep it. */
export function createEnvironment(variables: Readonly<Record<string, VariableType>>): Environment {
  const environment = createCelEnvironment(variables)
  registerFormats(environment)
  return environment
}
