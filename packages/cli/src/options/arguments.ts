/** Reads a command line as Go's `flag` package does: one or two dashes, `=` or a space (operations.md 2). */
import { CliError, startUpExitCode } from '../errors.ts'
import { type OptionDefinition, retiredOptions } from './definitions.ts'
import { nearest } from './nearest.ts'

/** Texts by flag, or that help is wanted. Of a flag given twice the last one is used. */
export type Arguments = ReadonlyMap<string, string> | 'help'

/**
 * A boolean without `=` means true and takes nothing from what follows it.
 * @throws CliError for what is no option, naming the fix.
 */
export function parseArguments(args: readonly string[], definitions: readonly OptionDefinition[]): Arguments {
  const known = new Map(definitions.map((definition) => [definition.flag, definition]))
  const given = new Map<string, string>()
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? ''
    const [, name, , attached] = /^--?([^-=][^=]*)(=(.*))?$/s.exec(arg) ?? []
    if (name === 'h' || name === 'help') return 'help'
    if (name === undefined) throw stray(arg, args[at - 1])
    const definition = known.get(name)
    if (definition === undefined) throw unknown(name, [...known.keys()])
    const { kind } = definition
    if (attached !== undefined) given.set(name, attached)
    else if (kind === 'boolean' || kind === 'booleanOrAuto') given.set(name, 'true')
    else if (++at < args.length) given.set(name, args[at] ?? '')
    else throw refusal(`--${name} needs a value: --${name}=${definition.takes}`)
  }
  return given
}

function refusal(message: string): CliError {
  return new CliError(message, { exitCode: startUpExitCode })
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
