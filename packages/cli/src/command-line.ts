/** Shared by the registrations of commands: values of options, examples, exit codes. */
import { parseDuration } from '@tenon/api/duration'
import { CommanderError, InvalidArgumentError } from 'commander'

/** For commands whose exit code 1 is an answer: an invalid command line exits with 2. */
export function couldNotRun(error: CommanderError): never {
  throw error.exitCode === 0 ? error : new CommanderError(2, error.code, error.message)
}

/** Exits with a code that is an answer, without an error message. */
export function exitWith(code: number): void {
  if (code !== 0) throw new CommanderError(code, 'tenon.answer', '')
}

export function collect(value: string, previous: readonly string[]): readonly string[] {
  return [...previous, value]
}

export function port(value: string): number {
  const number = Number(value)
  if (!Number.isInteger(number) || number < 0 || number > 65_535) {
    throw new InvalidArgumentError('Use a port from 0 to 65535; 0 for a free one.')
  }
  return number
}

export function duration(value: string): number {
  const ms = parseDuration(value)
  if (ms === undefined || ms < 0) throw new InvalidArgumentError('Use a duration such as 2s or 1m30s.')
  return ms
}

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}\n`
}
