/** Runs a command of `tenon` in this process, with a terminal that a test plays. */
import { CommanderError } from 'commander'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { createProgram } from '../program.ts'
import { assertPrinted } from './printed.test-support.ts'

/** What a command printed, and the exit code of its process. */
export interface CommandOutcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** What a command is run with. */
type Surroundings = Partial<Pick<Io, 'env' | 'cwd' | 'isTerminal'>> & { readonly input?: string }

/** Runs `tenon ARGS` to its end; what it prints as JSON has to be as the published schema says. */
export async function runCommand(
  args: readonly string[],
  { env = {}, cwd = '/', input = '', isTerminal = false }: Surroundings = {},
): Promise<CommandOutcome> {
  let [out, err] = ['', '']
  const io: Io = {
    env,
    cwd,
    out: (text) => (out += text),
    err: (text) => (err += text),
    input: () => Promise.resolve(input),
    isTerminal,
    size: () => ({ columns: 80, rows: 24 }),
    interrupted: new AbortController().signal,
  }
  try {
    const program = await createProgram(io, args[0])
    await program.parseAsync(['node', 'tenon', ...args])
    if (args[args.indexOf('-o') + 1] === 'json' && args[0] !== 'version') assertPrinted(out)
    return { code: 0, out, err }
  } catch (error) {
    if (error instanceof CommanderError) return { code: error.exitCode, out, err }
    if (error instanceof CliError) return { code: error.exitCode, out, err: `${err}${error.line}\n` }
    throw error
  }
}
