import { type HttpHandler, type HttpRequest, type HttpResponse, oneChunk, type Random } from '@tenon/runtime'
import type { Route } from './call.ts'
import type { CloudContext } from './cloud-state.ts'
import type { Faults } from './faults.ts'
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
  readonly status: number
  /** Milliseconds since the Unix epoch. */
  readonly at: number
}

/** Calls kept in the log; older ones are dropped. */
const keptCalls = 10_000

/** The API as a handler: authentication, faults, routing, answers and the log of calls. */
export function createHandler(
  context: CloudContext,
  routes: readonly Route[],
  credentials: readonly Credential[],
  faults: Faults,
  calls: RecordedCall[],
  random: Random,
): HttpHandler {
  const router = new Router(routes)
  return async (request) => {
    await waitLatency(context.clock, random, context.settings.callLatency)
    const match = router.match(request.method, request.path)
    const operation = match.kind === 'route' ? match.route.operation : ''
    const effects = faults.draw(operation)
    if (effects.some((effect) => effect.kind === 'lostRequest')) throw new Error('connection reset')
    const refuse = effects.find((effect) => effect.kind === 'refuse')
    const answer =
      refuse === undefined
        ? answerOf(() => {
            authorise(request, match, credentials, context.clock.now())
            if (match.kind === 'unknownPath') throw refused(404, 'no such resource')
            if (match.kind === 'wrongMethod') throw refused(405, `${request.method} is not allowed here`)
            const { route, query } = match
            const parameters = checkedParameters(match.parameters)
            return route.handle({ operation, parameters, query, effects, body: bodyOf(route, request) })
          })
        : json(refuse.status, refuse.body ?? { message: 'refused by a fault' }, refuse.headers)
    const { method, path } = request
    calls.push({ operation, method, path, status: answer.status, at: context.clock.now() })
    if (calls.length > keptCalls) calls.shift()
    if (effects.some((effect) => effect.kind === 'lostReply')) throw new Error('connection reset')
    return answer
  }
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
