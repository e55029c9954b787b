/** One watch: a request and its parsed events. */
import { type KubeObject, pathOf, type ResourceType, type Status } from '@tenon/api'
import { DocumentStream } from '@tenon/runtime'
import { AbortableWaits } from '../abortable.ts'
import { KubeError, type ListOptions, type ReadFields, type WriteOptions } from '../contract.ts'
import { isWatched } from './answers.ts'
import { errorOfStatus, errorOfTransport } from './errors.ts'
import { type JsonLine, jsonLines } from './json-lines.ts'
import { queryText } from './queries.ts'
import { FieldReader } from './read-fields.ts'
import type { OpenStream, Requester } from './requester.ts'

export interface WatchOptions extends ListOptions, WriteOptions {
  /** Changes after this version; only absent with `sendInitialEvents`. */
  readonly resourceVersion?: string
  /** The server ends the watch after this time. */
  readonly timeoutSeconds: number
  /** Send the whole collection as `added` first, then a bookmark, then changes. */
  readonly sendInitialEvents?: boolean
  /** Maximum delay of an event; events within it are sent together. */
  readonly gatherMs?: number
}

/** Events of a watch. Errors in the stream are thrown as {@link KubeError}. */
export type WatchEvent<T> =
  | { readonly kind: 'added' | 'modified' | 'deleted'; readonly object: T }
  | { readonly kind: 'bookmark'; readonly resourceVersion: string; readonly isInitialEnd: boolean }

interface WireEvent {
  readonly type: string
  readonly object: KubeObject & Partial<Omit<Status, keyof KubeObject>>
}

const initialEventsEnd = 'k8s.io/initial-events-end'

/**
 * Resolves when the server has accepted the watch. Ending the iteration closes it. Each step is a batch of events,
 * which can be iterated once: one event, or with `gatherMs` all that have arrived. Events are parsed one by one, as
 * that is most of their cost.
 */
export async function openWatch<T extends KubeObject>(
  requester: Requester,
  type: ResourceType<T>,
  options: WatchOptions,
): Promise<AsyncIterable<Iterable<WatchEvent<T>>>> {
  const path = pathOf(type, options.namespace)
  const query = queryText(options, {
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: options.resourceVersion,
    timeoutSeconds: String(options.timeoutSeconds),
    ...(options.sendInitialEvents === true && {
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
    }),
  })
  const stream = await requester.stream({
    method: 'GET',
    path: `${path}${query}`,
    signal: options.signal,
    lane: options.lane,
    retry: 'read',
    ...(options.gatherMs !== undefined && { gatherMs: options.gatherMs }),
  })
  return eventsOf<T>(
    new LineReader(`WATCH ${path}`, type, options.fields),
    stream,
    options.gatherMs !== undefined,
  )
}

async function* eventsOf<T extends KubeObject>(
  reader: LineReader,
  stream: OpenStream,
  isGathered: boolean,
): AsyncGenerator<Iterable<WatchEvent<T>>> {
  const chunks = eventLines(stream.body)[Symbol.asyncIterator]()
  const waits = new AbortableWaits(stream.signal)
  try {
    for (;;) {
      const next = await waits.until(chunks.next())
      if (next.done === true) return
      const rows = isGathered ? [next.value] : next.value.map((line) => [line])
      for (const row of rows) yield reader.events<T>(row, stream.signal)
    }
  } catch (error) {
    throw errorOfTransport(reader.asked, error)
  } finally {
    waits.end()
    stream.close(new Error('the watch was left'))
    // Not awaited: a transport that ignores the abort would block here forever.
    chunks.return?.(undefined).catch(() => undefined)
  }
}

/** Events as lines, or as objects from a server in this process. */
function eventLines(
  body: AsyncIterable<string | Uint8Array>,
): AsyncIterable<readonly (JsonLine | WireEvent)[]> {
  return body instanceof DocumentStream ? (body as DocumentStream<WireEvent>).documents : jsonLines(body)
}

/** Beginnings of lines with an object; other lines are parsed whole. */
const objectLines = ['{"type":"ADDED"', '{"type":"MODIFIED"', '{"type":"DELETED"']

class LineReader {
  /** The request, for errors. */
  readonly asked: string
  readonly #type: ResourceType
  readonly #fields: FieldReader | undefined

  constructor(asked: string, type: ResourceType, fields: ReadFields | undefined) {
    this.asked = asked
    this.#type = type
    this.#fields =
      fields === undefined ? undefined : new FieldReader({ members: { object: fields }, others: true })
  }

  /** @throws the signal's reason after it aborted: nothing more is delivered. */
  *events<T extends KubeObject>(
    lines: readonly (JsonLine | WireEvent)[],
    signal: AbortSignal,
  ): Generator<WatchEvent<T>, void, undefined> {
    for (const line of lines) {
      signal.throwIfAborted()
      yield this.#event<T>(line)
    }
  }

  #event<T extends KubeObject>(line: JsonLine | WireEvent): WatchEvent<T> {
    const event = this.#parsed(line)
    const { object } = event
    if (event.type !== 'ERROR' && event.type !== 'BOOKMARK' && !isWatched(object, this.#type))
      throw new KubeError('transport', 0, `${this.asked}: an event is about a ${object.kind}`)
    switch (event.type) {
      case 'ADDED':
        return { kind: 'added', object: object as unknown as T }
      case 'MODIFIED':
        return { kind: 'modified', object: object as unknown as T }
      case 'DELETED':
        return { kind: 'deleted', object: object as unknown as T }
      case 'BOOKMARK':
        if (!object.metadata.resourceVersion)
          throw new KubeError('transport', 0, `${this.asked}: a bookmark without a resourceVersion`)
        return {
          kind: 'bookmark',
          resourceVersion: object.metadata.resourceVersion,
          isInitialEnd: object.metadata.annotations?.[initialEventsEnd] === 'true',
        }
      case 'ERROR':
        throw errorOfStatus(this.asked, object as unknown as Status)
      default:
        throw new KubeError('transport', 0, `${this.asked}: an event of the unknown type ${event.type}`)
    }
  }

  #parsed(line: JsonLine | WireEvent): WireEvent {
    if (isEvent(line)) return line
    try {
      const event = JSON.parse(this.#textOf(line)) as Partial<WireEvent> | null
      if (typeof event?.type === 'string' && isObjectOrError(event)) return event as WireEvent
    } catch (cause) {
      throw new KubeError('transport', 0, `${this.asked}: a line of the watch is not JSON`, { cause })
    }
    throw new KubeError('transport', 0, `${this.asked}: a line of the watch is not an event`)
  }

  #textOf(line: JsonLine): string {
    // The text exists already: removing parts would only be more work.
    if (typeof line === 'string') return line
    if (this.#fields === undefined) return line.toString('utf8')
    const start = line.toString('latin1', 0, 24)
    return objectLines.some((each) => start.startsWith(each))
      ? this.#fields.read(line)
      : line.toString('utf8')
  }
}

const isEvent = (line: JsonLine | WireEvent): line is WireEvent =>
  typeof line !== 'string' && !Buffer.isBuffer(line)

function isObjectOrError(event: Partial<WireEvent>): boolean {
  if (typeof event.object !== 'object' || event.object === null) return false
  const metadata = event.object.metadata as unknown
  return event.type === 'ERROR' || (typeof metadata === 'object' && metadata !== null)
}
