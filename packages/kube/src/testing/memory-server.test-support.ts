/**
 * A small API server in memory: objects, versions, history, watches, and whatever faults a test wants. The embedded one
 * builds on other packages than this one, and does not break its watches on request.
 */
import type { KubeObject } from '@tenon/api'
import { type HttpRequest, type HttpResponse, oneChunk, type Transport } from '@tenon/runtime'
import { ByteStream } from './byte-stream.test-support.ts'
import { refusal } from './scripted-transport.test-support.ts'

interface Logged {
  readonly version: number
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly path: string
  readonly object: KubeObject
}

interface OpenWatch {
  readonly path: string
  readonly stream: ByteStream
  isStalled: boolean
}

type Fields = Record<string, unknown>

/** Names a fault for one request; `undefined` lets it pass. */
export type Fault = (request: HttpRequest) => HttpResponse | 'break' | 'breakAfter' | 'silence' | undefined

export class MemoryServer implements Transport {
  readonly requests: HttpRequest[] = []
  /** Asked for every request. */
  fault: Fault = () => undefined
  /** Whether lists may be streamed; otherwise that is refused as older servers do. */
  allowsStreamedLists = true
  readonly #objects = new Map<string, KubeObject>()
  readonly #log: Logged[] = []
  readonly #watches = new Set<OpenWatch>()
  readonly #snapshots = new Map<string, { readonly items: KubeObject[]; readonly version: number }>()
  #version = 100
  #compacted = 0
  #uids = 0

  get version(): number {
    return this.#version
  }

  get openWatches(): number {
    return this.#watches.size
  }

