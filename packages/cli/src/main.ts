#!/usr/bin/env node
/** The `tenon` process: the only place that accesses argv, the environment and the standard streams. */
import module from 'node:module'
import { text as readAll } from 'node:stream/consumers'
import type { Io, ProgramEnd } from './io.ts'

// Compilation dominates CPU time and memory of a start, so its results are cached in the temporary directory.
// Imports above this line are not cached. Threads inherit the setting through the environment.
const { directory } = module.enableCompileCache()
if (directory !== undefined) process.env['NODE_COMPILE_CACHE'] ??= directory
const { CommanderError } = await import('commander')
const { CliError } = await import('./errors.ts')
const { createProgram } = await import('./program.ts')
const { processTerminal } = await import('./commands/view/terminal.ts')

const interrupted = new AbortController()
/** Kills the process if the shutdown hangs: sooner if a user waits at a terminal, later if a lease is handed over. */
const shutdownLimitMs = { SIGINT: 1800, SIGTERM: 8000 }
let exitCode = 0

function interrupt(code: number, limitMs: number): void {
  exitCode = code
  if (interrupted.signal.aborted) process.exit(code)
  interrupted.abort(new Error('interrupted'))
  setTimeout(() => process.exit(code), limitMs).unref()
}

process.on('SIGINT', () => {
  interrupt(130, shutdownLimitMs.SIGINT)
})
process.on('SIGTERM', () => {
  interrupt(0, shutdownLimitMs.SIGTERM)
})
process.on('SIGQUIT', () => {
  interrupt(0, shutdownLimitMs.SIGTERM)
})
// A closed pipe is the reader's decision, not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(exitCode)
  throw error
})

async function readLine(): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  const lines = createInterface({ input: process.stdin })
  try {
    return await lines.question('', { signal: interrupted.signal })
  } finally {
    lines.close()
  }
}

const mostOutputBytes = 256 * 1024 * 1024

async function runSelf(args: readonly string[], signal: AbortSignal): Promise<ProgramEnd> {
  const { execFile } = await import('node:child_process')
  const all = [...process.execArgv, process.argv[1] ?? '', ...args]
  return await new Promise<ProgramEnd>((resolve) => {
    const options = { signal, maxBuffer: mostOutputBytes, encoding: 'utf8' } as const
    execFile(process.execPath, all, options, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
      resolve({ code, out, err: err === '' && error !== null ? error.message : err })
    }).stdin?.end()
  })
}

const isInteractive = process.stdout.isTTY && process.stdin.isTTY

const io: Io = {
  env: process.env,
  cwd: process.cwd(),
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  isTerminal: process.stdout.isTTY,
  input: () => readAll(process.stdin),
  ...(process.stdin.isTTY && { answer: readLine }),
  ...(isInteractive && { terminal: processTerminal(process) }),
  runSelf,
  size: () => ({ columns: process.stdout.columns, rows: process.stdout.rows }),
  interrupted: interrupted.signal,
}

try {
  const program = await createProgram(io, process.argv[2])
  await program.parseAsync(process.argv)
} catch (error) {
  if (error instanceof CommanderError) {
    exitCode = error.exitCode
  } else if (!interrupted.signal.aborted) {
    exitCode = error instanceof CliError ? error.exitCode : 1
    const line =
      error instanceof CliError
        ? error.line
        : `error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
    io.err(`${line}\n`)
  }
}
process.exitCode = exitCode
if (interrupted.signal.aborted || exitCode !== 0) process.exit(exitCode)
