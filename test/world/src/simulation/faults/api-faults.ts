/** Faults between a process and the API server. */
import {
  type Clock,
  DocumentStream,
  type HttpRequest,
  type HttpResponse,
  integerBetween,
  oneChunk,
  type Random,
  type Transport,
} from '@tenon/runtime'
import type { EventLog } from '../event-log.ts'
import type { FaultKind } from '../story.ts'
import type { Weather } from './weather.ts'
import { patternOf, wrongAnswers, wrongForms, type WrongRule } from './wrong-answers.ts'

export interface FaultDependencies {
  readonly weather: Weather
  readonly clock: Clock
  readonly log: EventLog
}

/** Longest delay of watch events. */
const longestWatchDelayMs = 8_000
/** Longer than any client's timeout. */
const hangMs = 120_000

/** Wraps the connection to the API server with the faults of the current weather. */
export function faultyApi(plain: Transport, deps: FaultDependencies): Transport {
  const { weather, clock } = deps
  const inner = wrongAnswers(plain, (request) => wrongBy(deps, 'wrongReply', request))
  return {
    async send(request, signal) {
      if (request.path.includes('watch=true')) return await openWatch(inner, deps, request, signal)
      const isWrite = request.method !== 'GET'
      if (!isWrite && weather.strikes('slowList')) await pausing(deps, request, 'slowList', signal)
      const refusal = refusalOf(deps, request, isWrite)
      if (refusal !== undefined) return refusal
      if (strikes(deps, 'lostRequest', request)) throw new Error('connection reset by peer')
      if (strikes(deps, 'timeout', request)) return await hang(inner, deps, request, signal)
      const response = await inner.send(request, signal)
      if (isWrite && strikes(deps, 'lostReply', request)) throw new Error('connection reset by peer')
      return response
    },
  }

  async function hang(
    api: Transport,
    { weather: source }: FaultDependencies,
    request: HttpRequest,
    signal: AbortSignal | undefined,
  ): Promise<HttpResponse> {
    if (source.source('timeout').uint32() % 2 === 0) await api.send(request, signal)
    await clock.sleep(hangMs, signal)
    throw new Error('connection timed out')
  }
}

/** Whether the next response is wrong, and how. Watches have other faults. */
export function wrongBy(
  { weather, log }: FaultDependencies,
  kind: 'wrongReply' | 'cloudWrongReply',
  request: HttpRequest,
): ReturnType<WrongRule> {
  if (request.path.includes('watch=true') || !weather.strikes(kind)) return undefined
  const random = weather.source(kind)
  const form = wrongForms[random.uint32() % wrongForms.length] ?? 'nothing'
  log.record('fault', `${kind} ${form} ${patternOf(request)}`)
  return { form, reachesServer: random.uint32() % 2 === 0 }
}

function strikes({ weather, log }: FaultDependencies, kind: FaultKind, request: HttpRequest): boolean {
  if (!weather.strikes(kind)) return false
  log.record('fault', `${kind} ${request.method} ${pathOf(request)}`)
  return true
}

async function pausing(
  { weather, clock, log }: FaultDependencies,
  request: HttpRequest,
  kind: FaultKind,
  signal: AbortSignal | undefined,
): Promise<void> {
  log.record('fault', `${kind} ${request.method} ${pathOf(request)}`)
  await clock.sleep(integerBetween(weather.source(kind), 500, 10_000), signal)
}

/** A rejection before the request takes effect. */
function refusalOf(
  deps: FaultDependencies,
  request: HttpRequest,
  isWrite: boolean,
): HttpResponse | undefined {
  const isUpdate = request.method === 'PATCH' || request.method === 'PUT'
  if (isUpdate && strikes(deps, 'conflict', request)) return status(409, 'Conflict')
  if (strikes(deps, 'throttle', request)) return status(429, 'TooManyRequests', { 'retry-after': '1' })
  if (!strikes(deps, 'serverError', request)) return undefined
  const random = deps.weather.source('serverError')
  return random.uint32() % 2 === 0 || !isWrite
    ? status(500, 'InternalError')
    : status(503, 'ServiceUnavailable')
}

async function openWatch(
  inner: Transport,
  deps: FaultDependencies,
  request: HttpRequest,
  signal: AbortSignal | undefined,
): Promise<HttpResponse> {
  const refusal = refusalOf(deps, request, false)
  if (refusal !== undefined) return refusal
  if (strikes(deps, 'lostRequest', request)) throw new Error('connection reset by peer')
  const response = await inner.send(request, signal)
  if (response.status !== 200) return response
  const gone = { type: 'ERROR', object: statusBody(410, 'Expired') }
  const { body } = response
  if (body instanceof DocumentStream)
    return {
      ...response,
      body: body.through((documents) => watched<readonly unknown[]>(documents, [gone], deps, request)),
    }
  const line = `${JSON.stringify(gone)}\n`
  return { ...response, body: watched<string | Uint8Array>(body, line, deps, request) }
}

/** @param gone the error that the resource version is too old. */
async function* watched<C>(
  body: AsyncIterable<C>,
  gone: C,
  deps: FaultDependencies,
  request: HttpRequest,
): AsyncGenerator<C> {
  const { weather, clock } = deps
  let delayMs = 0
  let delayedIn = false
  for await (const chunk of body) {
    if (strikes(deps, 'watchDrop', request)) throw new Error('unexpected EOF')
    if (strikes(deps, 'watchGone', request)) {
      yield gone
      return
    }
    const isDelayed = weather.isStorm('watchDelay')
    if (isDelayed && !delayedIn) delayMs = watchDelay(deps, request)
    delayedIn = isDelayed
    if (isDelayed) await clock.sleep(delayMs)
    yield chunk
  }
}

/** Drawn once for every storm and watch. */
function watchDelay(deps: FaultDependencies, request: HttpRequest): number {
  if (!strikes(deps, 'watchDelay', request)) return 0
  const random: Random = deps.weather.source('watchDelay')
  return integerBetween(random, 100, longestWatchDelayMs)
}

const pathOf = (request: HttpRequest): string => request.path.split('?')[0] ?? ''

function statusBody(code: number, reason: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Status',
    metadata: {},
    status: 'Failure',
    message: 'injected by the simulation',
    reason,
    code,
  }
}

function status(code: number, reason: string, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  return {
    status: code,
    headers: { 'content-type': 'application/json', ...headers },
    body: oneChunk(JSON.stringify(statusBody(code, reason))),
  }
}
