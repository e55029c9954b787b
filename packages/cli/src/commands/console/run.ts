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
  /** For a team, with a token of its own in each request. */
  readonly serve?: true
  readonly address: string
  readonly url?: URL
  readonly tokenHeader: string
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
  const {
    address,
    allowActions,
    drainTimeout,
    filename,
    open,
    port,
    serve,
    tokenHeader,
    trace,
    url,
    ...source
  } = flags
  const shown = {
    source: { ...source, ...(trace !== undefined && { trace, variant: filename }) },
    port,
    ...(allowActions === true && { acting: { drainTimeout } }),
    clock: new SystemClock(),
    random: new SystemRandom(),
  }
  const mayChange = allowActions === true ? 'may change the cluster, after asking' : 'only reads'
  keepYoungSpaceSmall()
  if (serve === true) {
    checkTeamFlags(flags)
    const { serveTeamPage } = await import('./team.ts')
    const team = { ...shown, address, tokenHeader, ...(url !== undefined && { publicUrl: url }) }
    const served = await serveTeamPage(io, team)
    io.out(`${served.url}\n`)
    io.err(
      `Each request needs the token of its user in the header ${tokenHeader}, and has the rights of that. The page ${mayChange}. Ctrl-C ends it.\n`,
    )
    return await untilInterrupted(io, served)
  }
  if (address !== '127.0.0.1')
    throw new CliError(
      `--address ${address}: without --serve the page has the rights of whoever started it, so it listens on 127.0.0.1 alone. With --serve each user needs a token`,
    )
  if (url !== undefined) throw new CliError('--url is where users of --serve find the page: add --serve')
  if (allowActions === true && source.snapshot !== undefined)
    throw new CliError('--allow-actions changes a cluster, and a snapshot is none: leave out one of them')
  // Fails early if the page could never show anything.
  if (source.snapshot !== undefined) await snapshotFile(io, source.snapshot)
  const served = await servePage(io, {
    ...shown,
    onLink: (link) => {
      io.err(`The link was used. Another one: ${link}\n`)
    },
  })
  io.out(`${served.link}\n`)
  io.err(`The link opens the page once. The page ${mayChange}. Ctrl-C ends it.\n`)
  if (open === true) openBrowser(io, served.link)
  await untilInterrupted(io, served)
}

/** @throws CliError for a source that is the same for everybody, or a listener that no browser can use. */
function checkTeamFlags({ address, controller, open, snapshot, trace, url }: ConsoleFlags): void {
  const shared = { snapshot, trace, controller }
  const given = Object.entries(shared).find(([, value]) => value !== undefined)
  if (given !== undefined)
    throw new CliError(
      `--${given[0]} with --serve would show everybody the same: users see what their own rights allow`,
    )
  if (open === true) throw new CliError('--open needs a link, and --serve has none: users sign in')
  if (url === undefined && !isLoopbackAddress(address))
    throw new CliError(
      `--address ${address} needs --url: requests for other host names than that of the page are refused`,
    )
}

function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^127(\.\d{1,3}){3}$/.test(address)
}

async function untilInterrupted(
  io: Pick<Io, 'interrupted'>,
  served: { close(): Promise<void> },
): Promise<void> {
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
