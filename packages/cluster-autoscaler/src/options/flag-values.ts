/** Parses a command line as Cluster Autoscaler does (cluster-autoscaler.md 8). */
import { nearest } from '@tenon/api'
import { argumentsOf, booleanWords, type FlagDefinition, flagValue } from '@tenon/api/flags'

/** The given flags, or the problem. */
export type ParsedFlags =
  | { readonly kind: 'help' }
  /** The command line cannot be parsed. */
  | { readonly kind: 'usage'; readonly message: string }
  | { readonly kind: 'values'; readonly values: FlagValues }

/** The flags of a command line, by name with dashes instead of underscores; each value is valid for its kind. */
export class FlagValues {
  readonly #definitions: ReadonlyMap<string, FlagDefinition>
  readonly #given: ReadonlyMap<string, readonly string[]>

  constructor(definitions: readonly FlagDefinition[], given: ReadonlyMap<string, readonly string[]>) {
    this.#definitions = new Map(definitions.map((each) => [each.flag, each]))
    this.#given = given
  }

  isGiven(name: string): boolean {
    return this.#given.has(name)
  }

  /** Names as in the definitions, in the order in which they were first given. */
  get given(): readonly string[] {
    return [...this.#given.keys()]
  }

  text(name: string): string {
    return this.#given.get(name)?.at(-1) ?? this.#definition(name).fallback
  }

  /** For `texts` each given value; for `commas` all parts. */
  list(name: string): readonly string[] {
    const given = this.#given.get(name) ?? []
    if (this.#definition(name).kind === 'texts') return given
    return given.flatMap((list) => list.split(',')).filter((part) => part !== '')
  }

  isOn(name: string): boolean {
    return booleanWords.get(this.text(name)) === true
  }

  integer(name: string): number {
    return this.#number(name, 'integer')
  }

  number(name: string): number {
    return this.#number(name, 'number')
  }

  durationMs(name: string): number {
    return this.#number(name, 'duration')
  }

  #number(name: string, kind: 'integer' | 'number' | 'duration'): number {
    const value = flagValue({ kind }, this.text(name))
    if (typeof value !== 'number') throw new Error(`--${name} was read as another kind`)
    return value
  }

  #definition(name: string): FlagDefinition {
    const definition = this.#definitions.get(name)
    if (definition === undefined) throw new Error(`there is no flag --${name}`)
    return definition
  }
}

/** Parses arguments; ignores those that are not flags, and everything after `--`. */
export function parseFlags(args: readonly string[], definitions: readonly FlagDefinition[]): ParsedFlags {
  const given = new Map<string, string[]>()
  const find = (name: string) =>
    definitions.find(({ flag }) => (flag.endsWith('*') ? name.startsWith(flag.slice(0, -1)) : flag === name))
  for (const each of argumentsOf(args, spelled, find)) {
    if (each.kind !== 'flag') continue
    const { definition, name, value } = each
    const arg = args[each.at] ?? ''
    const isLong = spelled(arg).startsWith('--')
    if (isLong && (name === 'help' || name === 'h')) return { kind: 'help' }
    if (definition === undefined)
      return usage(`unknown flag ${arg.split('=')[0]}${isLong ? suggestion(name, definitions) : ''}`)
    if (value === undefined) return usage(`--${name} needs a value`)
    if (flagValue(definition, value) === undefined)
      return usage(`--${name}=${value}: give ${expected(definition)}`)
    given.set(definition.flag, [...(given.get(definition.flag) ?? []), value])
  }
  return { kind: 'values', values: new FlagValues(definitions, given) }
}

/** Names may contain underscores. Only `-v` and `-h` may be short; the value of `-v` may follow directly. */
function spelled(arg: string): string {
  const [, level] = /^-v(?!=)(.+)$/s.exec(arg) ?? []
  if (level !== undefined) return `--v=${level}`
  if (/^-[vh](=|$)/.test(arg)) return `-${arg}`
  return arg.replace(/^--[^=]+/, (name) => name.replaceAll('_', '-'))
}

/** A typo is one letter; with more, nearly every short name would match another. */
function suggestion(name: string, definitions: readonly FlagDefinition[]): string {
  const names = definitions.map(({ flag }) => flag)
  const near = name.length < 4 ? undefined : nearest(name, names, 1)
  return near === undefined ? '' : `, did you mean --${near}?`
}

function usage(message: string): ParsedFlags {
  return { kind: 'usage', message }
}

function expected({ kind }: FlagDefinition): string {
  switch (kind) {
    case 'boolean':
      return 'true or false'
    case 'integer':
      return 'a whole number'
    case 'number':
      return 'a number'
    case 'duration':
      return 'a duration such as 10s or 1m30s'
    case 'commas':
      return 'a list with commas'
    case 'booleanOrAuto':
    case 'choice':
    case 'list':
    case 'name':
    case 'text':
    case 'texts':
      return 'some text'
  }
}
