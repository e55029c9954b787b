/**
 * Command-line flags as those of Kubernetes programs. A table of definitions yields parser, help and
 * documentation. The controller and the Cluster Autoscaler mode have one table each.
 */
import { parseArgs } from 'node:util'
import { parseDuration } from './duration.ts'

/**
 * A `list` is separated by commas and has no empty items; `commas` is one that may be empty. `texts` may be
 * repeated; each adds one.
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
  /** Without the leading dashes. */
  readonly flag: string
  readonly kind: FlagKind
  /** The default, as on a command line; empty for none. */
  readonly fallback: string
  readonly choices?: readonly string[]
  /** Help text. */
  readonly meaning: string
}

/** One argument of a command line. */
export type Argument<D> =
  /** `definition` is undefined for an unknown flag, `value` if it is missing. */
  | {
      readonly kind: 'flag'
      readonly at: number
      readonly name: string
      readonly definition: D | undefined
      readonly value: string | undefined
    }
  | { readonly kind: 'word'; readonly at: number }
  /** `--`: everything after it is a word. */
  | { readonly kind: 'end'; readonly at: number }

/**
 * Splits a command line, in order. A value follows `=` or a space; that of a boolean only follows `=`, and a
 * boolean without one is `true`.
 * @param spelled writes a flag with two dashes, and returns words as they are.
 * @param find returns the definition of a flag.
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
    // The argument after the flag is its value, even if it looks like a flag.
    const given = inlineValue === false ? args[at + 1] : token.value
    const value = given ?? (definition !== undefined && isSwitch(definition) ? 'true' : undefined)
    return { kind: 'flag', at, name, definition, value }
  })
}

function isSwitch({ kind }: Pick<FlagDefinition, 'kind'>): boolean {
  return kind === 'boolean' || kind === 'booleanOrAuto'
}

/**
 * Karpenter's flags take integers with a base prefix, and `true` or `false`. Its environment variables and the
 * flags of Cluster Autoscaler take decimal integers and {@link booleanWords}.
 */
export type ValueSyntax = 'karpenterFlag' | 'usual'

/** Parses a value of a flag; undefined if it is not valid. */
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

/** The words that Go parses as booleans. */
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

/** Reads `0x`, `0o` and `0b` prefixes as Go does; a leading zero means octal. */
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

/** Wraps help text; every line starts with the indent. */
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
