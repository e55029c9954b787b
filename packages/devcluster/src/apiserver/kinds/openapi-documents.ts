import { ownValue, setOwn } from '@tenon/api'
import { createHash } from 'node:crypto'
import { type HttpRequest, type HttpResponse, oneChunk } from '@tenon/runtime'
import { openApiV2, openApiV3 } from '../../schema/index.ts'
import { acceptedRanges } from '../http/negotiation.ts'
import { encodeOpenApiV2 } from '../protobuf/encode-openapi.ts'
import type { Registry } from './registry.ts'
import { pageNotFound, textResponse } from '../http/responses.ts'
import { notAcceptable } from '../http/status.ts'

interface Document {
  readonly content: string | Uint8Array
  readonly mediaType: string
  readonly hash: string
}

const jsonType = 'application/json'
const protobufType = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

/** Media types in the Accept header, and those of the responses. */
const v3Types: ReadonlyMap<string, string> = new Map(
  [jsonType, '*/*', 'application/*'].map((type) => [type, jsonType]),
)
const v2Types: ReadonlyMap<string, string> = new Map([
  ...v3Types,
  [protobufType, protobufType],
  // Clients up to Kubernetes 1.32 send this, which is not a valid media type for a response.
  ['application/com.github.proto-openapi.spec.v2@v1.0+protobuf', protobufType],
])

/** OpenAPI documents of all served kinds, created on first use and after changes. */
export class OpenApiDocuments {
  readonly #registry: Registry
  readonly #made = new Map<string, Document>()
  #generation = -1

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /**
   * Serves `/openapi/v2` and `/openapi/v3…`.
   * @throws ApiError 406.
   */
  answer(request: HttpRequest, parts: readonly string[], query: URLSearchParams): HttpResponse {
    const [, version, ...path] = parts
    if (version === 'v2' && path.length === 0) {
      return documentResponse(this.#v2(negotiated(request, v2Types)), request, false)
    }
    negotiated(request, v3Types)
    if (version !== 'v3') return pageNotFound()
    if (path.length === 0) return textResponse(200, this.#index(), jsonHeaders)
    const document = this.#v3(path)
    if (document === undefined) return textResponse(404, '')
    return documentResponse(document, request, query.get('hash') === document.hash)
  }

  #v2(mediaType: string): Document {
    return this.#document('v2', mediaType, () => openApiV2(this.#registry.definitions()))
  }

  /** Undefined for an unknown path. */
  #v3(path: readonly string[]): Document | undefined {
    const [root, group = '', version = ''] = path
    const found =
      root === 'api' ? { group: '', version: group } : root === 'apis' ? { group, version } : undefined
    const isServed = this.#registry
      .definitions()
      .some((definition) => definition.group === found?.group && definition.version === found.version)
    if (found === undefined || !isServed) return undefined
    return this.#document(path.join('/'), jsonType, () =>
      openApiV3(this.#registry.definitions(), found.group, found.version),
    )
  }

  /** The list of documents with their hashes, so that clients can cache them. */
  #index(): string {
    const paths: Record<string, object> = {}
    for (const { group, version } of this.#registry.definitions()) {
      const path = group === '' ? `api/${version}` : `apis/${group}/${version}`
      if (ownValue(paths, path) !== undefined) continue
      const found = this.#v3(path.split('/'))
      if (found !== undefined)
        setOwn(paths, path, { serverRelativeURL: `/openapi/v3/${path}?hash=${found.hash}` })
    }
    return JSON.stringify({ paths })
  }

  #document(name: string, mediaType: string, make: () => object): Document {
    if (this.#generation !== this.#registry.generation) {
      this.#made.clear()
      this.#generation = this.#registry.generation
    }
    const key = `${name} ${mediaType}`
    let document = this.#made.get(key)
    if (document === undefined) {
      const content = mediaType === protobufType ? encodeOpenApiV2(make()) : JSON.stringify(make())
      const hash = createHash('sha256').update(content).digest('hex').toUpperCase()
      document = { content, mediaType, hash }
      this.#made.set(key, document)
    }
    return document
  }
}

const jsonHeaders = { 'content-type': jsonType }

/**
 * The form of the response.
 * @throws ApiError 406
 */
function negotiated(request: HttpRequest, types: ReadonlyMap<string, string>): string {
  for (const { type } of acceptedRanges(request.headers['accept'])) {
    const found = types.get(type)
    if (found !== undefined) return found
  }
  throw notAcceptable([...new Set(types.values())])
}

function documentResponse(document: Document, request: HttpRequest, immutable: boolean): HttpResponse {
  const headers = {
    'content-type': document.mediaType,
    etag: `"${document.hash}"`,
    vary: 'Accept',
    ...(immutable ? { 'cache-control': 'public, immutable' } : {}),
  }
  if (request.headers['if-none-match'] === headers.etag) return textResponse(304, '', headers)
  return { status: 200, headers, body: oneChunk(document.content) }
}
