import { type ASTNode, Environment } from '@marcbachmann/cel-js'
import { childNodes } from './nodes.ts'
import { presenceMacro } from './presence.ts'

/**
 * Functions of the library that answer otherwise than the API server's, and that it will not let
 * anyone replace: expressions are made to call functions of another name.
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

/** The name under which the API server's version of a replaced function is registered. */
export function ownName(name: string): string {
  return replaced.has(name) ? `${prefix}${name}` : name
}

/** A message of the library with the names that users know. */
export function withKnownNames(message: string): string {
  return message.replaceAll(prefix, '')
}

/** Lets a parsed expression call the replacements. */
export function useOwnFunctions(node: ASTNode): void {
  if (node.op === 'call' && node.args[0] === 'has') {
    replaceMacro(node, presenceMacro(node.args[1][0] as ASTNode))
  }
  if (node.op === 'call' || node.op === 'rcall') (node.args as unknown[])[0] = ownName(node.args[0])
  for (const child of childNodes(node)) useOwnFunctions(child)
}

/** Nodes keep their macro where the library's types do not show it. */
function replaceMacro(node: ASTNode, macro: object): void {
  const internal: ASTNode & { setMeta?: (key: 'macro', value: object) => unknown } = node
  internal.setMeta?.('macro', macro)
}

const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n } as const
const libraryInt = new Environment().registerVariable('value', 'dyn').parse('int(value)')

/** `int()`: of a text, decimal digits with an optional sign, and neither nothing nor another base. */
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
