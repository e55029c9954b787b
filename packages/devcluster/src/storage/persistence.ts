import type { Clock, Logger } from '@tenon/runtime'
import type { StoredObject } from '../contract.ts'
import type { DataFiles } from './data-files.ts'
import { jsonOf } from './json.ts'
import type { SavedState, Store } from './store.ts'

const snapshotName = 'snapshot.jsonl'
const logPattern = /^log-(\d+)\.jsonl$/
/** Size of the log at which a new snapshot is written. */
const defaultCompactAfterBytes = 64 * 1024 * 1024
const snapshotChunkObjects = 200
/** Pause before a failed save is retried; doubled each time, up to a maximum. */
const retryMs = 1_000
const longestRetryMs = 30_000

/** A line of a log or snapshot: an object or its removal. */
interface Entry {
  readonly r: number
  readonly c: string
  readonly k: string
  readonly o: StoredObject | null
}

/**
 * Reads the state of an earlier run: the snapshot, then the logs. Incomplete lines after a crash are dropped.
 */
export async function loadState(files: DataFiles): Promise<SavedState> {
  const names = await files.list()
  const objects = new Map<string, { collection: string; key: string; object: StoredObject }>()
  let revision = 0
  const apply = (entry: Entry) => {
    revision = Math.max(revision, entry.r)
    const id = `${entry.c}\u0000${entry.k}`
    if (entry.o === null) objects.delete(id)
    else objects.set(id, { collection: entry.c, key: entry.k, object: entry.o })
  }
  if (names.includes(snapshotName)) for await (const entry of entriesOf(files, snapshotName)) apply(entry)
  const base = revision
  for (const name of logsOf(names))
    for await (const entry of entriesOf(files, name)) if (entry.r > base) apply(entry)
  return { revision, objects: [...objects.values()] }
}

function logsOf(names: readonly string[]): string[] {
  const numberOf = (name: string) => Number(logPattern.exec(name)?.[1])
  return names.filter((name) => logPattern.test(name)).sort((a, b) => numberOf(a) - numberOf(b))
}

async function* entriesOf(files: DataFiles, name: string): AsyncGenerator<Entry> {
  for await (const line of files.lines(name)) {
    const entry = parseEntry(line)
    // An incomplete line is the last one before a crash; nothing after it was acknowledged.
    if (entry === undefined) return
    yield entry
  }
}

function parseEntry(line: string): Entry | undefined {
  try {
    const entry = JSON.parse(line) as Entry
    return typeof entry.r === 'number' ? entry : undefined
  } catch {
    return undefined
  }
}

/** What writing needs besides the state. */
interface PersistenceParts {
  readonly files: DataFiles
  readonly clock: Clock
  readonly logger: Logger
  /** Size of the log at which a new snapshot is written. */
  readonly compactAfterBytes?: number
}

/**
 * Writes every commit of a store to files, in order and in the background: commits during one write form the next
 * batch. If a write fails (a full disk), this is logged, and the whole state is written as a snapshot as soon as
 * possible.
 */
export class Persistence {
  readonly #store: Store
  readonly #files: DataFiles
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #compactAfterBytes: number
  readonly #stopListening: () => void
  #pending: string[] = []
  /** Everything up to this revision is on disk. */
  #savedRevision: number
  /** Callers that wait for a revision to be on disk, in order of revisions. */
  #awaited: { readonly revision: number; readonly resolve: () => void }[] = []
  #logName: string
  #logBytes = 0
  #writing: Promise<void> | undefined
  /** Whether the write in progress has taken its snapshot, which does not contain later commits. */
  #isSnapshotTaken = false
  /** Set after a failed write: later commits are not in the files. */
  #retry: { readonly afterMs: number; readonly cancel: () => void } | undefined

