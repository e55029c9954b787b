import { type HttpHandler, type HttpRequest, type HttpResponse, oneChunk, type Random } from '@tenon/runtime'
import type { Route } from './call.ts'
import type { CloudContext } from './cloud-state.ts'
import type { FaultEffect, Faults } from './faults.ts'
import { Refusal, refused } from './refusal.ts'
import { bodyOf, checkedParameters, type Match, Router } from './router.ts'
import { waitLatency } from './settings.ts'
import { type Credential, verify } from './signature.ts'

/** A request as the log of calls keeps it: no headers and no bodies. */
export interface RecordedCall {
  /** Operation id; empty when the path names none. */
  readonly operation: string
  readonly method: string
  readonly path: string
  /** HTTP status; 0 when a fault lost the request before anything happened. */
  readonly status: number
  /** Milliseconds since the Unix epoch. */
  readonly at: number
}

export interface HandlerParts {
  readonly context: CloudContext
  readonly routes: readonly Route[]
  readonly credentials: readonly Credential[]
  readonly faults: Faults
  /** The log of calls, oldest first; the handler appends to it. */
  readonly calls: RecordedCall[]
  readonly latencyRandom: Random
}

/** Calls kept in the log at least; older ones are dropped. */
const keptCalls = 10_000

/** The API as a handler: authentication, faults, routing, answers and the log of calls. */
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
      throw new Error('connection reset')
    }
    const refuse = effects.find((effect) => effect.kind === 'refuse')
    const answer =
      refuse === undefined
        ? answerOf(() => perform(parts, request, match, effects))
        : json(refuse.status, refuse.body ?? { message: 'refused by a fault' }, refuse.headers)
    record(request, operation, answer.status)
    if (effects.some((effect) => effect.kind === 'lostReply')) throw new Error('connection reset')
    return answer
  }
}

function perform(
  parts: HandlerParts,
  request: HttpRequest,
  match: Match,
  effects: readonly FaultEffect[],
): unknown {
  authorise(request, match, parts.credentials, parts.context.clock.now())
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

function answerOf(handle: () => unknown): HttpResponse {
  try {
    return json(200, handle())
  } catch (error) {
    if (error instanceof Refusal) return json(error.status, error.body)
    throw error
  }
}

/** 401 without a valid signature, 403 when the key may not call the operation. */
function authorise(
  request: HttpRequest,
  match: Match,
  credentials: readonly Credential[],
  nowMs: number,
): void {
  const operation = match.kind === 'route' ? match.route.operation : ''
  const { method, path, body = '' } = request
  const result = verify(request.headers['authorization'], { method, path, body }, credentials, nowMs)
  if (result.kind === 'unsigned') {
    if (operation === 'list-zones') return
    throw refused(401, 'the request is not signed')
  }
  if (result.kind === 'rejected') throw refused(401, result.reason)
  const { operations } = result.credential
  if (operations !== undefined && match.kind === 'route' && !operations.includes(operation)) {
    throw refused(403, `the API key may not call ${operation}`)
  }
}

function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: oneChunk(JSON.stringify(body)),
  }
}
