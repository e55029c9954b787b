import type { HttpHandler, HttpRequest, HttpResponse } from '@tenon/runtime'
import { ApiError } from '../../contract.ts'
import { type CallWebhook, WebhookCalls, WebhookNeeded } from '../admission/webhook-calls.ts'
import { anonymous, type Authenticator, tokenIssuer } from '../authentication/authentication.ts'
import { type Access, accessOf, refusalOf } from '../authorization/attributes.ts'
import type { Authorizer } from '../authorization/authorizer.ts'
import type { ServerContext } from '../context.ts'
import { Discovery } from '../kinds/discovery.ts'
import { representationOf } from './negotiation.ts'
import { OpenApiDocuments } from '../kinds/openapi-documents.ts'
import type { Served } from '../kinds/registry.ts'
import { parseObject, type RequestOrigin } from './request-body.ts'
import { parseResourcePath, type ResourcePath } from './request-path.ts'
import { answerResource, type ResourceRequest } from '../verbs/resource-requests.ts'
import { errorResponse, jsonResponse, pageNotFound, textResponse } from './responses.ts'
import { answerReview, reviewResources } from '../authentication/reviews.ts'
import type { TokenSigner } from '../authentication/service-account-tokens.ts'
import { failure, forbidden, internalError, methodNotAllowed, noSuchPath, unauthorized } from './status.ts'
import { answerSubresource, bind } from '../verbs/subresource-requests.ts'
import type { User } from '../authentication/user.ts'

/** What the HTTP API needs besides the state. */
export interface HandlerParts {
  readonly authenticator: Authenticator
  readonly authorizer: Authorizer
  readonly signer: TokenSigner
  /** Version that `/version` reports, such as `v1.34.1`. */
  readonly gitVersion: string
  readonly callWebhook: CallWebhook
  /** Aborted when the server stops; ends all watches. */
  readonly stopping: AbortSignal
}

const openPaths = /^\/(healthz|livez|readyz|version|\.well-known|openid)(\/|$)/

/** The whole HTTP API of the server. */
export function createHandler(ctx: ServerContext, parts: HandlerParts): HttpHandler {
  const api = new HttpApi(ctx, parts)
  return (request, signal) => api.answer(request, signal)
}

class HttpApi {
  readonly #ctx: ServerContext
  readonly #parts: HandlerParts
  readonly #discovery: Discovery
  readonly #openApi: OpenApiDocuments

  constructor(ctx: ServerContext, parts: HandlerParts) {
    this.#ctx = ctx
    this.#parts = parts
    this.#discovery = new Discovery(ctx)
    this.#openApi = new OpenApiDocuments(ctx.registry)
  }

