import {
  DocumentBody,
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  type Random,
} from '@tenon/runtime'
import type { Route } from './call.ts'
import type { CallLimit } from './call-limit.ts'
import type { CloudContext } from '../zone/cloud-state.ts'
import { isWatched, publish } from './exchange.ts'
import type { FaultEffect, Faults } from '../faults.ts'
import { Refusal, refused } from './refusal.ts'
import { bodyOf, checkedParameters, type Match, Router } from './router.ts'
import { waitLatency } from '../settings.ts'
import { type Credential, verify } from './signature.ts'

/** A recorded request: no headers and no bodies. */
export interface RecordedCall {
  /** Operation id; empty for an unknown path. */
  readonly operation: string
  readonly method: string
  readonly path: string
  /** HTTP status; 0 if a fault lost the request. */
  readonly status: number
  /** Milliseconds since the Unix epoch. */
  readonly at: number
}

export interface HandlerParts {
  readonly context: CloudContext
  readonly routes: readonly Route[]
  /** API keys and rate limit. */
  readonly access: {
    readonly credentials: readonly Credential[]
    readonly limit: CallLimit
  }
  readonly faults: Faults
  /** Recorded calls, oldest first; the handler appends to it. */
  readonly calls: RecordedCall[]
  readonly latencyRandom: Random
}

/** Minimum number of recorded calls. */
const keptCalls = 10_000

/** The API as a handler: authentication, faults, routing, responses and recording. */
export function createHandler(parts: HandlerParts): HttpHandler {
  const { context, routes, faults, calls, latencyRandom } = parts
  const router = new Router(routes)
  const record = (request: HttpRequest, operation: string, status: number) => {
    const { method, path } = request
    calls.push({ operation, method, path, status, at: context.clock.now() })
    if (calls.length > 2 * keptCalls) calls.splice(0, keptCalls)
  }
  return async (request) => {
    await waitLatency(context.clock, latencyRandom, context.settings.callLatency)
    const match = router.match(request.method, request.path)
    const operation = match.kind === 'route' ? match.route.operation : ''
    const effects = operation === '' ? [] : faults.draw(operation)
    if (effects.some((effect) => effect.kind === 'lostRequest')) {
      record(request, operation, 0)
      report(request, 0, undefined)
      throw new Error('connection reset')
    }
    const refuse = effects.find((effect) => effect.kind === 'refuse')
    const { status, body, headers } =
      refuse === undefined
        ? answerOf(() => perform(parts, request, match, effects))
        : { body: { message: 'refused by a fault' }, ...refuse }
    record(request, operation, status)
    report(request, status, body)
    if (effects.some((effect) => effect.kind === 'lostReply')) throw new Error('connection reset')
    return json(status, body, headers)
  }
}

function perform(
  parts: HandlerParts,
  request: HttpRequest,
  match: Match,
  effects: readonly FaultEffect[],
): unknown {
  parts.access.limit.take()
  authorise(request, match, parts)
  if (match.kind === 'unknownPath') throw refused(404, 'no such resource')
  if (match.kind === 'wrongMethod') throw refused(405, `${request.method} is not allowed here`)
  const { route, query } = match
  const parameters = checkedParameters(match.parameters)
  return route.handle({
    operation: route.operation,
    parameters,
    query,
    effects,
    body: bodyOf(route, request),
  })
}

interface Answer {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

function answerOf(handle: () => unknown): Answer {
  try {
    return { status: 200, body: handle() }
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

function report({ method, path, headers, body = '' }: HttpRequest, status: number, reply: unknown): void {
  if (!isWatched()) return
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
  publish({ method, path, headers, body: text, status, reply })
}

/** 401 without a valid signature, 403 if the key may not call the operation. */
function authorise(
  request: HttpRequest,
  match: Match,
  { context, access }: Pick<HandlerParts, 'access' | 'context'>,
): void {
  const { clock, settings } = context
  const nowMs = clock.now() + settings.clockSkewMs
  const operation = match.kind === 'route' ? match.route.operation : ''
  const { method, path, body = '' } = request
  const result = verify(request.headers['authorization'], { method, path, body }, access.credentials, nowMs)
  if (result.kind === 'unsigned') {
    if (operation === 'list-zones') return
    throw refused(401, 'the request is not signed')
  }
  if (result.kind === 'rejected') throw refused(401, result.reason)
  const { key, operations } = result.credential
  if (settings.expiredKeys.includes(key)) throw refused(401, 'the API key has expired')
  if (operations !== undefined && match.kind === 'route' && !operations.includes(operation)) {
    throw refused(403, `the API key may not call ${operation}`)
  }
}

function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    // The response is a new object for each call, so it can be passed without copying.
    body: new DocumentBody(body, textOf(body)),
  }
}

async function* textOf(body: unknown): AsyncGenerator<string> {
  yield JSON.stringify(body)
}
