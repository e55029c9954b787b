/** HTTP handlers of the process (cluster-autoscaler.md 2.1). */
import { type HttpHandler, type HttpResponse, oneChunk } from '@tenon/runtime'
import type { Subject } from './explanations.ts'
import type { HealthCheck } from './health-check.ts'

export interface PagesOptions {
  /** The text of a scrape. */
  readonly metrics: () => Promise<string>
  readonly health: Pick<HealthCheck, 'answer'>
  /** With `--debugging-snapshot-enabled`. */
  readonly snapshotz?: HttpHandler
  /** With `--debugging-snapshot-enabled`: explanations under `/debug/explain?pod=NAMESPACE/NAME`. */
  readonly explain?: (about: Subject) => string
  /** With `--profiling`: everything under `/debug/pprof`. */
  readonly profiles?: HttpHandler
}

const plain = 'text/plain; charset=utf-8'
/** The text format of Prometheus. */
const metricsType = 'text/plain; version=0.0.4; charset=utf-8'

/** `/metrics`, `/health-check`, and optional handlers. */
export function autoscalerPages({
  metrics,
  health,
  snapshotz,
  explain,
  profiles,
}: PagesOptions): HttpHandler {
  return async (request, signal) => {
    const [path = '', query = ''] = request.path.split('?')
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return answer(405, 'only GET is answered here\n', plain)
    if (path === '/metrics') return answer(200, await metrics(), metricsType)
    if (path === '/health-check') {
      const { isHealthy, text } = health.answer()
      return answer(isHealthy ? 200 : 500, text, plain)
    }
    if (path === '/snapshotz' && snapshotz !== undefined) return await snapshotz(request, signal)
    if (path === '/debug/explain' && explain !== undefined) return explained(query, explain)
    if (path.startsWith('/debug/pprof') && profiles !== undefined) return await profiles(request, signal)
    return answer(404, 'not found\n', plain)
  }
}

function explained(query: string, explain: (about: Subject) => string): HttpResponse {
  const asked = new URLSearchParams(query)
  for (const kind of ['pod', 'node', 'group', 'request'] as const) {
    const name = asked.get(kind) ?? ''
    if (name !== '') return answer(200, `${explain({ kind, name })}\n`, plain)
  }
  return answer(400, 'ask for pod=NAMESPACE/NAME, node=NAME, group=NAME or request=NAMESPACE/NAME\n', plain)
}

function answer(status: number, text: string, type: string): HttpResponse {
  return { status, headers: { 'content-type': type }, body: oneChunk(text) }
}
