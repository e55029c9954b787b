/** Reading a command line as Cluster Autoscaler does (cluster-autoscaler.md 8). */
import { parseDuration } from '@tenon/api'
import type { FlagDefinition, FlagKind } from './flag.ts'

/** The flags that were given, or what is wrong with them. */
export type ParsedFlags =
  | { readonly kind: 'help' }
  /** The command line cannot be read. */
  | { readonly kind: 'usage'; readonly message: string }
  | { readonly kind: 'values'; readonly values: FlagValues }

/** The flags of a command line, by their names with dashes; each value is one of its kind. */
export class FlagValues {
  readonly #definitions: ReadonlyMap<string, FlagDefinition>
  readonly #given: ReadonlyMap<string, readonly string[]>

  constructor(definitions: readonly FlagDefinition[], given: ReadonlyMap<string, readonly string[]>) {
    this.#definitions = new Map(definitions.map((each) => [each.name, each]))
    this.#given = given
  }

  isGiven(name: string): boolean {
    return this.#given.has(name)
  }

  /** Names as they stand in the definitions, in the order in which they were first given. */
  get given(): readonly string[] {
    return [...this.#given.keys()]
  }

  text(name: string): string {
    return this.#given.get(name)?.at(-1) ?? this.#definition(name).fallback
  }

  /** Of `texts` each that was given; of `commas` all parts. */
  list(name: string): readonly string[] {
    const given = this.#given.get(name) ?? []
    if (this.#definition(name).kind === 'texts') return given
    return given.flatMap((list) => list.split(',')).filter((part) => part !== '')
  }

  isOn(name: string): boolean {
    return booleans.get(this.text(name)) === true
  }

  integer(name: string): number {
    return this.#number(name, integerOf)
  }

  number(name: string): number {
    return this.#number(name, numberOf)
  }

  durationMs(name: string): number {
    return this.#number(name, parseDuration)
  }

  #number(name: string, read: (text: string) => number | undefined): number {
    const value = read(this.text(name))
    if (value === undefined) throw new Error(`--${name} was read as another kind`)
    return value
  }

  #definition(name: string): FlagDefinition {
    const definition = this.#definitions.get(name)
    if (definition === undefined) throw new Error(`there is no flag --${name}`)
    return definition
  }
}

/** Reads arguments; those that are no flags are passed over, as are all after `--`. */
export function parseFlags(args: readonly string[], definitions: readonly FlagDefinition[]): ParsedFlags {
  const given = new Map<string, string[]>()
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? ''
    if (arg === '--') break
    if (!arg.startsWith('-') || arg === '-') continue
    const { name, value: attached } = partsOf(arg)
    if (name === 'help' || name === 'h') return { kind: 'help' }
    const definition = definitionOf(name, definitions)
    if (definition === undefined)
      return usage(`unknown flag ${arg.split('=')[0]}${suggestion(name, definitions)}`)
    const takesNext = attached === undefined && definition.kind !== 'boolean'
    const value = attached ?? (takesNext ? args[++at] : 'true')
    if (value === undefined) return usage(`--${name} needs a value`)
    if (!isValue(definition.kind, value))
      return usage(`--${name}=${value}: give ${expected[definition.kind]}`)
    given.set(definition.name, [...(given.get(definition.name) ?? []), value])
  }
  return { kind: 'values', values: new FlagValues(definitions, given) }
}

/** `-v` alone may be short, and have its value right behind it. */
function partsOf(arg: string): { readonly name: string; readonly value: string | undefined } {
  const [, short] = /^-v(?!=)(.+)$/s.exec(arg) ?? []
  if (short !== undefined) return { name: 'v', value: short }
  const isLong = arg.startsWith('--')
  const text = arg.slice(isLong ? 2 : 1)
  const equals = text.indexOf('=')
  const name = (equals === -1 ? text : text.slice(0, equals)).replaceAll('_', '-')
  const isKnownForm = isLong || name === 'v' || name === 'h'
  return { name: isKnownForm ? name : '', value: equals === -1 ? undefined : text.slice(equals + 1) }
}

function definitionOf(name: string, definitions: readonly FlagDefinition[]): FlagDefinition | undefined {
  return definitions.find((each) =>
    each.name.endsWith('*') ? name.startsWith(each.name.slice(0, -1)) : each.name === name,
  )
}

function suggestion(name: string, definitions: readonly FlagDefinition[]): string {
  const near = definitions.find((each) => isNear(name, each.name))
  return near === undefined ? '' : `, did you mean --${near.name}?`
}

/** Whether two names have the same letters but for one, as after a slip of the finger. */
function isNear(a: string, b: string): boolean {
  if (a.length < 4 || Math.abs(a.length - b.length) > 1) return false
  const start = Array.from(a).findIndex((letter, at) => letter !== b[at])
  if (start === -1) return true
  return [
    [1, 1],
    [1, 0],
    [0, 1],
  ].some(([skipA = 0, skipB = 0]) => a.slice(start + skipA) === b.slice(start + skipB))
}

function usage(message: string): ParsedFlags {
  return { kind: 'usage', message }
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((word) => [word, false] as const),
])

function isValue(kind: FlagKind, text: string): boolean {
  switch (kind) {
    case 'boolean':
      return booleans.has(text)
    case 'integer':
      return integerOf(text) !== undefined
    case 'number':
      return numberOf(text) !== undefined
    case 'duration':
      return parseDuration(text) !== undefined
    case 'text':
    case 'texts':
    case 'commas':
      return true
  }
}

const expected: Readonly<Record<FlagKind, string>> = {
  boolean: 'true or false',
  integer: 'a whole number',
  number: 'a number',
  duration: 'a duration such as 10s or 1m30s',
  text: 'some text',
  texts: 'some text',
  commas: 'a list with commas',
}

function integerOf(text: string): number | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined
  const value = Number(text)
  return Number.isSafeInteger(value) ? value : undefined
}

function numberOf(text: string): number | undefined {
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? Number(text) : undefined
}
