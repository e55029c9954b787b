/** Additional pages of the debug port: log level, profiles, snapshot, and catalogue. */
import { type HttpHandler, type HttpResponse, type LogLevel, oneChunk, readText } from '@tenon/runtime'
import { snapshotPath } from '../../source/controller.ts'
import { cataloguePath } from './catalogue-page.ts'

const levels: readonly LogLevel[] = ['debug', 'info', 'error']
const logLevelPath = '/debug/log-level'
const profilingPath = '/debug/pprof'

/** Pages that others make. */
export interface ControllerPageHandlers {
  readonly profiles?: HttpHandler
  readonly snapshot?: HttpHandler
  readonly catalogue?: HttpHandler
}

/**
 * Answers {@link logLevelPath}, which `PUT` changes, and with `profiles` everything under
 * {@link profilingPath}.
 */
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

/** A page of plain text. */
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
