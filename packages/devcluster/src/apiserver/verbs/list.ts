import { ApiError, type StoredObject } from '../../contract.ts'
import { keyOf, namespacePrefix } from '../../storage/index.ts'
import type { ServerContext } from '../context.ts'
import type { Served } from '../kinds/registry.ts'
import type { Renderer } from '../http/rendering.ts'
import type { Selection } from '../selectors.ts'
import { badRequest, expired, failure, invalid, tooLargeResourceVersion } from '../http/status.ts'

/** Text that is buffered before it is sent. */
const chunkLimit = 256 * 1024

/** A page of a list. */
export interface Page {
  readonly objects: readonly StoredObject[]
  readonly metadata: {
    readonly resourceVersion: string
    readonly continue?: string
    readonly remainingItemCount?: number
  }
}

interface Token {
  /** Revision of the first page; -1 continues with the latest state. */
  readonly rv: number
  /** Key after which the next page begins. */
  readonly start: string
}

/**
 * Reads a page of a collection.
 * @throws ApiError 400, 410 and 504 like Kubernetes.
 */
export function listPage(
  ctx: ServerContext,
  served: Served,
  namespace: string | undefined,
  selection: Selection,
  query: URLSearchParams,
): Page {
  const limit = limitOf(query)
  const token = tokenOf(query)
  const revision = revisionOf(ctx, query, token, limit)
  const collection = ctx.store.collection(served.collection)
  const prefix = namespace === undefined ? '' : namespacePrefix(namespace)
  const objects: StoredObject[] = []
  let lastKey = ''
  let more = false
  const readable = collection.scan(
    {
      prefix,
      ...(token === undefined ? {} : { after: token.start }),
      ...(revision === undefined ? {} : { revision }),
    },
    (stored, key) => {
      const object = served.view(stored)
      if (!selection.matches(object)) return true
      if (limit !== undefined && objects.length === limit) {
        more = true
        return false
      }
      objects.push(object)
      lastKey = key
      return true
    },
  )
  if (!readable) throw expiredList(token)
  const resourceVersion = revision ?? ctx.store.revision
  const next = more ? { continue: encodeToken({ rv: resourceVersion, start: lastKey }) } : {}
  return { objects, metadata: { resourceVersion: String(resourceVersion), ...next } }
}

/** The JSON of a page, in chunks. */
export async function* pageText(page: Page, renderer: Renderer): AsyncGenerator<string> {
  const [head, tail] = renderer.frame(page.metadata)
  let chunk = head
  let separator = ''
  for (const object of page.objects) {
    chunk += separator + renderer.element(object)
    separator = ','
    if (chunk.length < chunkLimit) continue
    yield chunk
    chunk = ''
  }
  yield chunk + tail
}

function limitOf(query: URLSearchParams): number | undefined {
  const text = query.get('limit') ?? ''
  if (text === '') return undefined
  const limit = Number(text)
  if (!Number.isInteger(limit) || limit < 0) throw badRequest(`invalid limit "${text}"`)
  return limit === 0 ? undefined : limit
}

/** The revision to read; `undefined` for the latest. */
function revisionOf(
  ctx: ServerContext,
  query: URLSearchParams,
  token: Token | undefined,
  limit: number | undefined,
): number | undefined {
  const text = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  checkVersionMatch(text, match)
  if (token !== undefined) {
    if (text !== '' && text !== '0')
      throw badRequest('specifying resource version is not allowed when using continue')
    return token.rv < 0 ? undefined : token.rv
  }
  if (text === '' || text === '0') return undefined
  const revision = parseRevision(text)
  if (revision > ctx.store.revision) throw tooLargeResourceVersion(revision, ctx.store.revision)
  return match === 'Exact' || (match === '' && limit !== undefined) ? revision : undefined
}

function checkVersionMatch(text: string, match: string): void {
  if (match === '') return
  const refuse = (kind: 'forbidden' | 'notSupported', detail: string) =>
    invalid({ group: 'meta.k8s.io', plural: '', kind: 'ListOptions' }, '', [
      { field: 'resourceVersionMatch', kind, value: match, detail },
    ])
  if (match !== 'Exact' && match !== 'NotOlderThan')
    throw refuse('notSupported', 'supported values: "Exact", "NotOlderThan"')
  if (text === '')
    throw refuse('forbidden', 'resourceVersionMatch is forbidden unless resourceVersion is provided')
  if (match === 'Exact' && text === '0')
    throw refuse('forbidden', 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
}

/** A revision of a query. @throws ApiError 400. */
export function parseRevision(text: string): number {
  if (!/^\d+$/.test(text)) throw badRequest(`Invalid value: "${text}": the resource version must be a number`)
  return Number(text)
}

function expiredList(token: Token | undefined): ApiError {
  if (token === undefined) return expired('The resourceVersion for the provided list is too old.')
  const { status } = failure(
    410,
    'Expired',
    'The provided continue parameter is too old to display a consistent list result. Start a new list without it, or use the continue token of this response for the rest as it is now: objects changed in between may then be missing or repeated.',
  )
  return new ApiError({ ...status, metadata: { continue: encodeToken({ ...token, rv: -1 }) } })
}

function encodeToken(token: Token): string {
  const content = { v: 'meta.k8s.io/v1', rv: token.rv, start: token.start.replace('\u0000', '/') }
  return Buffer.from(JSON.stringify(content)).toString('base64url')
}

function tokenOf(query: URLSearchParams): Token | undefined {
  const text = query.get('continue') ?? ''
  if (text === '') return undefined
  try {
    const content = JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>
    const { rv, start } = content
    if (typeof rv === 'number' && typeof start === 'string') {
      const at = start.indexOf('/')
      return { rv, start: keyOf(start.slice(0, at), start.slice(at + 1)) }
    }
  } catch {
    // Every invalid token has the same error.
  }
  throw badRequest('continue key is not valid')
}
