/**
 * Flags of programs that are started as Kubernetes' own are: a table of definitions, from which a command line, help
 * and documentation are read. The controller and the Cluster Autoscaler mode have one each.
 */
import { parseArgs } from 'node:util'
import { parseDuration } from './duration.ts'

/**
 * A `list` has commas, and none of its items may be empty; `commas` is a list with commas that may be empty. `texts`
 * may be given several times, each adding one.
 */
export type FlagKind =
  | 'boolean'
  | 'booleanOrAuto'
  | 'choice'
  | 'commas'
  | 'duration'
  | 'integer'
  | 'list'
  | 'name'
  | 'number'
  | 'text'
  | 'texts'

export interface FlagDefinition {
  /** Without dashes before it. */
  readonly flag: string
  readonly kind: FlagKind
  /** As on a command line; empty for none. */
  readonly fallback: string
  readonly choices?: readonly string[]
  /** For help and documentation. */
  readonly meaning: string
}

/** One thing on a command line. */
export type Argument<D> =
  /** `definition` is undefined for a flag that nobody knows, `value` where one is missing. */
  | {
      readonly kind: 'flag'
      readonly at: number
      readonly name: string
      readonly definition: D | undefined
      readonly value: string | undefined
    }
  | { readonly kind: 'word'; readonly at: number }
  /** `--`; only words follow. */
  | { readonly kind: 'end'; readonly at: number }

/**
 * What a command line says, in its order. A value stands after `=` or a space, that of a boolean after `=` only; a
 * boolean alone is `true`.
 * @param spelled writes an argument with two dashes, if it is a flag at all.
 * @param find the definition of a name.
 */
export function argumentsOf<D extends Pick<FlagDefinition, 'kind'>>(
  args: readonly string[],
  spelled: (arg: string) => string,
  find: (name: string) => D | undefined,
): readonly Argument<D>[] {
  const words = args.map(spelled)
  const named = words.flatMap((word) => {
    const [, name] = /^--([^=]+)/.exec(word) ?? []
    const definition = name === undefined ? undefined : find(name)
    return name === undefined || definition === undefined ? [] : [[name, definition] as const]
  })
  const options = Object.fromEntries(
    named.map(([name, definition]) => [
      name,
      { type: isSwitch(definition) ? ('boolean' as const) : ('string' as const) },
    ]),
  )
  const { tokens } = parseArgs({
    args: words,
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  return tokens.map((token): Argument<D> => {
    const { index: at } = token
    if (token.kind === 'option-terminator') return { kind: 'end', at }
    if (token.kind === 'positional') return { kind: 'word', at }
    const { name, inlineValue } = token
    const definition = token.rawName.startsWith('--') ? find(name) : undefined
    // A value of its own is as it was given, also where it looks like a flag.
    const given = inlineValue === false ? args[at + 1] : token.value
    const value = given ?? (definition !== undefined && isSwitch(definition) ? 'true' : undefined)
    return { kind: 'flag', at, name, definition, value }
  })
}

function isSwitch({ kind }: Pick<FlagDefinition, 'kind'>): boolean {
  return kind === 'boolean' || kind === 'booleanOrAuto'
}

/**
 * Karpenter's flags take whole numbers with a base, and booleans in full. Its variables, and the flags of Cluster
 * Autoscaler, take decimal numbers and {@link booleanWords}.
 */
export type ValueSyntax = 'karpenterFlag' | 'usual'

/** What a flag may be; undefined where the text is not a value of its kind. */
export function flagValue(
  { kind, choices = [] }: Pick<FlagDefinition, 'kind' | 'choices'>,
  value: string,
  syntax: ValueSyntax = 'usual',
): string | number | boolean | undefined {
  switch (kind) {
    case 'commas':
    case 'text':
    case 'texts':
      return value
    case 'name':
      return value === '' ? undefined : value
    case 'choice':
      return choices.includes(value) ? value : undefined
    case 'list':
      return value.split(',').includes('') ? undefined : value
    case 'integer':
      return syntax === 'usual' ? decimalInteger(value) : prefixedInteger(value)
    case 'number':
      return numberOf(value)
    case 'booleanOrAuto':
      return value === 'auto' ? value : booleanOf(value, syntax)
    case 'boolean':
      return booleanOf(value, syntax)
    case 'duration':
      return parseDuration(value)
  }
}

/** The words of Go for true and false. */
export const booleanWords: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((word) => [word, false] as const),
])

function booleanOf(text: string, syntax: ValueSyntax): boolean | undefined {
  return syntax === 'usual' || text === 'true' || text === 'false' ? booleanWords.get(text) : undefined
}

function numberOf(text: string): number | undefined {
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? Number(text) : undefined
}

function decimalInteger(text: string): number | undefined {
  return /^[+-]?\d+$/.test(text) ? safe(Number(text)) : undefined
}

/** With `0x`, `0o` or `0b` before it in that base; a zero alone before it means eight. */
function prefixedInteger(text: string): number | undefined {
  const [, sign = '', digits = ''] = /^([+-]?)(\w+)$/.exec(text) ?? []
  const octal = /^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits
  if (!/^(?:0[xX][\da-fA-F]+|0[oO][0-7]+|0[bB][01]+|[1-9]\d*|0)$/.test(octal)) return undefined
  const value = safe(Number(octal))
  return value === undefined || sign !== '-' ? value : -value
}

function safe(value: number): number | undefined {
  return Number.isSafeInteger(value) ? value : undefined
}

const helpColumns = 100

/** Lines of help, each behind the indent. */
export function wrapped(text: string, indent: string = ' '.repeat(6)): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && indent.length + line.length + word.length + 1 > helpColumns) {
      lines.push(indent + line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, indent + line]
}
