import type { HttpResponse } from '@tenon/runtime'
import type { StoredObject } from '../../contract.ts'
import { type BindingRequest, bindPod } from './binding.ts'
import type { ServerContext } from '../context.ts'
import { deleteRequestFrom } from './delete-options.ts'
import { evictPod } from './eviction.ts'
import { parseObject, writeOptionsOf } from '../http/request-body.ts'
import {
  answerResource,
  keyOf,
  patchRequestOf,
  type ResourceRequest,
  writeObject,
} from './resource-requests.ts'
import { jsonResponse, textResponse } from '../http/responses.ts'
import { patchScale, readScale, updateScale } from './scale.ts'
import type { TokenSigner } from '../authentication/service-account-tokens.ts'
import { badRequest, failure, methodNotAllowed, noSuchPath, notFound } from '../http/status.ts'
import { issueToken } from '../authentication/token-requests.ts'
import { readObject } from './writing.ts'

const success = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }

/**
 * Handles a request on a subresource.
 * @throws ApiError.
 */
export function answerSubresource(
  ctx: ServerContext,
  request: ResourceRequest,
  signer: TokenSigner,
): HttpResponse {
  const { served, path } = request
  const subresource = path.subresource as string
  if (!served.definition.subresources.includes(subresource)) throw noSuchPath()
  switch (subresource) {
    case 'status':
    case 'approval':
      return objectPart(ctx, request, 'status')
    case 'finalize':
      return objectPart(ctx, request, 'finalize')
    case 'resize':
      return objectPart(ctx, request, 'resize')
    case 'ephemeralcontainers':
      return objectPart(ctx, request)
    case 'scale':
      return scale(ctx, request)
    case 'binding':
      return bind(ctx, request)
    case 'eviction':
      return evict(ctx, request)
    case 'token': {
      if (request.http.method !== 'POST') throw methodNotAllowed()
      return jsonResponse(201, issueToken(ctx, served, keyOf(request), parseObject(request.http), signer))
    }
    case 'log':
      return log(ctx, request)
    default:
      throw failure(
        501,
        'NotImplemented',
        `${served.definition.plural}/${subresource} is not available: the containers of this cluster are simulated`,
        {},
      )
  }
}

/** GET, PUT and PATCH of a part of the object. */
function objectPart(
  ctx: ServerContext,
  request: ResourceRequest,
  part?: 'status' | 'finalize' | 'resize',
): HttpResponse {
  const { method } = request.http
  if (method === 'GET') return answerResource(ctx, request)
  if (method === 'PUT' || method === 'PATCH') return writeObject(ctx, request, part)
  throw methodNotAllowed()
}

function scale(ctx: ServerContext, request: ResourceRequest): HttpResponse {
  const { served, http, query, by } = request
  const key = keyOf(request)
  if (http.method === 'GET') return jsonResponse(200, readScale(ctx, served, key))
  const options = writeOptionsOf(http, query, by)
  if (http.method === 'PUT') {
    const body = parseObject(http) as unknown as StoredObject
    return jsonResponse(200, updateScale(ctx, served, key, body, options))
  }
  if (http.method !== 'PATCH') throw methodNotAllowed()
  return jsonResponse(200, patchScale(ctx, served, key, patchRequestOf(request), options))
}

interface BindingBody {
  readonly metadata?: {
    readonly name?: string
    readonly uid?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly target?: { readonly kind?: string; readonly name?: string }
}

/**
 * Handles `POST pods/NAME/binding` and `POST bindings`.
 * @throws ApiError.
 */
export function bind(ctx: ServerContext, request: ResourceRequest): HttpResponse {
  const { http, query, path, by } = request
  if (http.method !== 'POST') throw methodNotAllowed()
  const { metadata = {}, target = {} } = parseObject(http) as BindingBody
  const pods = ctx.registry.find('', 'v1', 'pods')
  if (pods === undefined) throw noSuchPath()
  if (target.kind !== undefined && target.kind !== '' && target.kind !== 'Node')
    throw badRequest('target.kind: Unsupported value: supported values: "Node"')
  const binding: BindingRequest = {
    namespace: path.namespace,
    podName: path.name ?? metadata.name ?? '',
    nodeName: target.name ?? '',
    ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
    ...(metadata.labels === undefined ? {} : { labels: metadata.labels }),
    ...(metadata.annotations === undefined ? {} : { annotations: metadata.annotations }),
  }
  bindPod(ctx, pods, binding, writeOptionsOf(http, query, by))
  return jsonResponse(201, success)
}

function evict(ctx: ServerContext, request: ResourceRequest): HttpResponse {
  const { served, http, query, by } = request
  if (http.method !== 'POST') throw methodNotAllowed()
  const body = parseObject(http)
  const { options, dryRun } = deleteRequestFrom(
    (body['deleteOptions'] ?? {}) as Record<string, unknown>,
    query,
  )
  const writer = writeOptionsOf(http, query, by)
  evictPod(ctx, served, keyOf(request), options, { ...writer, dryRun: dryRun || writer.dryRun })
  return jsonResponse(201, success)
}

function log(ctx: ServerContext, request: ResourceRequest): HttpResponse {
  if (request.http.method !== 'GET') throw methodNotAllowed()
  const key = keyOf(request)
  const pod = readObject(ctx, request.served, key)
  if (pod === undefined) throw notFound(request.served.definition, key.name)
  return textResponse(200, `the containers of pod ${key.name} are simulated and write no log\n`)
}
