/**
 * Wrong views of the cluster although every response is well-formed: delayed watches, and wrong lists
 * (reports-2.md 1, 2).
 */
import {
  type Clock,
  DocumentBody,
  DocumentStream,
  type HttpRequest,
  type HttpResponse,
  oneChunk,
  readText,
  type Transport,
} from '@tenon/runtime'

/** How lists are wrong: empty, with every second object, or as they were at first. */
export type ListLie = 'empty' | 'half' | 'old'

interface WatchRow {
  readonly type: string
  readonly object: object
}

interface ListDocument {
  readonly items?: readonly object[] | null
  readonly metadata?: object
}

/** A watch that is open. */
interface OpenWatch {
  readonly plural: string
  /** Adds a row that the server never sent. */
  readonly add: (row: WatchRow) => void
}

const gone: WatchRow = {
  type: 'ERROR',
  object: { apiVersion: 'v1', kind: 'Status', status: 'Failure', reason: 'Expired', code: 410 },
}

/**
 * The connection of one process to the API server, on which tests and fuzz cases make views wrong by kind
 * (plural, or `*`).
 */
export class WrongViews {
  readonly #lateMs = new Map<string, number>()
  readonly #lies = new Map<string, { readonly lie: ListLie; answersLeft: number }>()
  readonly #watches = new Set<OpenWatch>()
  /** The first list of each kind, by plural. */
  readonly #first = new Map<string, readonly object[]>()

  /** Delays watch events; 0 ends the delay for new events. */
  late(plural: string, ms: number): void {
    this.#lateMs.set(plural, ms)
  }

  /** Makes lists wrong, including streamed ones: for a number of responses, or until {@link stopLying}. */
  lie(plural: string, lie: ListLie, answers = Number.POSITIVE_INFINITY): void {
    this.#lies.set(plural, { lie, answersLeft: answers })
  }

  stopLying(plural: string): void {
    this.#lies.delete(plural)
  }

  /** Ends every delay and makes lists correct; events that are already delayed stay so. */
  stopAll(): void {
    this.#lateMs.clear()
    this.#lies.clear()
  }

