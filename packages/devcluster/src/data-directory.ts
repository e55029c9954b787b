/** The directory with the persistent state of a cluster: credentials and objects. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, type Logger, Secret } from '@tenon/runtime'
import { createCredentials, type Credentials, type KeyPair } from './apiserver/index.ts'
import { DirectoryFiles } from './storage/data-files.ts'
import { loadState, Persistence } from './storage/persistence.ts'
import type { SavedState, Store } from './storage/store.ts'

/** Where state is stored. */
export interface DataDirectoryOptions {
  /** Absent: only in memory. */
  readonly path?: string
  readonly clock: Clock
  readonly logger: Logger
}

/** The credentials and the state of a cluster, kept between runs. */
export interface DataDirectory {
  readonly credentials: Credentials
  /** The state of an earlier run; absent at the first start. */
  readonly initial: SavedState | undefined
  /** Writes every later change of the store. */
  follow(store: Store): void
  /** Resolves when everything committed so far is on disk; at once if nothing can be saved. */
  saved(): Promise<void>
  /** Resolves when everything is on disk. */
  close(): Promise<void>
}

const credentialsName = 'credentials.json'

/**
 * Opens or creates a data directory.
 * @throws Error that names the directory if it cannot be read or written.
 */
export async function openDataDirectory({
  path,
  clock,
  logger,
}: DataDirectoryOptions): Promise<DataDirectory> {
  if (path === undefined) {
    return {
      credentials: await createCredentials(clock.now()),
      initial: undefined,
      follow: () => undefined,
      saved: () => Promise.resolve(),
      close: () => Promise.resolve(),
    }
  }
  try {
    await mkdir(path, { recursive: true, mode: 0o700 })
    const credentials = await keptCredentials(join(path, credentialsName), clock)
    const files = new DirectoryFiles(path)
    const initial = await loadState(files)
    let persistence: Persistence | undefined
    return {
      credentials,
      initial: initial.revision === 0 ? undefined : initial,
      follow(store) {
        persistence = new Persistence(store, { files, clock, logger })
        void persistence.compact()
      },
      saved: () => persistence?.saved() ?? Promise.resolve(),
      close: () => persistence?.close() ?? Promise.resolve(),
    }
  } catch (cause) {
    throw new Error(`data directory ${path}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  }
}

interface StoredPair {
  readonly certificate: string
  readonly privateKey: string
}

interface StoredCredentials {
  readonly certificateAuthority: StoredPair
  readonly server: StoredPair
  readonly admin: StoredPair
  readonly adminToken: string
  readonly signingKey: string
}

async function keptCredentials(path: string, clock: Clock): Promise<Credentials> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text !== undefined) return revived(JSON.parse(text) as StoredCredentials)
  const credentials = await createCredentials(clock.now())
  await writeFile(path, JSON.stringify(plain(credentials)), { mode: 0o600 })
  return credentials
}

function revived(stored: StoredCredentials): Credentials {
  const pair = ({ certificate, privateKey }: StoredPair): KeyPair => ({
    certificate,
    privateKey: new Secret(privateKey),
  })
  return {
    certificateAuthority: pair(stored.certificateAuthority),
    server: pair(stored.server),
    admin: pair(stored.admin),
    adminToken: new Secret(stored.adminToken),
    signingKey: new Secret(stored.signingKey),
  }
}

function plain(credentials: Credentials): StoredCredentials {
  const pair = ({ certificate, privateKey }: KeyPair): StoredPair => ({
    certificate,
    privateKey: privateKey.reveal(),
  })
  return {
    certificateAuthority: pair(credentials.certificateAuthority),
    server: pair(credentials.server),
    admin: pair(credentials.admin),
    adminToken: credentials.adminToken.reveal(),
    signingKey: credentials.signingKey.reveal(),
  }
}
