/** Options from the command line and the environment: a flag beats its variable, which beats the default. */
import { nearest, ownValue } from '@tenon/api'
import { argumentsOf, flagValue } from '@tenon/api/flags'
import type { ProviderOption } from '@tenon/provider'
import { CliError, startUpExitCode } from '../errors.ts'
import { type OptionDefinition, retiredOptions } from './definitions.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Something that the user wrote and that has no effect, or not the one that was meant. */
export interface OptionWarning {
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** The values of all options, read as their kinds say. */
export interface ReadOptions {
  text(flag: string): string
  number(flag: string): number
  isOn(flag: string): boolean
  /** The name the user gave it by, for messages: the flag or the variable. */
  nameOf(flag: string): string
  readonly warnings: readonly OptionWarning[]
}

/** A number, a duration or a boolean in a variable that cannot be read is skipped, as Karpenter does. */
const forgivingKinds: ReadonlySet<string> = new Set(['integer', 'boolean', 'booleanOrAuto', 'duration'])

/**
 * Reads all options.
 * @param chosen the provider that runs; its options count, those of others are ignored with a warning.
 * @throws CliError naming the flag or variable that cannot be read, and what it takes.
 */
export function readOptions(
  args: readonly string[],
  env: Env,
  definitions: readonly OptionDefinition[],
  chosen: string | undefined,
): ReadOptions | 'help' {
  const given = parseArguments(args, definitions)
  if (given === 'help') return 'help'
  const warnings: OptionWarning[] = retiredVariables(env)
  const values = new Map<string, string | number | boolean>()
  const names = new Map<string, string>()
  for (const definition of definitions) {
    const { flag, variable } = definition
    const named = given.has(flag) || variable === undefined ? `--${flag}` : variable
    names.set(flag, named)
    const { value, warning } = readOne(definition, given.get(flag), variable && ownValue(env, variable))
    values.set(flag, value)
    if (warning !== undefined) warnings.push(warning)
  }
  return {
    text: (flag) => String(values.get(flag)),
    number: (flag) => Number(values.get(flag)),
    isOn: (flag) => values.get(flag) === true,
    nameOf: (flag) => names.get(flag) ?? flag,
    warnings: [...warnings, ...otherProviders(definitions, chosen, given, env)],
  }
}

/** Texts by flag, or that help is wanted. Of a flag given twice the last one is used. */
type Given = ReadonlyMap<string, string> | 'help'

/**
 * Reads a command line as Go's `flag` package does: one or two dashes, `=` or a space (operations.md 2).
 * @throws CliError for what is no option, naming the fix.
 */
export function parseArguments(args: readonly string[], definitions: readonly OptionDefinition[]): Given {
  const known = new Map(definitions.map((definition) => [definition.flag, definition]))
  const given = new Map<string, string>()
  const twoDashes = (arg: string) => arg.replace(/^-(?=[^-])/, '--')
  for (const each of argumentsOf(args, twoDashes, (name) => known.get(name))) {
    if (each.kind !== 'flag' || !/^[^-=]/.test(each.name)) throw stray(args[each.at] ?? '', args[each.at - 1])
    const { definition, name, value } = each
    if (name === 'h' || name === 'help') return 'help'
    if (definition === undefined) throw unknown(name, [...known.keys()])
    if (value === undefined) throw refusal(`--${name} needs a value: --${name}=${definition.takes}`)
    given.set(name, value)
  }
  return given
}

/** Karpenter would pass over everything from here on without a word. */
function stray(arg: string, before = ''): CliError {
  const isForBoolean = /^(?:true|false)$/i.test(arg) && before.startsWith('-')
  const fix = isForBoolean ? `write ${before}=${arg.toLowerCase()}` : 'options begin with --'
  return refusal(`"${arg}" is not an option: ${fix}`)
}

function unknown(name: string, flags: readonly string[]): CliError {
  const retired = retiredOptions.find((each) => each.flag === name)
  if (retired !== undefined) return refusal(`--${name} is no longer an option: ${retired.advice}`)
  const near = nearest(name, flags)
  return refusal(
    `unknown option --${name}${near === undefined ? '' : `, did you mean --${near}?`} (see --help)`,
  )
}

function readOne(
  definition: OptionDefinition,
  flagText: string | undefined,
  variableText: string | undefined,
): { readonly value: string | number | boolean; readonly warning?: OptionWarning } {
  const { flag, variable = '', kind, fallback } = definition
  if (flagText !== undefined) {
    const value = flagValue(definition, flagText, 'karpenterFlag')
    if (value === undefined) throw misread(`--${flag}=${flagText}`, definition)
    return { value }
  }
  const otherwise = defaultOf(definition)
  if (variableText === undefined) return { value: otherwise }
  const value = flagValue(definition, variableText)
  if (value !== undefined) return { value }
  if (!forgivingKinds.has(kind)) throw misread(`${variable}=${variableText}`, definition)
  return {
    value: otherwise,
    warning: {
      message: 'ignoring an invalid environment variable',
      fields: { variable, value: variableText, using: fallback, fix: expected(definition) },
    },
  }
}

// What was chosen as default is of its kind; only a default of nothing need not be.
function defaultOf(
  definition: Pick<OptionDefinition, 'kind' | 'choices' | 'fallback'>,
): string | number | boolean {
  const { fallback } = definition
  return flagValue(definition, fallback) ?? fallback
}

/** The values of a provider's options where none is given, by their variables. */
export function providerDefaults(options: readonly ProviderOption[]): Readonly<Record<string, string>> {
  return Object.fromEntries(options.map((option) => [option.variable, String(defaultOf(option))]))
}

/** What a value of the kind looks like, for messages. */
function expected({ kind, choices = [] }: OptionDefinition): string {
  switch (kind) {
    case 'commas':
    case 'text':
    case 'texts':
      return 'use a non-empty value'
    case 'name':
      return 'give a name'
    case 'choice':
      return `give ${choices.filter((each) => each !== '').join(' or ')}`
    case 'list':
      return 'use stdout, stderr or file paths, separated by commas'
    case 'integer':
      return 'use an integer'
    case 'number':
      return 'use a number'
    case 'boolean':
      return 'use true or false'
    case 'booleanOrAuto':
      return 'use true, false or auto'
    case 'duration':
      return 'use a duration such as 10s or 1m30s'
  }
}

function misread(what: string, definition: OptionDefinition): CliError {
  return refusal(`${what}: ${expected(definition)}`)
}

function refusal(message: string): CliError {
  return new CliError(message, { exitCode: startUpExitCode })
}

function retiredVariables(env: Env): OptionWarning[] {
  return retiredOptions
    .filter(({ variable }) => ownValue(env, variable) !== undefined)
    .map(({ variable, advice }) => ({
      message: 'ignoring an environment variable that no longer has an effect',
      fields: { variable, fix: advice.replace('disable-leader-election', 'DISABLE_LEADER_ELECTION') },
    }))
}

/** Options of a provider that does not run. */
function otherProviders(
  definitions: readonly OptionDefinition[],
  chosen: string | undefined,
  given: ReadonlyMap<string, string>,
  env: Env,
): readonly OptionWarning[] {
  return definitions
    .filter(({ provider }) => provider !== undefined && provider !== chosen)
    .filter(({ flag, variable = '' }) => given.has(flag) || (ownValue(env, variable) ?? '') !== '')
    .map(({ flag, provider }) => ({
      message: 'ignoring an option of another provider',
      fields: { option: `--${flag}`, provider },
    }))
}