  constructor(store: Store, { files, clock, logger, compactAfterBytes }: PersistenceParts) {
    this.#store = store
    this.#files = files
    this.#clock = clock
    this.#logger = logger
    this.#compactAfterBytes = compactAfterBytes ?? defaultCompactAfterBytes
    this.#savedRevision = store.revision
    this.#logName = logNameAt(store.revision)
    this.#stopListening = store.onCommit((collection, { revision, key, type, object }) => {
      // The pending snapshot will contain it, unless it was taken already.
      if (this.#retry !== undefined && !this.#isSnapshotTaken) return
      const text = type === 'DELETED' ? 'null' : jsonOf(object)
      this.#pending.push(entryLine(revision, collection.id, key, text))
      this.#start()
    })
  }

  /** Writes a snapshot of the current state and removes older logs. */
  async compact(): Promise<void> {
    // Checked in a loop, as another write may start before this one.
    while (this.#writing !== undefined) await this.#writing
    await this.#write(() => this.#compact())
    this.#start()
  }

  /**
   * Resolves when everything committed so far is on disk, whatever is committed meanwhile; at once while saving fails,
   * which is logged.
   */
  saved(): Promise<void> {
    const { revision } = this.#store
    if (this.#retry !== undefined || revision <= this.#savedRevision) return Promise.resolve()
    return new Promise((resolve) => {
      this.#awaited.push({ revision, resolve })
    })
  }

  /** Resolves when everything is on disk. */
  async flush(): Promise<void> {
    this.#start()
    while (this.#writing !== undefined) await this.#writing
  }

  /** Writes the rest and stops. */
  async close(): Promise<void> {
    this.#stopListening()
    await this.flush()
    if (this.#retry === undefined) return
    this.#retry.cancel()
    await this.#write(() => this.#compact())
    this.#retry?.cancel()
  }

  #start(): void {
    if (this.#writing !== undefined || this.#pending.length === 0) return
    void this.#write(() => this.#writePending())
  }

  #write(work: () => Promise<void>): Promise<void> {
    this.#writing = work()
      .then(
        () => this.#succeeded(),
        (error: unknown) => this.#failed(error),
      )
      .finally(() => {
        this.#writing = undefined
      })
    return this.#writing
  }

  #succeeded(): void {
    this.#isSnapshotTaken = false
    if (this.#retry === undefined) return
    this.#retry = undefined
    this.#logger.info('the state is saved again')
  }

  /** Resolves callers that wait for no later revision. */
  #settle(revision: number): void {
    const next = this.#awaited.findIndex((each) => each.revision > revision)
    for (const { resolve } of this.#awaited.splice(0, next < 0 ? this.#awaited.length : next)) resolve()
  }

  #reached(revision: number): void {
    this.#savedRevision = revision
    this.#settle(revision)
  }

  /** The written text may be incomplete, so nothing may follow it: the next write is a snapshot. */
  #failed(error: unknown): void {
    const afterMs = Math.min((this.#retry?.afterMs ?? retryMs / 2) * 2, longestRetryMs)
    this.#logger.error('the state cannot be saved and lives in memory only; it is tried again', {
      error,
      afterMs,
    })
    this.#pending = []
    this.#isSnapshotTaken = false
    this.#retry = { afterMs, cancel: this.#clock.after(afterMs, () => void this.#tryAgain()) }
    this.#settle(Number.POSITIVE_INFINITY)
  }

  async #tryAgain(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
    await this.#write(() => this.#compact())
    this.#start()
  }

  async #writePending(): Promise<void> {
    while (this.#pending.length > 0) {
      const { revision } = this.#store
      const text = this.#pending.join('')
      this.#pending = []
      await this.#files.append(this.#logName, text)
      this.#reached(revision)
      this.#logBytes += text.length
      if (this.#logBytes > this.#compactAfterBytes) await this.#compact()
    }
  }

  async #compact(): Promise<void> {
    const { revision } = this.#store
    // Text and revision are taken synchronously, so that the snapshot is a state that existed.
    const chunks = [...this.#snapshotChunks(revision)]
    this.#logName = logNameAt(revision)
    this.#logBytes = 0
    this.#pending = this.#pending.filter((line) => (parseEntry(line)?.r ?? 0) > revision)
    this.#isSnapshotTaken = true
    await this.#files.replace(snapshotName, chunks)
    this.#reached(revision)
    // The new log is empty: a file with its name is a leftover of an earlier run.
    for (const name of logsOf(await this.#files.list())) await this.#files.remove(name)
  }

  *#snapshotChunks(revision: number): Generator<string> {
    // The first line has the revision, even if there are no objects.
    yield entryLine(revision, '', '', 'null')
    for (const collection of this.#store.collections()) {
      let lines: string[] = []
      const chunks: string[] = []
      collection.scan({}, (object, key) => {
        lines.push(entryLine(0, collection.id, key, jsonOf(object)))
        if (lines.length >= snapshotChunkObjects) {
          chunks.push(lines.join(''))
          lines = []
        }
        return true
      })
      yield* chunks
      yield lines.join('')
    }
  }
}

function entryLine(revision: number, collection: string, key: string, object: string): string {
  return `{"r":${revision},"c":${JSON.stringify(collection)},"k":${JSON.stringify(key)},"o":${object}}\n`
}

function logNameAt(revision: number): string {
  return `log-${revision}.jsonl`
}
