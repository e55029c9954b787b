import type { Environment } from '@marcbachmann/cel-js'
import { type Compiled, compileCel } from '@tenon/cel'
import { createEnvironment } from './environment.ts'

let shared: Environment | undefined
const compiled = new Map<string, Compiled>()
const maxCached = 2000

/** Compiles an expression of a policy or of `matchConditions`. */
export function compileAdmission(expression: string): Compiled {
  const known = compiled.get(expression)
  if (known !== undefined) return known
  shared ??= createEnvironment({
    object: 'dyn',
    oldObject: 'dyn',
    request: 'dyn',
    params: 'dyn',
    namespaceObject: 'dyn',
    variables: 'dyn',
  })
  const fresh = compileCel(shared, expression)
  if (compiled.size >= maxCached) compiled.clear()
  compiled.set(expression, fresh)
  return fresh
}