  /** Ends the watches of a kind with 410 Gone, so that it is listed again. */
  expire(plural: string): void {
    for (const watch of this.#watches) if (plural === '*' || watch.plural === plural) watch.add(gone)
  }

  /** The watched kinds, sorted. */
  watched(): readonly string[] {
    return [...new Set([...this.#watches].map(({ plural }) => plural))].toSorted()
  }

  /** Makes watches report that these objects were deleted. */
  reportDeleted(plural: string, objects: readonly object[]): void {
    for (const watch of this.#watches)
      if (watch.plural === plural) for (const object of objects) watch.add({ type: 'DELETED', object })
  }

  readonly path = (inner: Transport, clock: Clock): Transport => ({
    send: async (request, signal) => {
      const response = await inner.send(request, signal)
      if (request.method !== 'GET' || response.status !== 200) return response
      const plural = listedPlural(request)
      if (plural === undefined) return response
      if (!request.path.includes('watch=true') && !this.#isLying(plural) && this.#first.has(plural))
        return response
      return request.path.includes('watch=true')
        ? this.#watch(plural, request, response, clock)
        : await this.#list(plural, request, response)
    },
  })

  #isLying(plural: string): boolean {
    return (this.#of(this.#lies, plural)?.answersLeft ?? 0) > 0
  }

  #of<V>(map: ReadonlyMap<string, V>, plural: string): V | undefined {
    return map.get(plural) ?? map.get('*')
  }

  async #list(plural: string, { path }: HttpRequest, response: HttpResponse): Promise<HttpResponse> {
    const { body } = response
    const document = (
      body instanceof DocumentBody ? body.document : JSON.parse(await readText(body))
    ) as ListDocument
    const items = this.#shownAs(plural, path, document.items ?? [])
    return { ...response, body: oneChunk(JSON.stringify({ ...document, items })) }
  }

  /**
   * The wrong list of these objects. It has the current resource version, so a watch from it never delivers the
   * rest.
   */
  #shownAs(plural: string, path: string, honest: readonly object[]): readonly object[] {
    const query = new URLSearchParams(path.split('?')[1] ?? '')
    const selector = query.get('fieldSelector') ?? ''
    if (selector === '' && !this.#first.has(plural)) this.#first.set(plural, honest)
    const lie = this.#of(this.#lies, plural)
    if (lie === undefined || lie.answersLeft <= 0) return honest
    lie.answersLeft--
    if (lie.lie === 'empty') return []
    if (lie.lie === 'half') return honest.filter((_, at) => at % 2 === 0)
    return (this.#first.get(plural) ?? []).filter((object) => isSelected(object, selector))
  }

  #watch(plural: string, { path }: HttpRequest, response: HttpResponse, clock: Clock): HttpResponse {
    const { body } = response
    // In-process servers pass documents; a socket would pass lines.
    if (!(body instanceof DocumentStream)) throw new TypeError('wrong views need an in-process API server')
    return {
      ...response,
      body: body.through((documents) =>
        this.#delayed(plural, path, documents as AsyncIterable<readonly WatchRow[]>, clock),
      ),
    }
  }

  async *#delayed(
    plural: string,
    path: string,
    rows: AsyncIterable<readonly WatchRow[]>,
    clock: Clock,
  ): AsyncGenerator<readonly WatchRow[]> {
    const queue: { readonly dueMs: number; readonly rows: readonly WatchRow[] | undefined }[] = []
    let wake = Promise.withResolvers<undefined>()
    const push = (of: readonly WatchRow[] | undefined, lateMs: number) => {
      queue.push({ dueMs: clock.now() + lateMs, rows: of })
      wake.resolve(undefined)
    }
    const watch: OpenWatch = { plural, add: (row) => push([row], 0) }
    this.#watches.add(watch)
    const iterator = rows[Symbol.asyncIterator]()
    const source = { [Symbol.asyncIterator]: () => iterator }
    const pump = async () => {
      // A streamed list: everything up to the bookmark that ends it.
      let listed: object[] | undefined = path.includes('sendInitialEvents=true') ? [] : undefined
      for await (const chunk of source) {
        const out: WatchRow[] = []
        for (const row of chunk) {
          if (listed !== undefined && row.type === 'ADDED') {
            listed.push(row.object)
            continue
          }
          if (listed !== undefined && row.type === 'BOOKMARK') {
            for (const object of this.#shownAs(plural, path, listed)) out.push({ type: 'ADDED', object })
            listed = undefined
          }
          out.push(row)
        }
        if (out.length > 0) push(out, this.#of(this.#lateMs, plural) ?? 0)
      }
    }
    let failure: unknown
    pump().then(
      () => push(undefined, 0),
      (error: unknown) => {
        failure = error
        push(undefined, 0)
      },
    )
    try {
      for (;;) {
        const next = queue.shift()
        if (next === undefined) {
          wake = Promise.withResolvers<undefined>()
          await wake.promise
          continue
        }
        const leftMs = next.dueMs - clock.now()
        if (leftMs > 0) await clock.sleep(leftMs)
        if (next.rows === undefined) {
          if (failure !== undefined) throw failure
          return
        }
        yield next.rows
        if (next.rows.includes(gone)) return
      }
    } finally {
      this.#watches.delete(watch)
      void iterator.return?.()
    }
  }
}

function isSelected(object: object, fieldSelector: string): boolean {
  const { metadata, spec } = object as { metadata?: { name?: string }; spec?: { nodeName?: string } }
  const [field, value] = fieldSelector.split('=')
  if (field === 'spec.nodeName') return (spec?.nodeName ?? '') === value
  if (field === 'metadata.name') return metadata?.name === value
  return true
}

/** The kind that a request lists or watches; undefined for a single object. */
function listedPlural({ path }: HttpRequest): string | undefined {
  const parts = (path.split('?')[0] ?? '').split('/').filter((part) => part !== '')
  const after = parts.slice(parts[0] === 'apis' ? 3 : 2)
  const inNamespace = after[0] === 'namespaces' && after.length > 2
  const rest = inNamespace ? after.slice(2) : after
  return rest.length === 1 ? rest[0] : undefined
}
