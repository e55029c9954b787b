import { createHash } from 'node:crypto'
import type { HttpRequest, HttpResponse } from '@tenon/runtime'
import { openApiV2, openApiV3 } from '../schema/index.ts'
import { acceptedRanges } from './negotiation.ts'
import type { Registry } from './registry.ts'
import { textResponse } from './responses.ts'
import { noSuchPath, notAcceptable } from './status.ts'

interface Document {
  readonly text: string
  readonly hash: string
}

const acceptable = new Set(['application/json', '*/*', 'application/*'])

/** OpenAPI documents of what is served, made when first asked for and again after changes. */
export class OpenApiDocuments {
  readonly #registry: Registry
  readonly #made = new Map<string, Document>()
  #generation = -1

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /** Answers `/openapi/v2` and `/openapi/v3…`. @throws ApiError 404, 406. */
  answer(request: HttpRequest, parts: readonly string[], query: URLSearchParams): HttpResponse {
    if (!acceptedRanges(request.headers['accept']).some(({ type }) => acceptable.has(type)))
      throw notAcceptable(['application/json'])
    const [, version, ...path] = parts
    if (version === 'v2' && path.length === 0) return documentResponse(this.#v2(), request, false)
    if (version !== 'v3') throw noSuchPath()
    if (path.length === 0) return textResponse(200, this.#index(), jsonHeaders)
    const document = this.#v3(path)
    return documentResponse(document, request, query.get('hash') === document.hash)
  }

  #v2(): Document {
    return this.#document('v2', () => openApiV2(this.#registry.definitions()))
  }

  #v3(path: readonly string[]): Document {
    const [root, group = '', version = ''] = path
    const found =
      root === 'api' ? { group: '', version: group } : root === 'apis' ? { group, version } : undefined
    const isServed = this.#registry
      .definitions()
      .some((definition) => definition.group === found?.group && definition.version === found.version)
    if (found === undefined || !isServed) throw noSuchPath()
    return this.#document(path.join('/'), () =>
      openApiV3(this.#registry.definitions(), found.group, found.version),
    )
  }

  /** The list of documents; their hashes let clients keep what has not changed. */
  #index(): string {
    const paths: Record<string, object> = {}
    for (const { group, version } of this.#registry.definitions()) {
      const path = group === '' ? `api/${version}` : `apis/${group}/${version}`
      if (paths[path] !== undefined) continue
      const { hash } = this.#v3(path.split('/'))
      paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }
    }
    return JSON.stringify({ paths })
  }

  #document(key: string, make: () => object): Document {
    if (this.#generation !== this.#registry.generation) {
      this.#made.clear()
      this.#generation = this.#registry.generation
    }
    let document = this.#made.get(key)
    if (document === undefined) {
      const text = JSON.stringify(make())
      document = { text, hash: createHash('sha256').update(text).digest('hex').toUpperCase() }
      this.#made.set(key, document)
    }
    return document
  }
}

const jsonHeaders = { 'content-type': 'application/json' }

function documentResponse(document: Document, request: HttpRequest, immutable: boolean): HttpResponse {
  const headers = {
    ...jsonHeaders,
    etag: `"${document.hash}"`,
    ...(immutable ? { 'cache-control': 'public, immutable' } : {}),
  }
  if (request.headers['if-none-match'] === headers.etag) return textResponse(304, '', headers)
  return textResponse(200, document.text, headers)
}
