/** Additional pages of the debug port: log level, profiles, snapshot (ask.md 1, 4) and catalogue (console.md 1). */
import {
  type CatalogueSource,
  snapshotLines,
  takeCatalogues,
  type TakenCatalogues,
  takeSnapshot,
} from '@tenon/ask/snapshot'
import type { Operator } from '@tenon/operator'
import {
  type Clock,
  eventLoopTurns,
  type HttpHandler,
  type HttpResponse,
  inTurns,
  jsonParts,
  type LogLevel,
  oneChunk,
  readText,
} from '@tenon/runtime'
import { snapshotPath } from '../../source/controller.ts'
import { version } from '../../version.ts'

const levels: readonly LogLevel[] = ['debug', 'info', 'error']
const logLevelPath = '/debug/log-level'
const profilingPath = '/debug/pprof'

/** Handlers from other files. */
export interface ControllerPageHandlers {
  readonly profiles?: HttpHandler
  readonly snapshot?: HttpHandler
  readonly catalogue?: HttpHandler
}

/** Serves {@link logLevelPath}, which `PUT` changes, and with `profiles` everything under {@link profilingPath}. */
export function controllerPages(
  level: { value: LogLevel },
  { profiles, snapshot, catalogue }: ControllerPageHandlers,
): HttpHandler {
  return async (request, signal) => {
    const [path = ''] = request.path.split('?')
    if (path === snapshotPath && snapshot !== undefined) return await snapshot(request, signal)
    if (path === cataloguePath && catalogue !== undefined) return await catalogue(request, signal)
    if (path === logLevelPath) return await logLevelPage(level, request)
    const isProfile = path === profilingPath || path.startsWith(`${profilingPath}/`)
    if (isProfile && profiles !== undefined) return await profiles(request, signal)
    return textPage(404, 'not found\n')
  }
}

async function logLevelPage(
  level: { value: LogLevel },
  { method, body = '' }: Parameters<HttpHandler>[0],
): Promise<HttpResponse> {
  if (method === 'PUT') {
    const asked = (await readText(oneChunk(body))).trim().toLowerCase()
    const known = levels.find((each) => each === asked)
    if (known === undefined) return textPage(400, `give one of ${levels.join(', ')} as body\n`)
    level.value = known
  } else if (method !== 'GET')
    return textPage(405, 'GET reads the level, PUT changes it\n', { allow: 'GET, PUT' })
  return textPage(200, `${level.value}\n`)
}

/** A plain-text response. */
export function textPage(
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  return {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', ...headers },
    body: oneChunk(text),
  }
}

/** Yields this often, so that decisions continue meanwhile. */
const sliceMs = 5
const chunkLength = 64 * 1024

export interface SnapshotPageOptions {
  readonly operator: Operator
  readonly identity: string
  readonly isLeading: () => boolean
  readonly clock: Clock
}

/** Responds to every request with a new snapshot. */
export function snapshotPage({ operator, identity, isLeading, clock }: SnapshotPageOptions): HttpHandler {
  return async (_request, signal = new AbortController().signal) => {
    const slicing = { clock, turns: eventLoopTurns, sliceMs }
    const snapshot = await takeSnapshot(
      {
        operator,
        provider: operator.provider,
        origin: { kind: 'controller', identity, isLeading: isLeading() },
        program: `tenon ${version}`,
        clock,
        slicing,
      },
      signal,
    )
    return {
      status: 200,
      headers: { 'content-type': 'application/jsonl' },
      body: chunks(snapshotLines(snapshot)),
    }
  }
}

async function* chunks(lines: Iterable<string>): AsyncGenerator<string, void, undefined> {
  let chunk = ''
  for (const line of lines) {
    chunk += `${line}\n`
    if (chunk.length < chunkLength) continue
    yield chunk
    chunk = ''
    await eventLoopTurns.next()
  }
  if (chunk !== '') yield chunk
}

const cataloguePath = '/debug/catalogue'

/** Responds to every request with the current offerings, their prices, and which of them launches avoid. */
export function cataloguePage(source: CatalogueSource): HttpHandler {
  return async (_request, signal = new AbortController().signal) => {
    const taken = await takeCatalogues(source, signal)
    return {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: inTurns(partsOf(taken)),
    }
  }
}

/** Serialized in parts: a list of instance types may be large, and decisions must not wait for it. */
function* partsOf({ catalogues, priceUnit }: TakenCatalogues): Generator<string, void, undefined> {
  const unit = priceUnit === undefined ? '' : `"priceUnit":${JSON.stringify(priceUnit)},`
  yield `{${unit}"catalogues":[`
  for (const [at, catalogue] of catalogues.entries()) {
    if (at > 0) yield ','
    yield* jsonParts({ ...catalogue })
  }
  yield ']}'
}
