import type { HttpRequest, HttpResponse } from '@tenon/runtime'
import type { StoredObject } from '../../contract.ts'
import type { ObjectKey, ServerContext, WriteOptions } from '../context.ts'
import { createObject } from './create.ts'
import { deleteObject, deletionAnswer } from './delete.ts'
import { type DeleteRequest, deleteRequestOf } from './delete-options.ts'
import { listPage, type Page, pageText } from './list.ts'
import { mediaTypeOf, representationOf } from '../http/negotiation.ts'
import { type PatchRequest, patchKindOf, patchObject } from './patch.ts'
import type { Served } from '../kinds/registry.ts'
import { type Renderer, rendererOf } from '../http/rendering.ts'
import { parseBody, parseObject, type RequestOrigin, writeOptionsOf } from '../http/request-body.ts'
import type { ResourcePath } from '../http/request-path.ts'
import {
  documentResponse,
  isStatus,
  jsonResponse,
  streamResponse,
  textResponse,
  warningHeaders,
} from '../http/responses.ts'
import { compileSelection } from '../selectors.ts'
import { badRequest, methodNotAllowed, notFound } from '../http/status.ts'
import { updateObject, type WriteSubresource } from './update.ts'
import { watchStream } from './watch.ts'
import { readObject } from './writing.ts'

/** A parsed request for one resource. */
export interface ResourceRequest {
  readonly served: Served
  readonly path: ResourcePath
  readonly query: URLSearchParams
  readonly http: HttpRequest
  readonly by: RequestOrigin
  /** Each of them ends a watch. */
  readonly signals: readonly AbortSignal[]
}

/**
 * Handles a request on a collection or an object (not on subresources).
 * @throws ApiError.
 */
export function answerResource(ctx: ServerContext, request: ResourceRequest): HttpResponse {
  return request.path.name === undefined ? answerCollection(ctx, request) : answerObject(ctx, request)
}

function answerCollection(ctx: ServerContext, request: ResourceRequest): HttpResponse {
  switch (request.http.method) {
    case 'GET':
    case 'HEAD':
      return isWatch(request.query) ? watchObjects(ctx, request) : listObjects(ctx, request)
    case 'POST':
      return create(ctx, request)
    case 'DELETE':
      return deleteCollection(ctx, request)
    default:
      throw methodNotAllowed()
  }
}

function answerObject(ctx: ServerContext, request: ResourceRequest): HttpResponse {
  const { served, http, query } = request
  const key = keyOf(request)
  switch (http.method) {
    case 'GET':
    case 'HEAD':
      return getObject(ctx, request, key)
    case 'PUT':
    case 'PATCH':
      return writeObject(ctx, request)
    case 'DELETE': {
      const { options, dryRun } = deleteRequestOf(http, query)
      const renderer = rendererFor(ctx, request)
      const answer = deletionAnswer(served, deleteObject(ctx, served, key, options, deleter(request, dryRun)))
      return isStatus(answer) ? jsonResponse(200, answer) : rendered(200, renderer, answer, [])
    }
    default:
      throw methodNotAllowed()
  }
}

/** The object in the path. */
export function keyOf({ path }: ResourceRequest): ObjectKey {
  return { namespace: path.namespace, name: path.name ?? '' }
}

function rendererFor(ctx: ServerContext, { served, http, query }: ResourceRequest): Renderer {
  return rendererOf(served, representationOf(http.headers['accept']), query, () => ctx.clock.now())
}

function rendered(
  status: number,
  renderer: Renderer,
  object: StoredObject,
  warnings: readonly string[],
): HttpResponse {
  if (renderer.isPlain) return documentResponse(status, object, textOf(renderer, object), warnings)
  return textResponse(status, `${renderer.single(object)}\n`, warningHeaders(warnings))
}

async function* textOf(renderer: Renderer, object: StoredObject): AsyncGenerator<string> {
  yield `${renderer.single(object)}\n`
}

function renderedPage(served: Served, renderer: Renderer, page: Page): HttpResponse {
  const text = pageText(page, renderer)
  if (!renderer.isPlain) return streamResponse(text)
  const { apiVersion, definition } = served
  const { metadata, objects: items } = page
  return documentResponse(200, { kind: definition.listKind, apiVersion, metadata, items }, text)
}

function isWatch(query: URLSearchParams): boolean {
  const value = query.get('watch')
  return value === 'true' || value === '1' || value === ''
}

