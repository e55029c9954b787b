/** Parses JSONPath templates of kubectl. */
import { Scanner } from './scanner.ts'
import type { Comparison, Filter, Operand, Part, Path, Step, Template } from './template.ts'

/**
 * Parses a template: text with paths in braces.
 * @throws JsonPathError naming the invalid part.
 */
export function parseTemplate(text: string): Template {
  const scanner = new Scanner(text)
  const template = partsUntil(scanner, 'end of text')
  return template
}

/**
 * Parses a path of `--sort-by` or `custom-columns`: with or without braces and leading dot.
 * @throws JsonPathError naming the invalid part.
 */
export function parsePath(text: string): Path {
  const bare = text.trim().replace(/^\{(.*)\}$/s, '$1')
  const scanner = new Scanner(/^[.$[]/.test(bare) ? bare : `.${bare}`)
  return pathIn(scanner)
}

function partsUntil(scanner: Scanner, end: 'end of text' | '{end}'): Template {
  const parts: Part[] = []
  for (;;) {
    const text = scanner.take(/[^{]+/y)
    if (text !== '') parts.push({ kind: 'text', text })
    if (scanner.isAtEnd) {
      if (end === '{end}') scanner.fail('a {range} has no {end}')
      return parts
    }
    scanner.skip('{')
    const action = scanner.until(scanner.closing('{', '}'))
    action.skipSpace()
    if (isWord(action, 'end')) {
      if (end === 'end of text') scanner.fail('an {end} has no {range}')
      return parts
    }
    if (isWord(action, 'range')) {
      action.skipSpace()
      parts.push({ kind: 'range', path: pathIn(action), body: partsUntil(scanner, '{end}') })
    } else parts.push(...actionIn(action))
  }
}

function isWord(scanner: Scanner, word: string): boolean {
  const start = scanner.at
  if (scanner.take(/\w+/y) === word) return true
  scanner.at = start
  return false
}

/** A literal or a path. */
function actionIn(scanner: Scanner): readonly Part[] {
  const literal = literalIn(scanner)
  if (literal === undefined) return [{ kind: 'path', path: pathIn(scanner) }]
  scanner.skipSpace()
  if (!scanner.isAtEnd) scanner.fail(`unexpected ${scanner.here} at ${scanner.at + 1}`)
  return [{ kind: 'text', text: String(literal) }]
}

function literalIn(scanner: Scanner): string | number | boolean | undefined {
  if (scanner.here === '"' || scanner.here === "'") return scanner.quoted()
  const number = scanner.take(/[-+]?\d+(\.\d+)?/y)
  if (number !== '') return Number(number)
  for (const value of [true, false]) if (isWord(scanner, String(value))) return value
  return undefined
}

/** Parses the rest as a path. */
function pathIn(scanner: Scanner): Path {
  const steps: Step[] = []
  scanner.skipSpace()
  // A leading `$` means the root object, which is the default.
  if (!scanner.skip('$')) scanner.skip('@')
  for (;;) {
    scanner.skipSpace()
    if (scanner.isAtEnd) return steps
    steps.push(...stepsIn(scanner))
  }
}

function stepsIn(scanner: Scanner): readonly Step[] {
  if (scanner.skip('[')) return [bracketIn(scanner.until(scanner.closing('[', ']')))]
  if (scanner.skip('..')) {
    const next = nameIn(scanner)
    return next === undefined ? [{ kind: 'recursive' }] : [{ kind: 'recursive' }, next]
  }
  if (scanner.skip('.')) {
    const next = nameIn(scanner)
    return next === undefined ? [] : [next]
  }
  return scanner.fail(`unexpected ${scanner.here} at ${scanner.at + 1}; a field begins with a dot`)
}

/** Characters of a name; others must be escaped with a backslash. */
const nameLetters = /(?:\\.|[^\s.[\]{}()=!<>,'"\\])+/sy

function nameIn(scanner: Scanner): Step | undefined {
  const name = scanner.take(nameLetters)
  // Inside of a name or after a backslash it is an ordinary character.
  if (name === '*') return { kind: 'wildcard' }
  return name === '' ? undefined : { kind: 'field', name: name.replaceAll(/\\(.)/gs, '$1') }
}

function bracketIn(scanner: Scanner): Step {
  scanner.skipSpace()
  if (scanner.skip('?')) {
    scanner.skipSpace()
    if (!scanner.skip('(')) scanner.fail('a filter is written [?(…)]')
    const filter = filterIn(scanner.until(scanner.closing('(', ')')))
    return { kind: 'filter', filter }
  }
  const members: Step[] = []
  do {
    scanner.skipSpace()
    members.push(memberIn(scanner))
    scanner.skipSpace()
  } while (scanner.skip(','))
  if (!scanner.isAtEnd) scanner.fail(`unexpected ${scanner.here} at ${scanner.at + 1}`)
  const [only] = members
  return members.length === 1 && only !== undefined ? only : { kind: 'union', members }
}

function memberIn(scanner: Scanner): Step {
  if (scanner.here === "'" || scanner.here === '"') return { kind: 'field', name: scanner.quoted() }
  if (scanner.skip('*')) return { kind: 'wildcard' }
  const text = scanner.take(/[^,\]]*/y).trim()
  const slice = /^(-?\d+)?(?::(-?\d+)?)?(?::(-?\d+)?)?$/.exec(text)
  if (slice === null || text === '') scanner.fail(`[${text}] is no index, slice, quoted name or filter`)
  const [, first, second, third] = slice ?? []
  if (!text.includes(':')) return { kind: 'index', index: Number(first) }
  const step = third === undefined ? 1 : Number(third)
  if (step < 1) scanner.fail(`the step of [${text}] must be 1 or more`)
  return {
    kind: 'slice',
    ...(first !== undefined && { start: Number(first) }),
    ...(second !== undefined && { end: Number(second) }),
    step,
  }
}

const comparisons: readonly Comparison[] = ['==', '!=', '<=', '>=', '<', '>']

function filterIn(scanner: Scanner): Filter {
  const left = operandIn(scanner)
  scanner.skipSpace()
  if (scanner.isAtEnd) return { kind: 'exists', operand: left }
  const comparison = comparisons.find((each) => scanner.skip(each))
  if (comparison === undefined)
    return scanner.fail(
      `unexpected ${scanner.here} at ${scanner.at + 1}; compare by ${comparisons.join(' ')}`,
    )
  const right = operandIn(scanner)
  scanner.skipSpace()
  if (!scanner.isAtEnd) scanner.fail(`a filter holds one comparison: unexpected ${scanner.here}`)
  return { kind: 'compare', left, comparison, right }
}

function operandIn(scanner: Scanner): Operand {
  scanner.skipSpace()
  const value = literalIn(scanner)
  if (value !== undefined) return { kind: 'value', value }
  const steps: Step[] = []
  if (!scanner.skip('@')) scanner.skip('$')
  while (scanner.here === '.' || scanner.here === '[') steps.push(...stepsIn(scanner))
  return { kind: 'path', path: steps }
}
