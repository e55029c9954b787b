/** `/metrics`, pages under `/debug`, `/healthz` and `/readyz` (operations.md 5). */
import { apiVersionOf, karpenterKinds, ownValue } from '@tenon/api'
import {
  type HttpHandler,
  type HttpResponse,
  inTurns,
  jsonParts,
  oneChunk,
  readText,
  type Transport,
} from '@tenon/runtime'
import { shortened } from '../text.ts'
import { journalPage } from '../journal/journal-page.ts'
import { scrapeResponse } from '../metrics/metrics-registry.ts'
import type { Operator } from '../operator.ts'

type Page = (
  request: Parameters<HttpHandler>[0],
  signal?: AbortSignal,
) => Promise<HttpResponse> | HttpResponse

/** Serves `/metrics` only. */
export function scrapeHandler(operator: Pick<Operator, 'metrics'>): HttpHandler {
  return async (request) =>
    pathOf(request.path) === '/metrics'
      ? scrapeResponse(operator.metrics.registry, request)
      : await notFound(request)
}

/**
 * Serves `/metrics` and debug pages, which only the owner of the process may see. As JSON: `/debug/drains` has what each drain
 * waits for, `/debug/decisions` why each node is still there, `/debug/offerings` what launches avoid and which instance types are
 * smaller than they say, `/debug/waiting` what decisions wait for or ignore, `/debug/prices` the price of each NodeClaim.
 * `/debug/journal` is the journal as JSON lines.
 * @param others serves other paths.
 */
export function metricsHandler(operator: Operator, others: HttpHandler = notFound): HttpHandler {
  const pages: Readonly<Record<string, Page>> = {
    '/metrics': (request) => scrapeResponse(operator.metrics.registry, request),
    '/debug/drains': () => json({ drains: operator.drains() }),
    '/debug/decisions': async () => json({ decisions: await operator.decisions() }),
    '/debug/offerings': async () =>
      json({ avoided: operator.offerings(), smaller: await operator.smallerTypes() }),
    '/debug/journal': (request, signal) => journalPage(operator.journaled, request, signal),
    '/debug/prices': () => json({ ...operator.prices() }),
    '/debug/waiting': () => json({ ...operator.blockage() }),
  }
  return async (request, signal) => {
    const path = pathOf(request.path)
    const page = Object.hasOwn(pages, path) ? ownValue(pages, path) : undefined
    return await (page ?? others)(request, signal)
  }
}

type Probed = Pick<Operator, 'blockage' | 'synced' | 'waitingFor'>

export interface ProbeOptions {
  /** Why NodePools and NodeClaims are not served; undefined if they are. By default, they are once they were listed. */
  readonly crdProblem?: (signal?: AbortSignal) => Promise<string | undefined>
}

/** Serves liveness and readiness probes. Check `state`, which Karpenter has not, says what decisions wait for; it never fails. */
export function probesHandler(operator: Probed, options: ProbeOptions = {}): HttpHandler {
  const checkCrds = options.crdProblem ?? (() => Promise.resolve(unlistedCrds(operator)))
  const healthz: readonly Check[] = [{ name: 'healthz', run: alwaysOk }]
  const readyz: readonly Check[] = [
    { name: 'crd', run: checkCrds },
    { name: 'manager', run: (signal) => unsynced(operator, checkCrds, signal) },
    { name: 'readyz', run: alwaysOk },
    { name: 'state', run: alwaysOk, remark: () => stateRemark(operator) },
  ]
  return async (request, signal) => {
    const path = pathOf(request.path)
    const [, root = '', name] = path.split('/')
    const checks = root === 'healthz' ? healthz : root === 'readyz' ? readyz : undefined
    if (checks === undefined || path.split('/').length > 3) return await notFound(request)
    return await serveChecks(checks, { name, query: request.path.split('?')[1] ?? '', signal })
  }
}

const alwaysOk = () => Promise.resolve(undefined)

function unlistedCrds(operator: Probed): string | undefined {
  const missing = operator.waitingFor.filter((plural) => plural === 'nodeclaims' || plural === 'nodepools')
  return missing.length === 0 ? undefined : `not listed yet: ${missing.join(', ')}`
}

/** Waits until all caches are filled. Without the CRDs, they never will be. */
async function unsynced(
  operator: Probed,
  checkCrds: () => Promise<string | undefined>,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const waiting = () => `waiting for ${operator.waitingFor.join(', ')}`
  if (operator.waitingFor.length === 0) return undefined
  if ((await checkCrds()) !== undefined) return waiting()
  try {
    await operator.synced(signal)
    return undefined
  } catch {
    // The request has ended.
    return waiting()
  }
}

