import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import { compileExpression } from './regular-expressions.ts'
import { formatText } from './format-text.ts'
import { childNodes } from './nodes.ts'
import { useOwnFunctions } from './own-functions.ts'

/** Conversions of literals, which the API server evaluates at compile time. */
const conversions: ReadonlySet<string> = new Set(['int', 'uint', 'double', 'bool', 'duration', 'timestamp'])

/** Functions that the API server offers only in some places. */
export interface CelExtensions {
  /** `cel.bind`, which only device selectors have. */
  readonly hasBindings?: boolean
}

/**
 * Finds invalid literals: the API server rejects expressions that are certain to fail.
 * @param node as parsed, before macros are expanded.
 */
export function literalError(
  environment: Environment,
  node: ASTNode,
  extensions: CelExtensions,
): string | undefined {
  const own = callError(environment, node, extensions) ?? aggregateError(node)
  if (own !== undefined) return own
  for (const child of childNodes(node)) {
    // Arguments of `format` may be of any type.
    const isFilling = node.op === 'rcall' && node.args[0] === 'format' && child.op === 'list'
    const error = isFilling ? undefined : literalError(environment, child, extensions)
    if (error !== undefined) return error
  }
  return undefined
}

function callError(
  environment: Environment,
  node: ASTNode,
  { hasBindings = false }: CelExtensions,
): string | undefined {
  if (node.op === 'call') {
    const [name, args] = node.args
    const [first, second] = args
    if (name === 'matches') return patternError(second)
    return conversions.has(name) && isLiteral(first) ? conversionError(environment, name, node) : undefined
  }
  if (node.op !== 'rcall') return undefined
  const [name, receiver, args] = node.args
  if (name === 'matches') return patternError(args[0])
  if (name === 'format') return formatError(receiver, args[0])
  return !hasBindings && receiver.op === 'id' && receiver.args === 'cel'
    ? "undeclared reference to 'cel' (in container '')"
    : undefined
}

function isLiteral(node: ASTNode | undefined): boolean {
  return node?.op === 'value'
}

function patternError(node: ASTNode | undefined): string | undefined {
  if (node?.op !== 'value' || typeof node.args !== 'string') return undefined
  return compileExpression(node.args).error === undefined ? undefined : 'invalid matches argument'
}

function conversionError(environment: Environment, name: string, node: ASTNode): string | undefined {
  const program = environment.parse(node.input.slice(node.start, node.end))
  useOwnFunctions(program.ast)
  try {
    program({})
    return undefined
  } catch {
    if (name === 'duration' || name === 'timestamp') return `invalid ${name} argument`
    return `type conversion error from 'string' to '${name}'`
  }
}

function formatError(receiver: ASTNode, list: ASTNode | undefined): string | undefined {
  if (receiver.op !== 'value' || typeof receiver.args !== 'string' || list?.op !== 'list') return undefined
  const values = list.args
  if (!values.every(isLiteral)) return undefined
  try {
    formatText(
      receiver.args,
      values.map((value) => value.args),
    )
    return undefined
  } catch (error) {
    return `error during formatting: ${(error as Error).message}`
  }
}

/** Elements of list and map literals must have one type. */
function aggregateError(node: ASTNode): string | undefined {
  if (node.op === 'list') return mixedTypes(node.args)
  if (node.op !== 'map') return undefined
  return mixedTypes(node.args.map(([key]) => key)) ?? mixedTypes(node.args.map(([, value]) => value))
}

function mixedTypes(nodes: readonly ASTNode[]): string | undefined {
  const types = [...new Set(nodes.flatMap((node) => literalType(node) ?? []))]
  return types.length > 1 ? `expected type '${types[0]}' but found '${types[1]}'` : undefined
}

/** The type of a literal; for a list, including its element type. */
function literalType(node: ASTNode): string | undefined {
  if (node.op === 'map') return 'map'
  if (node.op === 'list') {
    const item = node.args.map(literalType).find((type) => type !== undefined)
    return node.args.length > 0 && item !== undefined ? `list(${item})` : undefined
  }
  if (node.op !== 'value') return undefined
  const value = node.args
  if (value === null) return undefined
  if (typeof value === 'bigint') return 'int'
  if (typeof value === 'number') return 'double'
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'bool'
  return value instanceof Uint8Array ? 'bytes' : 'uint'
}