function getObject(ctx: ServerContext, request: ResourceRequest, key: ObjectKey): HttpResponse {
  const renderer = rendererFor(ctx, request)
  const object = readObject(ctx, request.served, key)
  if (object === undefined) throw notFound(request.served.definition, key.name)
  return rendered(200, renderer, object, [])
}

function listObjects(ctx: ServerContext, request: ResourceRequest): HttpResponse {
  const { served, path, query } = request
  const renderer = rendererFor(ctx, request)
  const page = listPage(ctx, served, path.namespace, compileSelection(served, query), query)
  return renderedPage(served, renderer, page)
}

function watchObjects(ctx: ServerContext, request: ResourceRequest): HttpResponse {
  const { served, path, query } = request
  const signal = AbortSignal.any([...request.signals])
  const renderer = rendererFor(ctx, request)
  const selection = compileSelection(served, query)
  return streamResponse(
    watchStream(ctx, { served, namespace: path.namespace, selection, query, renderer, signal }),
  )
}

function create(ctx: ServerContext, request: ResourceRequest): HttpResponse {
  const { served, path, http, query, by } = request
  const options = writeOptionsOf(http, query, by)
  const renderer = rendererFor(ctx, request)
  const body = parseObject(http) as unknown as StoredObject
  if (served.definition.namespaced && path.namespace === undefined && body.metadata?.namespace === undefined)
    throw badRequest('the namespace of the object must be given in the URL')
  const object = createObject(ctx, served, path.namespace, withType(served, body), options)
  return rendered(201, renderer, object, options.warnings)
}

/**
 * Handles PUT and PATCH of an object, or of a subresource that is part of it.
 * @throws ApiError.
 */
export function writeObject(
  ctx: ServerContext,
  request: ResourceRequest,
  subresource?: WriteSubresource,
): HttpResponse {
  const { served, http, query, by } = request
  const options = writeOptionsOf(http, query, by)
  const renderer = rendererFor(ctx, request)
  const key = keyOf(request)
  const target = { served, key, subresource }
  if (http.method === 'PUT') {
    const body = withType(served, parseObject(http) as unknown as StoredObject)
    const object = updateObject(ctx, target, body, options)
    return rendered(200, renderer, object, options.warnings)
  }
  const patch = patchRequestOf(request)
  if (patch.kind === 'apply' && !query.get('fieldManager'))
    throw badRequest(
      'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    )
  const existed = readObject(ctx, served, key) !== undefined
  const object = patchObject(ctx, target, patch, options)
  return rendered(existed ? 200 : 201, renderer, object, options.warnings)
}

/** The patch of a PATCH request. @throws ApiError 415, 400. */
export function patchRequestOf({ served, http, query }: ResourceRequest): PatchRequest {
  const kind = patchKindOf(mediaTypeOf(http.headers['content-type']), served)
  const force = query.get('force') === 'true'
  const body = parseBody(http)
  if (typeof body !== 'object' || body === null)
    throw badRequest('the patch must be an object or a list of operations')
  return { kind, body, force }
}

/** Bodies may omit the type, as the URL contains it. */
function withType(served: Served, body: StoredObject): StoredObject {
  if (body.apiVersion !== undefined && body.kind !== undefined) return body
  return {
    ...body,
    apiVersion: body.apiVersion ?? served.apiVersion,
    kind: body.kind ?? served.definition.kind,
  }
}

function deleter({ http, query, by }: ResourceRequest, dryRun: boolean): WriteOptions {
  const options = writeOptionsOf(http, query, by)
  return { ...options, dryRun: dryRun || options.dryRun }
}

function deleteCollection(ctx: ServerContext, request: ResourceRequest): HttpResponse {
  const { served, path, http, query } = request
  const { options, dryRun }: DeleteRequest = deleteRequestOf(http, query)
  const selection = compileSelection(served, query)
  const renderer = rendererFor(ctx, request)
  const { objects } = listPage(ctx, served, path.namespace, selection, new URLSearchParams())
  // A finished deletion cannot be repeated, so webhooks with a URL are not called.
  const { webhooks: _webhooks, ...writer } = deleter(request, dryRun)
  const deleted = objects.map(
    ({ metadata: { namespace, name } }) =>
      deleteObject(ctx, served, { namespace, name }, options, writer).object,
  )
  const metadata = { resourceVersion: String(ctx.store.revision) }
  return renderedPage(served, renderer, { objects: deleted, metadata })
}