  all(): KubeObject[] {
    return [...this.#objects.values()]
  }

  get(path: string): KubeObject | undefined {
    return this.#objects.get(path)
  }

  /** Creates or replaces the object at `collection/name`. */
  put(collection: string, name: string, fields: Fields = {}): KubeObject {
    const path = `${collection}/${name}`
    const held = this.#objects.get(path)
    const namespace = /\/namespaces\/([^/]+)/.exec(collection)?.[1]
    const version = ++this.#version
    const given = fields['metadata'] ?? {}
    const object = {
      ...fields,
      metadata: {
        ...given,
        name,
        ...(namespace !== undefined && { namespace }),
        uid: held?.metadata.uid ?? `uid-${++this.#uids}`,
        resourceVersion: String(version),
      },
    } as KubeObject
    this.#objects.set(path, object)
    this.#record({ version, type: held === undefined ? 'ADDED' : 'MODIFIED', path, object })
    return object
  }

  remove(collection: string, name: string): void {
    const path = `${collection}/${name}`
    const held = this.#objects.get(path)
    if (held === undefined) return
    const version = ++this.#version
    this.#objects.delete(path)
    const object = { ...held, metadata: { ...held.metadata, resourceVersion: String(version) } }
    this.#record({ version, type: 'DELETED', path, object })
  }

  /** Forgets the history: older versions cannot be watched or paged through any more. */
  compact(): void {
    this.#compacted = this.#version
    this.#snapshots.clear()
  }

  /** Sends every watch a bookmark with the present version. */
  bookmark(): void {
    for (const watch of this.#watches) this.#tell(watch, this.#bookmarkLine(watch.path))
  }

  /** Writes a raw line into every watch. */
  inject(line: string): void {
    for (const watch of this.#watches) this.#tell(watch, line)
  }

  /** Ends every watch: cleanly, or broken off with half a line. */
  dropWatches(how: 'end' | 'break'): void {
    for (const { stream } of this.#watches) {
      if (how === 'end') stream.end()
      else {
        stream.write('{"type":"MODIFIED","object":{"metadata":{"na')
        stream.fail(new Error('socket hang up'))
      }
    }
    this.#watches.clear()
  }

  /** The connections stay open, but nothing arrives on them any more. */
  stallWatches(): void {
    for (const watch of this.#watches) watch.isStalled = true
  }

  async send(request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse> {
    this.requests.push(request)
    const fault = this.fault(request)
    if (fault === 'break') throw new Error('connection refused')
    if (fault === 'silence') return new Promise(() => undefined)
    if (typeof fault === 'object') return fault
    const response = await Promise.resolve(this.#handle(request, signal))
    if (fault === 'breakAfter') throw new Error('connection reset')
    return response
  }

  #handle(request: HttpRequest, signal: AbortSignal | undefined): HttpResponse {
    const url = new URL(request.path, 'http://server')
    const path = url.pathname
    if (path === '/version') return answer(200, { gitVersion: 'v1.36.0' })
    const body = request.body === undefined ? {} : (JSON.parse(request.body as string) as Fields)
    if (request.method === 'POST') return this.#create(path, body)
    const held = this.#objects.get(path)
    const isCollection = /\/(?:pods|events|leases|nodes)$/.test(path)
    if (request.method === 'GET' && isCollection) {
      if (url.searchParams.get('watch') === 'true') return this.#watch(path, url.searchParams, signal)
      return this.#list(path, url.searchParams)
    }
    if (held === undefined) return answer(404, refusal(404, 'NotFound'))
    if (request.method === 'GET') return answer(200, held)
    if (request.method === 'PATCH') return this.#patch(path, held, body)
    if (request.method === 'PUT') return this.#replace(path, held, body)
    this.remove(path.slice(0, path.lastIndexOf('/')), held.metadata.name)
    return answer(200, { kind: 'Status', status: 'Success' })
  }

  #create(path: string, body: Fields): HttpResponse {
    const { name } = body['metadata'] as { name: string }
    if (this.#objects.has(`${path}/${name}`)) return answer(409, refusal(409, 'AlreadyExists'))
    return answer(201, this.put(path, name, body))
  }

  #patch(path: string, held: KubeObject, patch: Fields): HttpResponse {
    const wanted = (patch['metadata'] as { resourceVersion?: string } | undefined)?.resourceVersion
    if (wanted !== undefined && wanted !== held.metadata.resourceVersion)
      return answer(409, refusal(409, 'Conflict'))
    const collection = path.slice(0, path.lastIndexOf('/'))
    return answer(200, this.put(collection, held.metadata.name, merged({ ...held }, patch)))
  }

  #replace(path: string, held: KubeObject, body: Fields): HttpResponse {
    const { resourceVersion } = body['metadata'] as { readonly resourceVersion?: string }
    if (resourceVersion !== held.metadata.resourceVersion) return answer(409, refusal(409, 'Conflict'))
    return answer(200, this.put(path.slice(0, path.lastIndexOf('/')), held.metadata.name, body))
  }

  #list(path: string, query: URLSearchParams): HttpResponse {
    const token = query.get('continue')
    const limit = Number(query.get('limit') ?? 0)
    const [snapshotId = '', from = '0'] = token?.split(':') ?? []
    if (token !== null && !this.#snapshots.has(snapshotId)) return answer(410, refusal(410, 'Expired'))
    const snapshot = this.#snapshots.get(snapshotId) ?? { items: this.#in(path), version: this.#version }
    const start = Number(from)
    const items = limit === 0 ? snapshot.items : snapshot.items.slice(start, start + limit)
    const rest = limit !== 0 && start + limit < snapshot.items.length
    const id = snapshotId === '' ? String(this.requests.length) : snapshotId
    if (rest) this.#snapshots.set(id, snapshot)
    const metadata = {
      resourceVersion: String(snapshot.version),
      ...(rest && { continue: `${id}:${start + limit}` }),
    }
    return answer(200, { kind: 'List', metadata, items })
  }

  #watch(path: string, query: URLSearchParams, signal: AbortSignal | undefined): HttpResponse {
    const isStreamed = query.get('sendInitialEvents') === 'true'
    if (isStreamed && !this.allowsStreamedLists) return answer(422, refusal(422, 'Invalid'))
    const after = Number(query.get('resourceVersion') ?? 0)
    if (!isStreamed && after < this.#compacted) return answer(410, refusal(410, 'Expired'))
    const watch: OpenWatch = { path, stream: new ByteStream(), isStalled: false }
    if (isStreamed) {
      for (const object of this.#in(path)) watch.stream.write(lineOf('ADDED', object))
      watch.stream.write(this.#bookmarkLine(path, true))
    } else {
      for (const event of this.#log)
        if (event.version > after && isInside(event.path, path))
          watch.stream.write(lineOf(event.type, event.object))
    }
    this.#watches.add(watch)
    signal?.addEventListener('abort', () => {
      this.#watches.delete(watch)
      watch.stream.fail(signal.reason as Error)
    })
    return { status: 200, headers: {}, body: watch.stream }
  }

  #in(path: string): KubeObject[] {
    return [...this.#objects].filter(([key]) => isInside(key, path)).map(([, object]) => object)
  }

  #record(event: Logged): void {
    this.#log.push(event)
    for (const watch of this.#watches)
      if (isInside(event.path, watch.path)) this.#tell(watch, lineOf(event.type, event.object))
  }

  #tell(watch: OpenWatch, line: string): void {
    if (!watch.isStalled) watch.stream.write(line)
  }

  #bookmarkLine(path: string, isInitialEnd = false): string {
    const annotations = isInitialEnd ? { 'k8s.io/initial-events-end': 'true' } : {}
    const metadata = { name: '', resourceVersion: String(this.#version), annotations }
    return `${JSON.stringify({ type: 'BOOKMARK', object: { kind: path, metadata } })}\n`
  }
}

/** Whether an object's path lies in a collection: `/api/v1/pods` holds all namespaces. */
function isInside(objectPath: string, collection: string): boolean {
  const own = objectPath.slice(0, objectPath.lastIndexOf('/'))
  return own === collection || own.replace(/\/namespaces\/[^/]+/, '') === collection
}

function lineOf(type: string, object: KubeObject): string {
  return `${JSON.stringify({ type, object })}\n`
}

function answer(status: number, body: object): HttpResponse {
  return {
    status,
    headers: { 'content-type': 'application/json' },
    body: oneChunk(JSON.stringify(body)),
  }
}

function merged(target: Fields, patch: Fields): Fields {
  const result: Fields = { ...target }
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else if (typeof value === 'object' && !Array.isArray(value))
      result[key] = merged((result[key] ?? {}) as Fields, value as Fields)
    else result[key] = value
  }
  return result
}
