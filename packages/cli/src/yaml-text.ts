/** Parses YAML as kubectl does, with positions. */
import {
  type Document,
  isMap,
  isScalar,
  LineCounter,
  parseAllDocuments,
  type ParsedNode,
  Scalar,
  type YAMLParseError,
  visit,
} from 'yaml'

/** A position in a text; both count from 1. */
interface TextPlace {
  readonly line: number
  readonly column: number
}

/** One document of a stream. */
interface ReadDocument {
  readonly document: Document<ParsedNode>
  /** Why it is not valid YAML. */
  readonly error: { readonly offset: number; readonly message: string } | undefined
  /** Keys that a map contains more than once; the last one is used. */
  readonly repeatedKeys: readonly { readonly offset: number; readonly key: string }[]
}

export interface ReadStream {
  readonly documents: readonly ReadDocument[]
  readonly placeOf: (offset: number) => TextPlace
}

/** How many quoted strings and flow collections are repaired before the text is rejected. */
const maxRepairs = 1000

/**
 * Parses a YAML stream or JSON. More tolerant than the library: lines of quoted strings and flow collections
 * may have any indentation, and keys may be repeated.
 */
export function readStream(text: string): ReadStream {
  const lines = text.split('\n')
  const padding = new Map<number, number>()
  for (let repairs = 0; ; repairs++) {
    const lineCounter = new LineCounter()
    const options = { lineCounter, merge: true, uniqueKeys: false }
    const documents = [...parseAllDocuments(lines.join('\n'), options)]
    const errors = repairs < maxRepairs ? documents.flatMap((document) => document.errors) : []
    const isRepaired = errors.some((error) => {
      return repair(lines, error, lineCounter.linePos(error.pos[0]).line - 1, padding)
    })
    if (isRepaired) continue
    const placeOf = (offset: number): TextPlace => {
      const { line: found, col } = lineCounter.linePos(offset)
      return {
        line: Math.max(found, 1),
        column: Math.max(col - (padding.get(found - 1) ?? 0), 1),
      }
    }
    return { documents: documents.map(readDocument), placeOf }
  }
}

/** Indents lines that continue something; false if there are none. */
function repair(lines: string[], error: YAMLParseError, line: number, padding: Map<number, number>): boolean {
  if (error.code === 'BAD_INDENT' && error.message.startsWith('Flow ')) return pad(lines, line, line, padding)
  const quote = /^Missing closing (["'])quote/.exec(error.message)?.[1]
  if (quote !== undefined) return padQuoted(lines, line + 1, quote, padding)
  // A line that ends with an escaped quote looks as if the string ended there.
  const open = openQuote(lines[line - 1] ?? '')
  return open !== undefined && padQuoted(lines, line, open, padding)
}

function padQuoted(lines: string[], from: number, quote: string, padding: Map<number, number>): boolean {
  const last = closingLine(lines, from, quote)
  return last !== undefined && pad(lines, from, last, padding)
}

/** The quote of a string that begins on a line and continues after it. */
function openQuote(line: string): string | undefined {
  const [, quote, rest = ''] = /^[\s-]*(?:[^\s"'#][^"']*?:\s+)?(["'])(.*)$/s.exec(line) ?? []
  return quote === undefined || closingLine([rest], 0, quote) !== undefined ? undefined : quote
}

/** The line on which the quoted string at `from` ends. */
function closingLine(lines: readonly string[], from: number, quote: string): number | undefined {
  const inner = quote === '"' ? /\\.|"/gs : /''|'/g
  for (let line = from; line < lines.length; line++) {
    const text = lines[line] ?? ''
    if (/^(?:---|\.\.\.)(?:\s|$)/.test(text)) return undefined
    if (text.match(inner)?.includes(quote) === true) return line
  }
  return undefined
}

function pad(lines: string[], from: number, to: number, padding: Map<number, number>): boolean {
  const indent = indentAbove(lines, from)
  let isMoved = false
  for (let line = from; line <= to; line++) {
    const text = lines[line]
    const missing = text === undefined || text.trim() === '' ? 0 : indent - indentOf(text)
    if (missing <= 0) continue
    lines[line] = `${' '.repeat(missing)}${text}`
    padding.set(line, (padding.get(line) ?? 0) + missing)
    isMoved = true
  }
  return isMoved
}

/** One column more than the innermost element begun on the last non-empty line before `line`. */
function indentAbove(lines: readonly string[], line: number): number {
  const above = lines.slice(0, line).findLast((text) => text.trim() !== '') ?? ''
  return (/^[\s-]*/.exec(above)?.[0].length ?? 0) + 1
}

function indentOf(text: string): number {
  return text.length - text.trimStart().length
}

function readDocument(document: Document.Parsed): ReadDocument {
  const [error] = document.errors
  readNumbers(document)
  return {
    document,
    error: error && { offset: error.pos[0], message: firstLineOf(error.message) },
    repeatedKeys: repeatedKeys(document),
  }
}

const octal = /^([+-]?)0([0-7]+)$/
const binary = /^([+-]?)0b([01]+)$/
const grouped = /^[+-]?[0-9][0-9_]*_[0-9_]*$/

/** YAML 1.1 numbers that YAML 1.2 reads differently: `0644` is octal to kubectl. */
function readNumbers(document: Document): void {
  visit(document, {
    Scalar: (_key, scalar) => {
      const { source = '' } = scalar
      if (scalar.type !== Scalar.PLAIN) return
      const [, sign, digits = ''] = octal.exec(source) ?? binary.exec(source) ?? []
      if (sign !== undefined) {
        scalar.value = (sign === '-' ? -1 : 1) * Number.parseInt(digits, source.includes('b') ? 2 : 8)
      } else if (grouped.test(source)) scalar.value = Number(source.replaceAll('_', ''))
    },
  })
}

/** Reads unquoted `yes`, `no`, `on` and `off` as booleans, as kubectl does. */
export function readBooleanWords(document: Document): void {
  visit(document, {
    Scalar: (key, scalar) => {
      if (scalar.type !== Scalar.PLAIN || key === 'key' || typeof scalar.value !== 'string') return
      if (/^(?:yes|on)$/i.test(scalar.value)) scalar.value = true
      else if (/^(?:no|off)$/i.test(scalar.value)) scalar.value = false
    },
  })
}

function firstLineOf(message: string): string {
  return (message.split('\n')[0] ?? '').replace(/ at line .*$/, '')
}

function repeatedKeys(document: Document): ReadDocument['repeatedKeys'] {
  const found: { offset: number; key: string }[] = []
  visit(document, {
    Map: (_key, map) => {
      if (!isMap(map)) return
      const seen = new Set<unknown>()
      for (const { key } of map.items) {
        if (!isScalar(key)) continue
        if (seen.has(key.value) && key.value !== '<<') {
          found.push({ offset: key.range?.[0] ?? 0, key: String(key.value) })
        }
        seen.add(key.value)
      }
    },
  })
  return found
}
