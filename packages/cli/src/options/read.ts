/** Options from the command line and the environment: a flag beats its variable, which beats the default. */
import { ownValue } from '@tenon/api'
import type { ProviderOption } from '@tenon/provider'
import { CliError, startUpExitCode } from '../errors.ts'
import { parseArguments } from './arguments.ts'
import { type OptionDefinition, retiredOptions } from './definitions.ts'
import { expected, valueOf } from './values.ts'

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

function readOne(
  definition: OptionDefinition,
  flagText: string | undefined,
  variableText: string | undefined,
): { readonly value: string | number | boolean; readonly warning?: OptionWarning } {
  const { flag, variable = '', kind, fallback } = definition
  if (flagText !== undefined) {
    const value = valueOf(definition, flagText, 'flag')
    if (value === undefined) throw refusal(`--${flag}=${flagText}`, definition)
    return { value }
  }
  const otherwise = defaultOf(definition)
  if (variableText === undefined) return { value: otherwise }
  const value = valueOf(definition, variableText, 'variable')
  if (value !== undefined) return { value }
  if (!forgivingKinds.has(kind)) throw refusal(`${variable}=${variableText}`, definition)
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
  return valueOf(definition, fallback, 'variable') ?? fallback
}

/** The values of a provider's options where none is given, by their variables. */
export function providerDefaults(options: readonly ProviderOption[]): Readonly<Record<string, string>> {
  return Object.fromEntries(options.map((option) => [option.variable, String(defaultOf(option))]))
}

function refusal(what: string, definition: OptionDefinition): CliError {
  return new CliError(`${what}: ${expected(definition)}`, { exitCode: startUpExitCode })
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
