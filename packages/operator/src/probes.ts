/** `/metrics`, `/healthz` and `/readyz` (operations.md 5). */
import { type HttpHandler, type HttpResponse, oneChunk } from '@tenon/runtime'
import type { Operator } from './operator.ts'

/** Answers scrapes of the metrics port. */
export function metricsHandler(operator: Operator): HttpHandler {
  return async (request) => {
    if (pathOf(request.path) !== '/metrics') return plain(404, 'not found\n')
    const { registry } = operator.metrics
    return {
      status: 200,
      headers: { 'content-type': registry.contentType },
      body: oneChunk(await registry.metrics()),
    }
  }
}

/** Answers liveness and readiness probes; a failing readiness names what it waits for. */
export function probesHandler(operator: Operator): HttpHandler {
  return (request) => {
    const path = pathOf(request.path)
    if (path === '/healthz') return Promise.resolve(plain(200, 'ok'))
    if (path !== '/readyz') return Promise.resolve(plain(404, 'not found\n'))
    const waiting = operator.waitingFor
    if (waiting.length === 0) return Promise.resolve(plain(200, 'ok'))
    return Promise.resolve(
      plain(500, `[-]manager failed: waiting for ${waiting.join(', ')}\nreadyz check failed\n`),
    )
  }
}

function pathOf(path: string): string {
  return path.split('?')[0] ?? path
}

function plain(status: number, text: string): HttpResponse {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: oneChunk(text) }
}
