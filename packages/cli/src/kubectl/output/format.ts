/** The value of `-o`. */
import { KubectlError } from '../../errors.ts'
import { parsePath, parseTemplate } from '../jsonpath/parse.ts'
import { JsonPathError, type Path, type Template } from '../jsonpath/template.ts'

/** Output for people: a table, or text. */
interface PlainFormat {
  readonly kind: 'plain'
  readonly isWide: boolean
}

export interface CustomColumn {
  readonly title: string
  readonly path: Path
}

/** Output for programs, generated from the objects alone. */
export type ObjectFormat =
  | { readonly kind: 'json' }
  | { readonly kind: 'yaml' }
  | { readonly kind: 'name' }
  | { readonly kind: 'jsonpath'; readonly template: Template }
  | { readonly kind: 'custom-columns'; readonly columns: readonly CustomColumn[] }

export type Format = PlainFormat | ObjectFormat

const allFormats = 'wide, json, yaml, name, jsonpath=TEMPLATE, custom-columns=TITLE:PATH,…'

/** Formats that only kubectl has, and what to use instead. */
const refused: ReadonlyMap<string, string> = new Map([
  ['go-template', 'jsonpath='],
  ['go-template-file', 'jsonpath='],
  ['template', 'jsonpath='],
  ['templatefile', 'jsonpath='],
  ['jsonpath-file', 'jsonpath="$(cat FILE)"'],
  ['jsonpath-as-json', 'json, or jsonpath='],
  ['custom-columns-file', 'custom-columns='],
])

/** @throws KubectlError naming the unknown format, or the error in its template. */
export function formatOf(text: string | undefined): Format {
  const [, name = '', argument] = /^([^=]*)(?:=(.*))?$/s.exec(text ?? '') ?? []
  const instead = refused.get(name)
  if (instead !== undefined)
    throw new KubectlError(`error: the output format ${name} is not supported: use ${instead}`)
  try {
    return formatNamed(name, argument)
  } catch (cause) {
    if (!(cause instanceof JsonPathError)) throw cause
    throw new KubectlError(`error: -o ${name}: ${cause.message}`, { cause })
  }
}

function formatNamed(name: string, argument: string | undefined): Format {
  switch (name) {
    case '':
    case 'table':
      return { kind: 'plain', isWide: false }
    case 'wide':
      return { kind: 'plain', isWide: true }
    case 'json':
    case 'yaml':
    case 'name':
      return { kind: name }
    case 'jsonpath':
      return { kind: 'jsonpath', template: parseTemplate(given(name, argument, '{.items[*].metadata.name}')) }
    case 'custom-columns':
      return { kind: 'custom-columns', columns: columnsOf(given(name, argument, 'NAME:.metadata.name')) }
    default:
      throw new KubectlError(`error: the output format ${name} is not known: use one of ${allFormats}`)
  }
}

function given(name: string, argument: string | undefined, example: string): string {
  if (argument === undefined || argument === '')
    throw new KubectlError(`error: -o ${name} needs a template, for example ${name}=${example}`)
  return argument
}

/** `TITLE:PATH,TITLE:PATH`. Commas and colons in brackets, braces and quotes belong to the path. */
function columnsOf(text: string): readonly CustomColumn[] {
  return splitOutside(text).map((column) => {
    const colon = column.indexOf(':')
    const [title, path] = [column.slice(0, colon), column.slice(colon + 1)]
    if (colon < 1 || path === '')
      throw new KubectlError(`error: -o custom-columns: ${column} is not of the form TITLE:PATH`)
    return { title, path: parsePath(path) }
  })
}

function splitOutside(text: string): readonly string[] {
  const parts: string[] = []
  let part = ''
  let depth = 0
  let quote = ''
  for (const letter of text) {
    if (quote !== '') quote = letter === quote ? '' : quote
    else if (letter === '"' || letter === "'") quote = letter
    else if ('[{('.includes(letter)) depth++
    else if (']})'.includes(letter)) depth--
    if (letter === ',' && depth === 0 && quote === '') {
      parts.push(part)
      part = ''
    } else part += letter
  }
  return [...parts, part]
}
