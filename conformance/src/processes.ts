import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Clock, sleepOn } from '@tenon/runtime'

/** A program ended although nobody stopped it; the message contains the end of its log. */
class ProcessEndedError extends Error {
  readonly code = 'PROCESS_ENDED'
}

const linesOfLog = 12
const deathSignalCommand = '/usr/bin/setpriv'

/** Programs that run together: if one ends on its own, `failure` rejects; `stop` ends all. */
export class ProcessGroup {
  /** Never resolves; rejects with {@link ProcessEndedError} if a program ends on its own. */
  readonly failure: Promise<never>
  readonly #children: ChildProcess[] = []
  readonly #logFolder: string
  readonly #clock: Clock
  #fail: (error: Error) => void = () => {}
  #stopping = false

  constructor(logFolder: string, clock: Clock) {
    this.#logFolder = logFolder
    this.#clock = clock
    this.failure = new Promise((_resolve, reject) => {
      this.#fail = reject
    })
    // Waits race against it; if nobody waits, it must not become an unhandled rejection.
    this.failure.catch(() => {})
  }

  /** Starts `command`; its output is written to `<name>.log`. */
  start(name: string, command: string, args: readonly string[], env: NodeJS.ProcessEnv): void {
    const log = join(this.#logFolder, `${name}.log`)
    const output = openSync(log, 'a')
    const [file, ...rest] = withDeathSignal([command, ...args])
    const child = spawn(file ?? command, rest, { stdio: ['ignore', output, output], env })
    closeSync(output)
    this.#children.push(child)
    child.once('error', (error) => this.#fail(error))
    child.once('exit', (code, signal) => {
      if (this.#stopping) return
      const how = signal === null ? `exit code ${code}` : signal
      this.#fail(new ProcessEndedError(`${name} ended (${how}), log ${log}:\n${lastLines(log)}`))
    })
  }

  /** Stops every program: immediately, or after up to `graceMs` milliseconds to exit by itself. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true
    const running = this.#children.filter(isRunning)
    const ended = Promise.all(running.map(exited))
    if (graceMs > 0) {
      for (const child of running) child.kill('SIGTERM')
      await Promise.race([ended, sleepOn(this.#clock, graceMs)])
    }
    for (const child of running.filter(isRunning)) child.kill('SIGKILL')
    await ended
  }
}

/** On Linux the kernel kills the program when its parent dies, even if the parent could not clean up. */
function withDeathSignal(command: readonly string[]): readonly string[] {
  return existsSync(deathSignalCommand) ? [deathSignalCommand, '--pdeathsig', 'KILL', ...command] : command
}

function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null
}

function exited(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve())
  })
}

function lastLines(file: string): string {
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-linesOfLog).join('\n')
}
