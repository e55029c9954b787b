import type { StoredObject } from '../contract.ts'
import { type Change, type Collection, namespacePrefix } from '../storage/index.ts'
import type { ServerContext } from './context.ts'
import { parseRevision } from './list.ts'
import type { Served } from './registry.ts'
import type { Renderer } from './rendering.ts'
import type { Selection } from './selectors.ts'
import { badRequest, expired, invalid } from './status.ts'

/** A watch without its own time limit ends after this and a random part of it more. */
const defaultTimeoutMs = 30 * 60_000
const bookmarkIntervalMs = 60_000
/** Changes read from history at once, so that a slow reader holds little. */
const batchLimit = 500

/** What a watch request asks for. */
export interface WatchRequest {
  readonly served: Served
  readonly namespace: string | undefined
  readonly selection: Selection
  readonly query: URLSearchParams
  readonly renderer: Renderer
  readonly signal: AbortSignal
}

/** Checks a watch request and answers its stream of events. @throws ApiError 400, 410, 422. */
export function watchStream(ctx: ServerContext, request: WatchRequest): AsyncIterable<string> {
  const { query, served } = request
  const version = query.get('resourceVersion') ?? ''
  const initialEvents = query.get('sendInitialEvents')
  checkInitialEvents(query)
  const withInitial =
    initialEvents === 'true' || (initialEvents === null && (version === '' || version === '0'))
  const revision = version === '' || version === '0' ? ctx.store.revision : parseRevision(version)
  const collection = ctx.store.collection(served.collection)
  if (!withInitial && (revision > ctx.store.revision || revision < collection.compactedRevision))
    throw tooOld(revision, collection)
  const timeoutMs = timeoutOf(ctx, query)
  const stream = new WatchStream(ctx, request, collection)
  return stream.run(withInitial ? undefined : revision, {
    timeoutMs,
    bookmarks: query.get('allowWatchBookmarks') === 'true' || query.get('allowWatchBookmarks') === '1',
    endOfInitial: initialEvents === 'true',
  })
}

function checkInitialEvents(query: URLSearchParams): void {
  if (query.get('sendInitialEvents') === null) return
  const match = query.get('resourceVersionMatch') ?? ''
  if (match === 'NotOlderThan') return
  throw invalid({ group: 'meta.k8s.io', plural: '', kind: 'ListOptions' }, '', [
    {
      field: 'resourceVersionMatch',
      kind: 'forbidden',
      detail: 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    },
  ])
}

function timeoutOf(ctx: ServerContext, query: URLSearchParams): number {
  const text = query.get('timeoutSeconds') ?? ''
  const seconds = Number(text)
  if (!Number.isFinite(seconds) || seconds < 0) throw badRequest(`invalid timeoutSeconds "${text}"`)
  if (seconds > 0) return seconds * 1000
  return defaultTimeoutMs * (1 + ctx.random.uint32() / 0x1_0000_0000)
}

function tooOld(revision: number, collection: Collection) {
  return expired(`too old resource version: ${revision} (${collection.compactedRevision + 1})`)
}

interface StreamOptions {
  readonly timeoutMs: number
  readonly bookmarks: boolean
  /** Mark the end of the initial events with an annotated bookmark. */
  readonly endOfInitial: boolean
}

/**
 * One watch. It holds a position in the collection's history and reads on when its reader takes
 * more, so a slow client costs no memory; one that falls behind the history gets a 410.
 */
class WatchStream {
  readonly #ctx: ServerContext
  readonly #request: WatchRequest
  readonly #collection: Collection
  readonly #prefix: string
  #position = 0
  #wake: () => void = () => {}
  #woken = false

  constructor(ctx: ServerContext, request: WatchRequest, collection: Collection) {
    this.#ctx = ctx
    this.#request = request
    this.#collection = collection
    this.#prefix = request.namespace === undefined ? '' : namespacePrefix(request.namespace)
  }

