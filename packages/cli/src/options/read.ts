/**
 * Reads options from command line and environment: a flag takes precedence over its variable, which takes
 * precedence over the default.
 */
import { nearest, ownValue } from '@tenon/api'
import { argumentsOf, flagValue } from '@tenon/api/flags'
import type { ProviderOption } from '@tenon/provider'
import { CliError, startUpExitCode } from '../errors.ts'
import { type OptionDefinition, retiredOptions } from './definitions.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Something that has no effect, or not the intended one. */
export interface OptionWarning {
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** The parsed values of all options. */
export interface ReadOptions {
  text(flag: string): string
  number(flag: string): number
  isOn(flag: string): boolean
  /** How the user set it, for messages: by flag or by variable. */
  nameOf(flag: string): string
  readonly warnings: readonly OptionWarning[]
}

/** An invalid number, duration or boolean in a variable is ignored, as in Karpenter. */
const forgivingKinds: ReadonlySet<string> = new Set(['integer', 'boolean', 'booleanOrAuto', 'duration'])

/**
 * Parses all options.
 * @param chosen the provider that runs; options of others are ignored with a warning.
 * @throws CliError naming the invalid flag or variable, and its valid values.
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

/** Values by flag, or `help`. If a flag is given twice, the last one counts. */
type Given = ReadonlyMap<string, string> | 'help'

/**
 * Parses a command line as Go's `flag` package does: one or two dashes, `=` or a space (operations.md 2).
 * @throws CliError for an unknown option, naming the fix.
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

/** Karpenter would silently ignore everything from here on. */
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

// Defaults are valid, except that an empty one may be of any kind.
function defaultOf(
  definition: Pick<OptionDefinition, 'kind' | 'choices' | 'fallback'>,
): string | number | boolean {
  const { fallback } = definition
  return flagValue(definition, fallback) ?? fallback
}

/** The defaults of a provider's options, by variable. */
export function providerDefaults(options: readonly ProviderOption[]): Readonly<Record<string, string>> {
  return Object.fromEntries(options.map((option) => [option.variable, String(defaultOf(option))]))
}

/** Describes valid values of an option, for messages. */
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

/** Options of providers that do not run. */
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
