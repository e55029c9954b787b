/** Reads one YAML document with line numbers; safe for any file. */
import { LineCounter, type ParsedNode, parseAllDocuments } from 'yaml'

/** More than any list of flavors needs, but quick to parse. */
const mostCharacters = 65_536
/** Maximum nesting of lists and maps: a list of flavors has two levels, and the parser's stack is limited. */
const mostDepth = 32

/** A document, or why it cannot be read. Lines count from 1 and exist in the text. */
export type ReadYaml =
  | { readonly kind: 'read'; readonly root: ParsedNode | null; readonly lineOf: (offset: number) => number }
  | { readonly kind: 'invalid'; readonly line: number; readonly message: string }

/** Reads a text with exactly one document. The caller checks for duplicate keys. */
export function readYaml(given: string): ReadYaml {
  const text = given.replace(/^\uFEFF/, '')
  if (text.length > mostCharacters)
    return invalid(1, `the file has more than ${mostCharacters} characters; give one entry a flavor`)
  const tooDeep = deepLine(text)
  if (tooDeep !== undefined) return invalid(tooDeep, 'lists and maps within one another are too deep')
  const lineCounter = new LineCounter()
  const lines = text.split('\n').length
  const lineOf = (offset: number): number => Math.min(Math.max(lineCounter.linePos(offset).line, 1), lines)
  const documents = [
    ...parseAllDocuments(text, { lineCounter, uniqueKeys: false, prettyErrors: false, logLevel: 'silent' }),
  ]
  for (const { errors, warnings } of documents) {
    const [first] = [...errors, ...warnings]
    if (first !== undefined) return invalid(lineOf(first.pos[0]), `not valid YAML: ${oneLine(first.message)}`)
  }
  const [document, second] = documents
  if (second !== undefined)
    return invalid(lineOf(second.range[0]), 'another document begins; leave one list in the file')
  return { kind: 'read', root: document?.contents ?? null, lineOf }
}

function invalid(line: number, message: string): ReadYaml {
  return { kind: 'invalid', line, message }
}

/** The line on which nesting is too deep, by brackets or list markers; those inside texts count too. */
function deepLine(text: string): number | undefined {
  let depth = 0
  for (const [index, line] of text.split('\n').entries()) {
    for (const character of line) {
      if (character === '[' || character === '{') depth++
      else if (character === ']' || character === '}') depth = Math.max(depth - 1, 0)
      if (depth > mostDepth) return index + 1
    }
    if ((/^[\s?:-]*/.exec(line)?.[0].length ?? 0) > 4 * mostDepth) return index + 1
  }
  return undefined
}

function oneLine(message: string): string {
  return message.replaceAll(/\s+/g, ' ').trim()
}
