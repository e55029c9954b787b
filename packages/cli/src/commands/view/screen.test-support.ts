/** `tenon view` in a pseudo-terminal, and what a person sees there. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { spawn, type IPty } from '@lydell/node-pty'
import xterm from '@xterm/headless'

const main = resolve(import.meta.dirname, '../../main.ts')

export interface ScreenOptions {
  readonly columns?: number
  readonly rows?: number
  readonly env?: Readonly<Record<string, string>>
}

/** A terminal with the viewer in it. */
export class PlayedScreen {
  readonly #pty: IPty
  readonly #terminal: InstanceType<typeof xterm.Terminal>
  /** All that came, as it came. */
  raw = ''
  exit: { readonly exitCode: number; readonly signal?: number | undefined } | undefined

  constructor(args: readonly string[], { columns = 80, rows = 24, env = {} }: ScreenOptions = {}) {
    this.#terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true })
    this.#pty = spawn(process.execPath, [main, 'view', ...args], {
      cols: columns,
      rows,
      name: 'xterm-256color',
      cwd: join(main, '..'),
      env: { PATH: process.env['PATH'], HOME: '/nonexistent', TERM: 'xterm-256color', ...env },
    })
    this.#pty.onData((data) => {
      this.raw += data
      this.#terminal.write(data)
    })
    this.#pty.onExit((exit) => {
      this.exit = exit
    })
  }

  get pid(): number {
    return this.#pty.pid
  }

  /** Whether the process is stopped, so that a signal to go on is not lost. */
  get isStopped(): boolean {
    const state = spawnSync('ps', ['-o', 'state=', '-p', String(this.#pty.pid)], { encoding: 'utf8' })
    return state.stdout.trim().startsWith('T')
  }

  /** Whether the alternate screen is shown. */
  get isAlternate(): boolean {
    return this.#terminal.buffer.active.type === 'alternate'
  }

  type(text: string): void {
    this.#pty.write(text)
  }

  signal(name: string): void {
    process.kill(this.#pty.pid, name)
  }

  resize(columns: number, rows: number): void {
    this.#terminal.resize(columns, rows)
    this.#pty.resize(columns, rows)
  }

  /** Types, and waits until the screen is as it should be. @returns milliseconds until it was. */
  async answered(text: string, isRight: () => boolean): Promise<number> {
    const startMs = performance.now()
    const seen = Promise.withResolvers<number>()
    const onData = this.#pty.onData(() => {
      // What came is on the screen once what is written after it is.
      this.#terminal.write('', () => {
        if (isRight()) seen.resolve(performance.now() - startMs)
      })
    })
    const limit = setTimeout(
      () => seen.reject(new Error(`no answer to ${JSON.stringify(text)}:\n${this.text()}`)),
      30_000,
    )
    try {
      this.#pty.write(text)
      return await seen.promise
    } finally {
      clearTimeout(limit)
      onData.dispose()
    }
  }

  /** The most memory that the viewer has taken, in MiB. */
  get peakMiB(): number {
    const status = readFileSync(`/proc/${this.#pty.pid}/status`, 'utf8')
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) / 1024
  }

  /** The lines as a person sees them. */
  lines(): readonly string[] {
    const { active } = this.#terminal.buffer
    return Array.from({ length: this.#terminal.rows }, (_, at) =>
      (active.getLine(active.viewportY + at)?.translateToString(true) ?? '').trimEnd(),
    )
  }

  text(): string {
    return this.lines().join('\n')
  }

  /** Until the screen is as it should be. @throws Error with the screen when it does not come. */
  async shows(isRight: (text: string) => boolean): Promise<string> {
    const endMs = Date.now() + 180_000
    while (!isRight(this.text())) {
      if (Date.now() > endMs) throw new Error(`it does not come; the screen is\n${this.text()}`)
      await new Promise((done) => setTimeout(done, 20))
    }
    return this.text()
  }

  async ended(): Promise<NonNullable<PlayedScreen['exit']>> {
    const endMs = Date.now() + 30_000
    while (this.exit === undefined) {
      if (Date.now() > endMs) throw new Error('the viewer does not end')
      await new Promise((done) => setTimeout(done, 20))
    }
    return this.exit
  }

  close(): void {
    if (this.exit === undefined) this.#pty.kill('SIGKILL')
    this.#terminal.dispose()
  }
}
