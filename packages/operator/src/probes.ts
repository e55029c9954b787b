/** `/metrics`, what can be looked at under `/debug`, `/healthz` and `/readyz` (operations.md 5). */
import { type HttpHandler, type HttpResponse, oneChunk } from '@tenon/runtime'
import { shortened } from './decide/scheduling-report.ts'
import type { Operator } from './operator.ts'

/**
 * Answers scrapes of the metrics port. As JSON, `/debug/drains` tells what each drain waits for,
 * `/debug/decisions` why each node is still there, `/debug/offerings` what launches avoid because it had no
 * capacity, and `/debug/waiting` what decisions wait for, or go on without.
 */
export function metricsHandler(operator: Operator): HttpHandler {
  return async (request) => {
    const path = pathOf(request.path)
    if (path === '/debug/drains') return json({ drains: operator.drains() })
    if (path === '/debug/decisions') return json({ decisions: await operator.decisions() })
    if (path === '/debug/offerings') return json({ avoided: operator.offerings() })
    if (path === '/debug/waiting') return json(operator.blockage())
    if (path !== '/metrics') return plain(404, 'not found\n')
    const { registry } = operator.metrics
    return {
      status: 200,
      headers: { 'content-type': registry.contentType },
      body: oneChunk(await registry.metrics()),
    }
  }
}

/**
 * Answers liveness and readiness probes. A failing readiness names what it waits for; `?verbose` asks a
 * successful one, too, for what decisions wait for: that alone makes nobody less ready.
 */
export function probesHandler(operator: Operator): HttpHandler {
  return (request) => {
    const path = pathOf(request.path)
    if (path === '/healthz') return Promise.resolve(plain(200, 'ok'))
    if (path !== '/readyz') return Promise.resolve(plain(404, 'not found\n'))
    const { caches, objects, nodePools } = operator.blockage()
    const stuck = nodePools.length === 0 ? '' : `; going on without NodePools ${shortened(nodePools)}`
    const state = objects.length === 0 ? '' : `: decisions wait for ${shortened(objects)}${stuck}`
    if (caches.length > 0) {
      const manager = `[-]manager failed: waiting for ${caches.join(', ')}\n`
      return Promise.resolve(plain(500, `${manager}[+]state ok${state}\nreadyz check failed\n`))
    }
    const isVerbose = new URLSearchParams(request.path.split('?')[1]).has('verbose')
    const verbose = `[+]manager ok\n[+]state ok${state}\nreadyz check passed\n`
    return Promise.resolve(plain(200, isVerbose ? verbose : 'ok'))
  }
}

function pathOf(path: string): string {
  return path.split('?')[0] ?? path
}

function plain(status: number, text: string): HttpResponse {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: oneChunk(text) }
}

function json(value: object): HttpResponse {
  const text = `${JSON.stringify(value, null, 2)}\n`
  return { status: 200, headers: { 'content-type': 'application/json' }, body: oneChunk(text) }
}
