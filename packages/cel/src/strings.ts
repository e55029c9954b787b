import type { Environment } from '@marcbachmann/cel-js'
import { compileExpression, type RegularExpression } from './regular-expressions.ts'
import { formatText } from './format-text.ts'
import { ownName } from './own-functions.ts'

/** The receiver of `strings.quote`. */
class CelStrings {
  readonly name = 'strings'
}

/** CEL counts code points, not UTF-16 units. */
function characters(text: string): readonly string[] {
  return Array.from(text)
}

function outOfRange(index: bigint): Error {
  return new Error(`index out of range: ${index}`)
}

function indexOf(text: string, part: string, from: bigint): bigint {
  if (part === '') return from
  if (from < 0n) throw outOfRange(from)
  const all = characters(text)
  if (from >= BigInt(all.length)) return -1n
  const start = all.slice(0, Number(from)).join('').length
  const found = text.indexOf(part, start)
  return found < 0 ? -1n : BigInt(characters(text.slice(0, found)).length)
}

function lastIndexOf(text: string, part: string, from: bigint | undefined): bigint {
  const length = BigInt(characters(text).length)
  if (part === '') return from ?? length
  if (from !== undefined && from < 0n) throw outOfRange(from)
  if (from !== undefined && from >= length) return -1n
  const start = characters(text)
    .slice(0, Number(from ?? length))
    .join('').length
  const found = text.lastIndexOf(part, start)
  return found < 0 ? -1n : BigInt(characters(text.slice(0, found)).length)
}

function substring(text: string, start: bigint, end: bigint | undefined): string {
  const all = characters(text)
  const length = BigInt(all.length)
  const until = end ?? length
  if (end !== undefined && start > end) {
    throw new Error(`invalid substring range. start: ${start}, end: ${end}`)
  }
  if (start < 0n || start > length) throw outOfRange(start)
  if (until < 0n || until > length) throw outOfRange(until)
  return all.slice(Number(start), Number(until)).join('')
}

/** Splits a text; without a separator into characters. */
function parts(text: string, separator: string): readonly string[] {
  return separator === '' ? characters(text) : text.split(separator)
}

function split(text: string, separator: string, limit: bigint): readonly string[] {
  if (limit === 0n) return []
  const all = parts(text, separator)
  if (limit < 0n || BigInt(all.length) <= limit) return all
  const last = Number(limit) - 1
  return [...all.slice(0, last), all.slice(last).join(separator)]
}

function replaceSome(text: string, from: string, to: string, limit: bigint): string {
  if (limit === 0n) return text
  // An empty text matches before each character and at the end.
  const all = from === '' ? ['', ...characters(text), ''] : text.split(from)
  const count = limit < 0n ? all.length - 1 : Math.min(Number(limit), all.length - 1)
  const head = all.slice(0, count + 1).join(to)
  const rest = all.slice(count + 1)
  return rest.length === 0 ? head : `${head}${from}${rest.join(from)}`
}

function charAt(text: string, index: bigint): string {
  const all = characters(text)
  if (index < 0n || index > BigInt(all.length)) throw outOfRange(index)
  return all[Number(index)] ?? ''
}

const escapes: ReadonlyMap<string, string> = new Map([
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
  ['\\', '\\\\'],
  ['"', '\\"'],
])

function quote(text: string): string {
  const quoted = characters(text.toWellFormed()).map((character) => escapes.get(character) ?? character)
  return `"${quoted.join('')}"`
}

function expressionOf(source: string): RegularExpression {
  const { expression, error } = compileExpression(source)
  if (expression === undefined) throw new Error(error)
  return expression
}

const asciiOnly = (text: string, change: (letters: string) => string, letters: RegExp): string =>
  text.replace(letters, change)

/** White space as Go's `TrimSpace` defines it. */
const space = '[\\t\\n\\v\\f\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]'
const trimmed = new RegExp(`^${space}+|${space}+$`, 'g')

/** Registers version 2 of CEL's strings extension, and regular expressions. */
export function registerStrings(environment: Environment): void {
  const define = (name: string, rest: string, handler: (...args: never[]) => unknown): void => {
    environment.registerFunction(`string.${ownName(name)}${rest}`, handler)
  }
  define('charAt', '(int): string', charAt)
  define('indexOf', '(string): int', (text: string, part: string) => indexOf(text, part, 0n))
  define('indexOf', '(string, int): int', indexOf)
  define('lastIndexOf', '(string): int', (text: string, part: string) => lastIndexOf(text, part, undefined))
  define('lastIndexOf', '(string, int): int', lastIndexOf)
  define('substring', '(int): string', (text: string, start: bigint) => substring(text, start, undefined))
  define('substring', '(int, int): string', substring)
  define('split', '(string): list<string>', parts)
  define('split', '(string, int): list<string>', split)
  define('replace', '(string, string): string', (text: string, from: string, to: string) =>
    replaceSome(text, from, to, -1n),
  )
  define('replace', '(string, string, int): string', replaceSome)
  define('trim', '(): string', (text: string) => text.replace(trimmed, ''))
  define('lowerAscii', '(): string', (text: string) =>
    asciiOnly(text, (letters) => letters.toLowerCase(), /[A-Z]+/g),
  )
  define('upperAscii', '(): string', (text: string) =>
    asciiOnly(text, (letters) => letters.toUpperCase(), /[a-z]+/g),
  )
  define('format', '(list): string', formatText)
  define('matches', '(string): bool', (text: string, source: string) => expressionOf(source).matches(text))
  define('find', '(string): string', (text: string, source: string) => expressionOf(source).find(text) ?? '')
  define('findAll', '(string): list<string>', (text: string, source: string) =>
    expressionOf(source).findAll(text),
  )
  define('findAll', '(string, int): list<string>', (text: string, source: string, limit: bigint) =>
    expressionOf(source).findAll(text, limit < 0n ? undefined : Number(limit)),
  )
  environment
    .registerFunction(`${ownName('matches')}(string, string): bool`, (text: string, source: string) =>
      expressionOf(source).matches(text),
    )
    .registerType('kubernetes.Strings', CelStrings)
    .registerConstant('strings', 'kubernetes.Strings', new CelStrings())
    .registerFunction('kubernetes.Strings.quote(string): string', (_strings: CelStrings, text: string) =>
      quote(text),
    )
}