  /** Handles a request synchronously, and repeats it after each webhook call. */
  async answer(request: HttpRequest, signal: AbortSignal | undefined): Promise<HttpResponse> {
    const webhooks = new WebhookCalls()
    for (;;) {
      const answer = this.#answer(request, webhooks, signal)
      if (!(answer instanceof WebhookNeeded)) return answer
      webhooks.add(await this.#parts.callWebhook(answer.call))
    }
  }

  #answer(
    request: HttpRequest,
    webhooks: WebhookCalls,
    signal: AbortSignal | undefined,
  ): HttpResponse | WebhookNeeded {
    const warnings: string[] = []
    try {
      return this.#route(request, { webhooks, warnings }, signal)
    } catch (error) {
      if (error instanceof WebhookNeeded) return error
      if (error instanceof ApiError) return errorResponse(error, warnings)
      this.#ctx.logger.error('a request failed', {
        method: request.method,
        path: request.path,
        error,
        stack: error instanceof Error ? error.stack : undefined,
      })
      return errorResponse(internalError('see the log of the server'))
    }
  }

  #route(
    request: HttpRequest,
    parts: Omit<RequestOrigin, 'user'>,
    signal: AbortSignal | undefined,
  ): HttpResponse {
    const at = request.path.indexOf('?')
    const pathname = at < 0 ? request.path : request.path.slice(0, at)
    const query = new URLSearchParams(at < 0 ? '' : request.path.slice(at + 1))
    const user = this.#parts.authenticator.authenticate(request.headers)
    if (user === undefined && (request.headers['authorization'] !== undefined || !openPaths.test(pathname)))
      throw unauthorized()
    const path = parseResourcePath(pathname)
    if (path === undefined) {
      if (user !== undefined) this.#authorize(user, { verb: request.method.toLowerCase(), path: pathname })
      return this.#document(request, pathname, query)
    }
    const signals = [this.#parts.stopping, ...(signal === undefined ? [] : [signal])]
    return this.#resource(request, path, query, { user: user ?? anonymous, ...parts }, signals)
  }

  #resource(
    request: HttpRequest,
    path: ResourcePath,
    query: URLSearchParams,
    by: RequestOrigin,
    signals: AbortSignal[],
  ): HttpResponse {
    const { user } = by
    const review = reviewResources.find(
      ({ group, version, plural }) =>
        group === path.group && version === path.version && plural === path.plural,
    )
    if (review !== undefined) {
      if (request.method !== 'POST') throw methodNotAllowed()
      this.#authorize(user, accessOf(request, path, query))
      const { authenticator, authorizer } = this.#parts
      const parts = { user, namespace: path.namespace, authenticator, authorizer }
      return jsonResponse(201, answerReview(review, parseObject(request), parts))
    }
    this.#authorize(user, accessOf(request, path, query))
    const served = this.#ctx.registry.find(path.group, path.version, path.plural)
    if (served === undefined) return this.#notServed(path.group)
    const problem = scopeProblem(served, path, request.method)
    if (problem === 'noSuchPath') return this.#notServed(path.group)
    if (problem === 'methodNotAllowed') throw methodNotAllowed()
    const resourceRequest: ResourceRequest = { served, path, query, http: request, by, signals }
    if (served.collection === 'bindings') return bind(this.#ctx, resourceRequest)
    if (path.subresource !== undefined)
      return answerSubresource(this.#ctx, resourceRequest, this.#parts.signer)
    return answerResource(this.#ctx, resourceRequest)
  }

  #authorize(user: User, access: Access): void {
    if (this.#parts.authorizer.allows(user, access)) return
    const refusal = refusalOf(user, access)
    if ('path' in access) throw failure(403, 'Forbidden', `forbidden: ${refusal}`, {})
    const { group, resource: plural, name = '' } = access
    throw forbidden({ group, plural, kind: '' }, name, refusal)
  }

  /** Requests that are not about objects. */
  #document(request: HttpRequest, pathname: string, query: URLSearchParams): HttpResponse {
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed()
    const parts = pathname.split('/').filter((part) => part !== '')
    const [root] = parts
    switch (root) {
      case 'healthz':
      case 'livez':
      case 'readyz':
        return isOneCheck(parts) ? textResponse(200, 'ok') : pageNotFound()
      case 'version':
        if (parts.length > 1) throw noSuchPath()
        return jsonResponse(200, versionDocument(this.#parts.gitVersion))
      case 'api':
      case 'apis':
        return this.#discover(request, parts)
      case 'openapi':
        return this.#openApi.answer(request, parts, query)
      case 'openid':
        if (parts.join('/') !== 'openid/v1/jwks') return pageNotFound()
        return jsonResponse(200, { keys: [this.#parts.signer.jwk()] })
      case '.well-known':
        if (parts.join('/') !== '.well-known/openid-configuration') return pageNotFound()
        return jsonResponse(200, { issuer: tokenIssuer, jwks_uri: '/openid/v1/jwks' })
      case undefined:
        return jsonResponse(200, {
          paths: ['/api', '/apis', '/healthz', '/openapi/v2', '/openapi/v3', '/version'],
        })
      default:
        return pageNotFound()
    }
  }

  /** Built-in groups have a 404 in JSON; other paths have one in plain text. */
  #notServed(group: string): HttpResponse {
    if (this.#discovery.isBuiltIn(group)) throw noSuchPath()
    return pageNotFound()
  }

  #discover(request: HttpRequest, parts: readonly string[]): HttpResponse {
    const [root, first, second, ...deeper] = parts
    const representation = representationOf(request.headers['accept'])
    if (first === undefined) {
      const core = root === 'api'
      if (representation.kind !== 'discovery')
        return jsonResponse(200, core ? this.#discovery.coreVersions() : this.#discovery.groupList())
      const document = this.#discovery.aggregated(core, representation.version)
      const type = `application/json;g=apidiscovery.k8s.io;v=${representation.version};as=APIGroupDiscoveryList`
      return textResponse(200, JSON.stringify(document), { 'content-type': type, vary: 'Accept' })
    }
    const group = root === 'api' ? '' : first
    // Longer paths that are not resources do not exist.
    if (deeper.length > 0 || (root === 'api' && second !== undefined)) return this.#notServed(group)
    const document =
      root === 'api'
        ? this.#discovery.resources('', first)
        : second === undefined
          ? this.#discovery.group(first)
          : this.#discovery.resources(first, second)
    return document === undefined ? this.#notServed(group) : jsonResponse(200, document)
  }
}

/** The problem of a path to a served resource: a namespace is missing, or must not be there. */
function scopeProblem(
  { definition, crdName }: Served,
  { namespace, name }: ResourcePath,
  method: string,
): 'noSuchPath' | 'methodNotAllowed' | undefined {
  if (definition.namespaced === (namespace !== undefined)) return undefined
  if (!definition.namespaced || name !== undefined) return 'noSuchPath'
  // Only reads may span all namespaces.
  if (method === 'GET' || method === 'HEAD') return undefined
  return crdName === undefined ? 'methodNotAllowed' : 'noSuchPath'
}

/** `/healthz` and its `ping` check. */
function isOneCheck(parts: readonly string[]): boolean {
  return parts.length === 1 || (parts.length === 2 && parts[1] === 'ping')
}

function versionDocument(gitVersion: string): object {
  const [major = '', minor = ''] = gitVersion.replace(/^v/, '').split('.')
  return {
    major,
    minor,
    gitVersion,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: '',
    platform: 'linux/amd64',
  }
}