  async *run(revision: number | undefined, options: StreamOptions): AsyncGenerator<string> {
    const { clock } = this.#ctx
    const endsAt = clock.monotonic() + options.timeoutMs
    const wake = () => this.#notify()
    const stopListening = this.#collection.onChange(wake)
    const cancelTimeout = clock.after(options.timeoutMs, wake)
    this.#request.signal.addEventListener('abort', wake)
    let bookmarkDue = false
    let cancelBookmark = () => {}
    const armBookmark = () => {
      bookmarkDue = false
      cancelBookmark = clock.after(bookmarkIntervalMs, () => {
        bookmarkDue = true
        wake()
      })
    }
    try {
      yield* this.#begin(revision, options)
      if (options.bookmarks) armBookmark()
      while (!this.#request.signal.aborted && clock.monotonic() < endsAt) {
        this.#woken = false
        const changes = this.#collection.changesAfter(this.#position, batchLimit)
        if (changes === undefined) {
          yield this.#goneEvent()
          return
        }
        const text = this.#advance(changes)
        if (text !== '') yield text
        if (bookmarkDue && changes.length === 0) {
          yield this.#bookmark()
          armBookmark()
        }
        if (changes.length === 0) await this.#nextWake()
      }
    } finally {
      stopListening()
      cancelTimeout()
      cancelBookmark()
      this.#request.signal.removeEventListener('abort', wake)
    }
  }

  /** The state at the beginning, when asked for, and the position from which to go on. */
  *#begin(revision: number | undefined, options: StreamOptions): Generator<string> {
    if (revision !== undefined) {
      this.#position = revision
      if (options.endOfInitial) yield this.#bookmark({ 'k8s.io/initial-events-end': 'true' })
      return
    }
    const { served, selection } = this.#request
    const initial: StoredObject[] = []
    this.#position = this.#ctx.store.revision
    this.#collection.scan({ prefix: this.#prefix }, (stored) => {
      const object = served.view(stored)
      if (selection.matches(object)) initial.push(object)
      return true
    })
    for (let start = 0; start < initial.length; start += batchLimit)
      yield initial
        .slice(start, start + batchLimit)
        .map((object) => this.#event('ADDED', object))
        .join('')
    if (options.endOfInitial)
      yield `{"type":"BOOKMARK","object":${this.#bookmarkObject({ 'k8s.io/initial-events-end': 'true' })}}\n`
  }

  #advance(changes: readonly Change[]): string {
    let text = ''
    for (const change of changes) text += this.#eventOf(change)
    const last = changes.at(-1)
    if (last !== undefined) this.#position = last.revision
    return text
  }

  /** The event a watcher sees: objects enter and leave its selection. */
  #eventOf(change: Change): string {
    if (!change.key.startsWith(this.#prefix)) return ''
    const { served, selection } = this.#request
    const object = served.view(change.object)
    if (!selection.narrows) return this.#event(change.type, object)
    const isIn = change.type !== 'DELETED' && selection.matches(object)
    const wasIn = change.previous !== undefined && selection.matches(served.view(change.previous))
    if (isIn) return this.#event(wasIn ? 'MODIFIED' : 'ADDED', object)
    return wasIn ? this.#event('DELETED', this.#lastSeen(change)) : ''
  }

  /** An object that leaves the selection is shown as it was in it, with the newer revision. */
  #lastSeen(change: Change): StoredObject {
    const previous = change.previous as StoredObject
    const { resourceVersion } = change.object.metadata
    const last = {
      ...previous,
      metadata: { ...previous.metadata, resourceVersion: resourceVersion as string },
    }
    return this.#request.served.view(change.type === 'DELETED' ? change.object : last)
  }

  #event(type: Change['type'], object: StoredObject): string {
    return `{"type":"${type}","object":${this.#request.renderer.event(object)}}\n`
  }

  #bookmark(annotations?: Readonly<Record<string, string>>): string {
    // Everything up to now has been sent, whichever resource the newest revision belongs to.
    if (annotations === undefined) this.#position = Math.max(this.#position, this.#ctx.store.revision)
    return `{"type":"BOOKMARK","object":${this.#bookmarkObject(annotations)}}\n`
  }

  #bookmarkObject(annotations?: Readonly<Record<string, string>>): string {
    return this.#request.renderer.bookmark({
      resourceVersion: String(this.#position),
      creationTimestamp: null,
      ...(annotations === undefined ? {} : { annotations }),
    })
  }

  #goneEvent(): string {
    return `{"type":"ERROR","object":${JSON.stringify(tooOld(this.#position, this.#collection).status)}}\n`
  }

  #notify(): void {
    this.#woken = true
    this.#wake()
  }

  #nextWake(): Promise<void> {
    if (this.#woken || this.#request.signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}
