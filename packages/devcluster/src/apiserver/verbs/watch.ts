import type { Status } from '@tenon/api'
import { DocumentStream } from '@tenon/runtime'
import type { StoredObject } from '../../contract.ts'
import { type Change, type Collection, namespacePrefix } from '../../storage/index.ts'
import type { ServerContext } from '../context.ts'
import { parseRevision } from './list.ts'
import type { Served } from '../kinds/registry.ts'
import type { Renderer } from '../http/rendering.ts'
import type { Selection } from '../selectors.ts'
import { badRequest, expired, invalid } from '../http/status.ts'

/** A watch without a timeout ends after this time plus a random part of it. */
const defaultTimeoutMs = 30 * 60_000
const bookmarkIntervalMs = 60_000
/** Changes that are read from history at once, which bounds the memory of slow readers. */
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

/** An event of a watch: a change, a bookmark, or an error. */
type WatchEvent =
  | { readonly type: Change['type']; readonly object: StoredObject }
  | {
      readonly type: 'BOOKMARK'
      readonly object: { readonly kind: string; readonly apiVersion: string; readonly metadata: object }
    }
  | { readonly type: 'ERROR'; readonly object: Status }

/**
 * Validates a watch request and returns its events.
 * @throws ApiError 400, 410, 422.
 */
export function watchStream(ctx: ServerContext, request: WatchRequest): AsyncIterable<string> {
  const stream = new DocumentStream(watchEvents(ctx, request), (event) => lineOf(event, request.renderer))
  if (request.renderer.isPlain) return stream
  return { [Symbol.asyncIterator]: () => stream[Symbol.asyncIterator]() }
}

function lineOf({ type, object }: WatchEvent, renderer: Renderer): string {
  if (type === 'ERROR') return `{"type":"ERROR","object":${JSON.stringify(object)}}\n`
  if (type === 'BOOKMARK') return `{"type":"BOOKMARK","object":${renderer.bookmark(object.metadata)}}\n`
  return `{"type":"${type}","object":${renderer.event(object)}}\n`
}

function watchEvents(ctx: ServerContext, request: WatchRequest): AsyncIterable<readonly WatchEvent[]> {
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
  /** Whether an annotated bookmark marks the end of the initial events. */
  readonly endOfInitial: boolean
}

/**
 * One watch. It keeps a position in the collection's history and only reads on when its client does, so that a slow
 * client uses no memory; if the history is compacted meanwhile, it gets a 410.
 */
class WatchStream {
  readonly #ctx: ServerContext
  readonly #request: WatchRequest
  readonly #collection: Collection
  readonly #prefix: string
  #position = 0
  #wake: () => void = () => {}
  #woken = false
  #isWaiting = false

  constructor(ctx: ServerContext, request: WatchRequest, collection: Collection) {
    this.#ctx = ctx
    this.#request = request
    this.#collection = collection
    this.#prefix = request.namespace === undefined ? '' : namespacePrefix(request.namespace)
  }

  async *run(revision: number | undefined, options: StreamOptions): AsyncGenerator<readonly WatchEvent[]> {
    const { clock } = this.#ctx
    const endsAt = clock.monotonic() + options.timeoutMs
    const wake = () => this.#notify()
    const stopListening = this.#collection.onChange((change) => {
      // A waiting watch has sent everything, so changes in other namespaces only advance its position.
      if (this.#isWaiting && !change.key.startsWith(this.#prefix)) this.#position = change.revision
      else wake()
    })
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
          yield [this.#goneEvent()]
          return
        }
        const events = this.#advance(changes)
        if (events.length > 0) yield events
        if (bookmarkDue && changes.length === 0) {
          yield [this.#bookmark()]
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

  /** The initial state, if requested, and the position to continue from. */
  *#begin(revision: number | undefined, options: StreamOptions): Generator<readonly WatchEvent[]> {
    if (revision !== undefined) {
      this.#position = revision
      if (options.endOfInitial) yield [this.#bookmark({ 'k8s.io/initial-events-end': 'true' })]
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
      yield initial.slice(start, start + batchLimit).map((object) => ({ type: 'ADDED', object }))
    if (options.endOfInitial) yield [this.#bookmark({ 'k8s.io/initial-events-end': 'true' })]
  }

  #advance(changes: readonly Change[]): readonly WatchEvent[] {
    const events: WatchEvent[] = []
    for (const change of changes) {
      const event = this.#eventOf(change)
      if (event !== undefined) events.push(event)
    }
    const last = changes.at(-1)
    if (last !== undefined) this.#position = last.revision
    return events
  }

  /** The event for a watcher; objects may enter and leave its selection. */
  #eventOf(change: Change): WatchEvent | undefined {
    if (!change.key.startsWith(this.#prefix)) return undefined
    const { served, selection } = this.#request
    const object = served.view(change.object)
    if (!selection.narrows) return { type: change.type, object }
    const isIn = change.type !== 'DELETED' && selection.matches(object)
    const wasIn = change.previous !== undefined && selection.matches(served.view(change.previous))
    if (isIn) return { type: wasIn ? 'MODIFIED' : 'ADDED', object }
    return wasIn ? { type: 'DELETED', object: this.#lastSeen(change) } : undefined
  }

  /** An object that leaves the selection is sent in its last matching state, with the newer revision. */
  #lastSeen(change: Change): StoredObject {
    const previous = change.previous as StoredObject
    const { resourceVersion } = change.object.metadata
    const last = {
      ...previous,
      metadata: { ...previous.metadata, resourceVersion: resourceVersion as string },
    }
    return this.#request.served.view(change.type === 'DELETED' ? change.object : last)
  }

  #bookmark(annotations?: Readonly<Record<string, string>>): WatchEvent {
    // Everything up to now was sent, whichever resource has the latest revision.
    if (annotations === undefined) this.#position = Math.max(this.#position, this.#ctx.store.revision)
    const { apiVersion, definition } = this.#request.served
    const metadata = {
      resourceVersion: String(this.#position),
      creationTimestamp: null,
      ...(annotations === undefined ? {} : { annotations }),
    }
    return { type: 'BOOKMARK', object: { kind: definition.kind, apiVersion, metadata } }
  }

  #goneEvent(): WatchEvent {
    return { type: 'ERROR', object: tooOld(this.#position, this.#collection).status }
  }

  #notify(): void {
    this.#woken = true
    this.#isWaiting = false
    this.#wake()
  }

  #nextWake(): Promise<void> {
    if (this.#woken || this.#request.signal.aborted) return Promise.resolve()
    this.#isWaiting = true
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}
