/** How often an expression may go round, known before it is run (devices.md 3.10). */
import type { ASTNode } from '@marcbachmann/cel-js'
import { childNodes } from './nodes.ts'

/** Kubernetes' limit for one evaluation. */
const costLimit = 1_000_000
/** What a round costs at least: its condition, its variable, its body and what is made of that. */
const costPerRound = 5

/** Items of a list whose length only the object tells: more than a device, or what a driver says of it, can have. */
const unknownItems = 64

/** Functions that go over what they are called on, and evaluate a part for each item. */
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

/** Why an expression may cost too much; undefined when it cannot. */
export function costProblem(node: ASTNode): string | undefined {
  const cost = worstRounds(node) * costPerRound
  return cost > costLimit
    ? `the expression may cost ${cost.toExponential(1)}, more than the limit of ${costLimit}; nest fewer macros over lists`
    : undefined
}

/** Rounds of all comprehensions in the worst case, those inside of others multiplied. */
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

/** The most items that a list, a map or what stands for one can have. */
function lengthOf(node: ASTNode, lengths: ReadonlyMap<string, number>): number {
  if (node.op === 'list') return node.args.length
  if (node.op === 'map') return node.args.length
  if (node.op === 'id') return lengths.get(node.args) ?? unknownItems
  if (node.op === 'value') return typeof node.args === 'string' ? node.args.length : unknownItems
  if (node.op === '+') return childNodes(node).reduce((sum, child) => sum + lengthOf(child, lengths), 0)
  if (node.op === 'rcall') {
    const [name, receiver, args] = node.args
    if (name === 'range') return Number(args[0]?.op === 'value' ? args[0].args : costLimit)
    // What a function makes of a list or a text has no more items than these.
    return Math.max(unknownItems, lengthOf(receiver, lengths))
  }
  return unknownItems
}
