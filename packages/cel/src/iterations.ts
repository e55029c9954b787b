/** Bounds the number of iterations of an expression before it runs (devices.md 3.10). */
import type { ASTNode } from '@marcbachmann/cel-js'
import { childNodes } from './nodes.ts'

/** Kubernetes' limit per evaluation. */
const costLimit = 1_000_000
/** Minimum cost of an iteration: condition, variable, body and result. */
const costPerRound = 5

/** Assumed length of lists that the object determines: more than a device can have. */
const unknownItems = 64

/** Macros that evaluate their body for each item. */
const comprehensions: ReadonlySet<string> = new Set([
  'all',
  'exists',
  'exists_one',
  'existsOne',
  'map',
  'filter',
  'transformList',
  'transformMap',
  'transformMapEntry',
  'sortBy',
])

/** Why an expression may cost too much, or undefined. */
export function costProblem(node: ASTNode): string | undefined {
  const cost = worstRounds(node) * costPerRound
  return cost > costLimit
    ? `the expression may cost ${cost.toExponential(1)}, more than the limit of ${costLimit}; nest fewer macros over lists`
    : undefined
}

/** Worst-case iterations of all comprehensions; nested ones multiply. */
function worstRounds(node: ASTNode, lengths: ReadonlyMap<string, number> = new Map()): number {
  if (node.op === 'rcall') {
    const [name, receiver, args] = node.args
    if (name === 'bind' && args.length === 3) {
      const [variable, value, body] = args as [ASTNode, ASTNode, ASTNode]
      const bound = new Map([...lengths, [String(variable.args), lengthOf(value, lengths)]])
      return worstRounds(value, lengths) + worstRounds(body, bound)
    }
    if (comprehensions.has(name)) {
      const inner = args.reduce((sum, each) => sum + worstRounds(each, lengths), 0)
      return worstRounds(receiver, lengths) + lengthOf(receiver, lengths) * (1 + inner)
    }
  }
  return childNodes(node).reduce((sum, child) => sum + worstRounds(child, lengths), 0)
}

/** The maximum number of items of a list or map expression. */
function lengthOf(node: ASTNode, lengths: ReadonlyMap<string, number>): number {
  if (node.op === 'list') return node.args.length
  if (node.op === 'map') return node.args.length
  if (node.op === 'id') return lengths.get(node.args) ?? unknownItems
  if (node.op === 'value') return typeof node.args === 'string' ? node.args.length : unknownItems
  if (node.op === '+') return childNodes(node).reduce((sum, child) => sum + lengthOf(child, lengths), 0)
  if (node.op === 'rcall') {
    const [name, receiver, args] = node.args
    if (name === 'range') return Number(args[0]?.op === 'value' ? args[0].args : costLimit)
    // The result of a function on a list or text has at most as many items.
    return Math.max(unknownItems, lengthOf(receiver, lengths))
  }
  return unknownItems
}
