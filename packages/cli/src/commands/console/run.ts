/** `tenon console`: serves the page (console.md 3). */
import { spawn } from 'node:child_process'
import { platform } from 'node:os'
import { keepYoungSpaceSmall } from '@tenon/console'
import { SystemClock, SystemRandom } from '@tenon/runtime'
import { servePage } from './serve.ts'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import type { SourceFlags } from '../../kubectl/flags.ts'
import { snapshotFile } from '../../source/snapshot-file.ts'

export interface ConsoleFlags extends SourceFlags {
  readonly port: number
  readonly open?: true
  readonly allowActions?: true
  /** Milliseconds. */
  readonly drainTimeout: number
  readonly trace?: string
  readonly filename: readonly string[]
}

/**
 * Serves the page until Ctrl-C.
 * @throws CliError naming the port or file that cannot be used.
 */
export async function runConsole(io: Io, flags: ConsoleFlags): Promise<void> {
  const { allowActions = false, drainTimeout, filename, open = false, port, trace, ...source } = flags
  if (allowActions && source.snapshot !== undefined)
    throw new CliError('--allow-actions changes a cluster, and a snapshot is none: leave out one of them')
  keepYoungSpaceSmall()
  // Fails early if the page could never show anything.
  if (source.snapshot !== undefined) await snapshotFile(io, source.snapshot)
  const served = await servePage(io, {
    source: { ...source, ...(trace !== undefined && { trace, variant: filename }) },
    port,
    ...(allowActions && { acting: { drainTimeout } }),
    clock: new SystemClock(),
    random: new SystemRandom(),
    onLink: (link) => {
      io.err(`The link was used. Another one: ${link}\n`)
    },
  })
  io.out(`${served.link}\n`)
  io.err(
    `The link opens the page once. ${allowActions ? 'The page may change the cluster, after asking.' : 'The page only reads.'} Ctrl-C ends it.\n`,
  )
  if (open) openBrowser(io, served.link)
  try {
    await new Promise<void>((resolve) => {
      if (io.interrupted.aborted) resolve()
      io.interrupted.addEventListener('abort', () => resolve(), { once: true })
    })
  } finally {
    await served.close()
  }
}

const openers: ReadonlyMap<string, string> = new Map([
  ['darwin', 'open'],
  ['win32', 'explorer'],
])

/** Opens the system's default browser. */
function openBrowser(io: Pick<Io, 'err'>, link: string): void {
  const opener = openers.get(platform()) ?? 'xdg-open'
  const child = spawn(opener, [link], { stdio: 'ignore', detached: true })
  child.on('error', () => {
    io.err(`${opener} does not start: open the link yourself\n`)
  })
  child.unref()
}
