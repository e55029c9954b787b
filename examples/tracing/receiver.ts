/**
 * A receiver of traces for a try: prints every trace as a tree, and the traces that are linked below each other.
 *
 *   node examples/tracing/receiver.ts [PORT] [FILE.svg]
 *
 * It takes OTLP over HTTP as JSON, so the sender needs OTEL_EXPORTER_OTLP_PROTOCOL=http/json. With a file, Ctrl+C draws the
 * last trace that created a NodeClaim, and the trace of that NodeClaim.
 */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import nodeProcess from 'node:process'

interface Attribute {
  key: string
  value: { stringValue?: string; arrayValue?: { values: { stringValue?: string }[] } }
}

interface Span {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes?: Attribute[]
  links?: { traceId: string; spanId: string }[]
  status?: { code?: number; message?: string }
}

interface Line {
  span: Span
  depth: number
}

const [port = '4318', picture] = nodeProcess.argv.slice(2)
const spans = new Map<string, Span>()
const printed = new Set<string>()

const startOf = (span: Span) => Number(BigInt(span.startTimeUnixNano) / 1000n) / 1000
const endOf = (span: Span) => Number(BigInt(span.endTimeUnixNano) / 1000n) / 1000

function linesOf(traceId: string): Line[] {
  const all = [...spans.values()].filter((span) => span.traceId === traceId)
  const ids = new Set(all.map(({ spanId }) => spanId))
  const below = (parent: string | undefined, depth: number): Line[] =>
    all
      .filter(({ parentSpanId = '' }) => (ids.has(parentSpanId) ? parentSpanId : undefined) === parent)
      .sort((a, b) => startOf(a) - startOf(b))
      .flatMap((span) => [{ span, depth }, ...below(span.spanId, depth + 1)])
  return below(undefined, 0)
}

function textOf({ span, depth }: Line): string {
  const tookMs = endOf(span) - startOf(span)
  const failed = span.status?.code === 2 ? `  failed: ${span.status.message ?? ''}` : ''
  const links = (span.links ?? []).map((link) => `  -> ${link.traceId}`).join('')
  return `${'  '.repeat(depth)}${span.name}  ${tookMs.toFixed(1)} ms${failed}${links}`
}

const print = (line: string) => nodeProcess.stdout.write(`${line}\n`)

/** Prints a trace once its root has come. */
function printNew(): void {
  for (const span of spans.values()) {
    if ((span.parentSpanId ?? '') !== '' || printed.has(span.spanId)) continue
    printed.add(span.spanId)
    print(`trace ${span.traceId}`)
    for (const line of linesOf(span.traceId)) print(`  ${textOf(line)}`)
  }
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const { resourceSpans = [] } = JSON.parse(Buffer.concat(chunks).toString()) as {
      resourceSpans?: { scopeSpans: { spans: Span[] }[] }[]
    }
    for (const { scopeSpans } of resourceSpans)
      for (const scope of scopeSpans) for (const span of scope.spans) spans.set(span.spanId, span)
    printNew()
    response.setHeader('content-type', 'application/json')
    response.end('{}')
  })
})

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** Bars of all spans of two traces over one axis. */
function svg(): string | undefined {
  const created = [...spans.values()].findLast(({ name, links }) => name === 'create NodeClaim' && links?.[0])
  const claim = created?.links?.[0]?.traceId
  if (created === undefined || claim === undefined) return undefined
  const traces = [created.traceId, claim].map(linesOf)
  const all = traces.flat().map(({ span }) => span)
  const [from, to] = [Math.min(...all.map(startOf)), Math.max(...all.map(endOf))]
  const [left, width, row] = [330, 460, 22]
  const x = (ms: number) => left + ((ms - from) / (to - from)) * width
  const parts: string[] = []
  let y = 30
  for (const [at, lines] of traces.entries()) {
    parts.push(
      `<text x="12" y="${y + 6}" class="h">${at === 0 ? 'Trace of the batch' : 'Trace of the NodeClaim, linked'}</text>`,
    )
    y += row
    for (const { span, depth } of lines) {
      const [begin, end] = [x(startOf(span)), x(endOf(span))]
      const tookMs = endOf(span) - startOf(span)
      const took = tookMs >= 1000 ? `${(tookMs / 1000).toFixed(1)} s` : `${tookMs.toFixed(1)} ms`
      parts.push(
        `<text x="${12 + depth * 14}" y="${y + 5}">${escaped(span.name)}</text>`,
        `<rect x="${begin.toFixed(1)}" y="${y - 5}" width="${Math.max(2, end - begin).toFixed(1)}" height="11" rx="2" class="d${Math.min(depth, 2)}"/>`,
        `<text x="${(end + 6).toFixed(1)}" y="${y + 5}" class="t">${took}</text>`,
      )
      y += row
    }
    y += 14
  }
  const style = `text{font:13px system-ui,sans-serif;fill:#1f2328}.h{font-weight:600}.t{fill:#59636e;font-size:12px}.d0{fill:#8250df}.d1{fill:#0969da}.d2{fill:#54aeff}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 ${y}" role="img" aria-label="Spans of one pod's batch and of its NodeClaim over time"><style>${style}</style><rect width="880" height="${y}" fill="#fff"/>${parts.join('\n')}</svg>\n`
}

server.listen(Number(port), '127.0.0.1', () => {
  print(`waiting for traces at http://127.0.0.1:${port}`)
})
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  nodeProcess.once(signal, () => {
    const drawn = picture === undefined ? undefined : svg()
    if (picture !== undefined && drawn !== undefined) writeFileSync(picture, drawn)
    nodeProcess.exit(0)
  })
