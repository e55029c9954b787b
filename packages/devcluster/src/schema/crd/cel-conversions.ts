import { type ASTNode, Environment } from '@marcbachmann/cel-js'
import { isRecord } from '../shape-node.ts'

const ownName = 'kubernetesInt'
const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n } as const

const libraryInt = new Environment().registerVariable('value', 'dyn').parse('int(value)')

/**
 * CEL's `int()` as the API server has it: of a text, decimal digits with an optional sign. The
 * library's also takes nothing for zero, and other bases.
 */
function kubernetesInt(value: unknown): bigint {
  if (typeof value !== 'string') return libraryInt({ value }) as bigint
  const integer = /^[+-]?[0-9]+$/.test(value) ? BigInt(value) : undefined
  if (integer === undefined || integer < int64.min || integer > int64.max) {
    throw new Error("type conversion error from 'string' to 'int'")
  }
  return integer
}

export function registerConversions(environment: Environment): void {
  environment.registerFunction(`${ownName}(dyn): int`, kubernetesInt)
}

/** Lets a parsed expression call {@link kubernetesInt} for `int`, which the library will not replace. */
export function useOwnConversions(node: ASTNode): void {
  const { args } = node
  if (!Array.isArray(args)) return
  if (node.op === 'call' && args[0] === 'int') (args as unknown[])[0] = ownName
  for (const child of (args as unknown[]).flat()) if (isNode(child)) useOwnConversions(child)
}

function isNode(value: unknown): value is ASTNode {
  return isRecord(value) && 'op' in value && 'args' in value
}