function stateRemark(operator: Probed): string {
  const { objects, nodePools, provider } = operator.blockage()
  const cloud = provider === undefined ? '' : `: nothing is launched: ${provider}`
  if (objects.length === 0) return cloud
  const stuck = nodePools.length === 0 ? '' : `; going on without NodePools ${shortened(nodePools)}`
  return `${cloud}: decisions wait for ${shortened(objects)}${stuck}`
}

function pathOf(path: string): string {
  return path.split('?')[0] ?? path
}

function notFound(_request: unknown): Promise<HttpResponse> {
  return Promise.resolve({
    status: 404,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body: oneChunk('not found\n'),
  })
}

/** A line for each item of a list. Written in turns: decisions go on while thousands are written. */
function json(value: Readonly<Record<string, unknown>>): HttpResponse {
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: inTurns(linesOf(value)),
  }
}

function* linesOf(value: Readonly<Record<string, unknown>>): Generator<string, void, undefined> {
  yield* jsonParts(value, ',\n')
  yield '\n'
}

interface Check {
  readonly name: string
  /** @returns why it fails; undefined if it does not. Must not reject. */
  readonly run: (signal?: AbortSignal) => Promise<string | undefined>
  /** Follows `ok` in listings. */
  readonly remark?: () => string
}

interface ChecksQuestion {
  /** The only check to run; undefined or empty for all. */
  readonly name: string | undefined
  /** Without the `?`. */
  readonly query: string
  readonly signal: AbortSignal | undefined
}

/**
 * For all checks: `ok`, or a listing without reasons if one fails or with `verbose`; `exclude` skips checks. For one check: `ok`,
 * or why it fails.
 */
async function serveChecks(
  checks: readonly Check[],
  { name, query, signal }: ChecksQuestion,
): Promise<HttpResponse> {
  if (name !== undefined && name !== '') return await serveOne(checks, name, signal)
  const asked = new URLSearchParams(query)
  const excluded = asked.getAll('exclude')
  const outcomes = await Promise.all(
    checks.map(async (check) => {
      if (excluded.includes(check.name)) return { isOk: true, line: `[+]${check.name} excluded: ok` }
      if ((await check.run(signal)) === undefined)
        return { isOk: true, line: `[+]${check.name} ok${check.remark?.() ?? ''}` }
      return { isOk: false, line: `[-]${check.name} failed: reason withheld` }
    }),
  )
  const isOk = outcomes.every((outcome) => outcome.isOk)
  if (isOk && !asked.has('verbose')) return plain(200, 'ok')
  const unknown = excluded.filter((each) => !checks.some((check) => check.name === each))
  const lines = [
    ...outcomes.map(({ line }) => line),
    ...(unknown.length === 0
      ? []
      : [
          `warn: some health checks cannot be excluded: no matches for ${unknown.map((each) => `"${each}"`).join(', ')}`,
        ]),
    // Karpenter says so of readiness, too.
    `healthz check ${isOk ? 'passed' : 'failed'}`,
  ]
  return plain(isOk ? 200 : 500, `${lines.join('\n')}\n`)
}

async function serveOne(
  checks: readonly Check[],
  name: string,
  signal: AbortSignal | undefined,
): Promise<HttpResponse> {
  const check = checks.find((each) => each.name === name)
  if (check === undefined) return plain(404, '404 page not found\n')
  const problem = await check.run(signal)
  return problem === undefined ? plain(200, 'ok') : plain(500, `internal server error: ${problem}\n`)
}

function plain(status: number, text: string): HttpResponse {
  const headers = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' }
  return { status, headers, body: oneChunk(text) }
}

const needed = [karpenterKinds.nodeClaim, karpenterKinds.nodePool]
const fix = 'install the CustomResourceDefinitions: tenon crds | kubectl apply --server-side -f -'

/** Asks the API server by discovery. @returns what is missing, or why it cannot be asked. */
export async function crdProblem(transport: Transport, signal?: AbortSignal): Promise<string | undefined> {
  const version = apiVersionOf(karpenterKinds.nodePool)
  const request = { method: 'GET', path: `/apis/${version}`, headers: { accept: 'application/json' } }
  try {
    const { status, body } = await transport.send(request, signal)
    const text = await readText(body)
    if (status !== 200 && status !== 404) return `GET /apis/${version}: the server answered ${status}`
    const served = status === 200 ? namesOf(text) : []
    const missing = needed.map(({ plural }) => plural).filter((plural) => !served.includes(plural))
    return missing.length === 0 ? undefined : `${version} serves no ${missing.join(' and ')}; ${fix}`
  } catch (error) {
    return `GET /apis/${version}: ${error instanceof Error ? error.message : String(error)}`
  }
}

function namesOf(text: string): readonly string[] {
  const { resources = [] } = JSON.parse(text) as { resources?: readonly { readonly name: string }[] }
  return resources.map(({ name }) => name)
}
