/** Spans, and what belongs to them (adoption.md 4). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneChunk, type Transport } from './transport.ts'
import { SeededRandom } from './random.ts'
import { currentTrace, inLogScope, inTrace, traceFields } from './scope.ts'
import {
  createTracer,
  type FinishedSpan,
  parseTraceparent,
  traced,
  tracedTransport,
  traceparentOf,
} from './tracing.ts'
import { VirtualClock } from './virtual-clock.ts'

function recording(isSampled = true) {
  const spans: FinishedSpan[] = []
  const clock = new VirtualClock()
  const tracer = createTracer({
    clock,
    random: new SeededRandom(1),
    isSampled: () => isSampled,
    onEnd: (span) => spans.push(span),
  })
  return { clock, spans, tracer }
}

test('a span has the time of its work, its parent, and the kind of error that ended it', async () => {
  const { clock, spans, tracer } = recording()
  const startMs = clock.now()
  const outer = traced(tracer, 'outer', {}, async (span) => {
    await clock.sleep(10)
    span?.set({ 'tenon.pods': 2 })
    await traced(tracer, 'inner', {}, async () => {
      await clock.sleep(5)
      throw new RangeError('a message that only the log has')
    }).catch(() => undefined)
    return currentTrace()
  })
  await clock.advance(20)
  const context = await outer
  const [inner, whole] = spans
  assert.deepEqual([whole?.startMs, whole?.endMs], [startMs, startMs + 15])
  assert.deepEqual([inner?.startMs, inner?.endMs, inner?.error], [startMs + 10, startMs + 15, 'RangeError'])
  assert.deepEqual([inner?.parent, whole?.context, whole?.parent], [context, context, undefined])
  assert.deepEqual(whole?.attributes, { 'tenon.pods': 2 })
  assert.equal(currentTrace(), undefined)
})

test('work that outlives its span, and work of another operation, belong to no span', async () => {
  const { tracer } = recording()
  const gate = Promise.withResolvers<void>()
  let late: Promise<unknown> | undefined
  await traced(tracer, 'span', {}, async () => {
    late = gate.promise.then(() => currentTrace())
    assert.equal(
      inLogScope(() => ({}), currentTrace),
      undefined,
    )
    await Promise.resolve()
  })
  gate.resolve()
  assert.equal(await late, undefined)
})

test('without a tracer, and outside of spans, requests are sent as they are', async () => {
  const { spans, tracer } = recording()
  const bare: Transport = { send: () => Promise.resolve({ status: 404, headers: {}, body: oneChunk('') }) }
  assert.equal(tracedTransport(bare, undefined), bare)
  const transport = tracedTransport(bare, tracer, 'https://api.example.com:6443')
  const send = (path: string) => transport.send({ method: 'GET', path, headers: { authorization: 'x' } })
  await send('/api/v1/nodes')
  assert.equal(spans.length, 0)
  const paths = [
    '/api/v1/namespaces/default/pods/web-1/eviction?token=x',
    '/api/v1/namespaces/default',
    '/apis/karpenter.sh/v1/nodeclaims/default-x7k2p/status',
    '/apis/apps/v1/namespaces/default/deployments',
    '/v2/instance/8a2f1c9e-0000-4000-8000-000000000000:stop',
    '/v4/kubernetes/organisations/orga_1/clusters',
    '/version',
  ]
  await traced(tracer, 'all', {}, async () => {
    for (const path of paths) await send(path)
  })
  assert.deepEqual(
    spans.map(({ name }) => name),
    [
      'GET pods/eviction',
      'GET namespaces',
      'GET nodeclaims/status',
      'GET deployments',
      'GET /v2/instance/{id}:stop',
      'GET /v4/kubernetes/organisations/{id}/clusters',
      'GET /version',
      'all',
    ],
  )
  assert.deepEqual(
    [spans[0]?.attributes, spans[0]?.error],
    [
      {
        'server.address': 'api.example.com',
        'http.request.method': 'GET',
        'url.path': '/api/v1/namespaces/default/pods/web-1/eviction',
        'http.response.status_code': 404,
      },
      '404',
    ],
  )
})

test('the clock may be set while spans are open', () => {
  const { spans } = recording()
  let wallMs = 1000
  let monotonicMs = 0
  const clock = { now: () => wallMs, monotonic: () => monotonicMs }
  const tracer = createTracer({
    clock,
    random: new SeededRandom(1),
    isSampled: () => true,
    onEnd: (span) => spans.push(span),
  })
  const span = tracer.start('span')
  monotonicMs += 10
  wallMs -= 500
  span.end()
  assert.deepEqual([spans[0]?.startMs, spans[0]?.endMs], [1000, 1010])
  assert.equal(tracer.now(), 500)
  monotonicMs += 0.25
  assert.equal(tracer.now(), 500.25)
})

test('spans of traces that are not sampled go nowhere, and neither do their ids', async () => {
  const { spans, tracer } = recording(false)
  await traced(tracer, 'span', {}, async () => {
    assert.deepEqual(traceFields(), {})
    await traced(tracer, 'child', {}, () => Promise.resolve())
  })
  assert.deepEqual(spans, [])
})

test('a traceparent is read as it was written, and nothing else is', async () => {
  const { tracer } = recording()
  const context = tracer.rootContext()
  assert.deepEqual(parseTraceparent(traceparentOf(context)), context)
  const [traceId, spanId] = ['a'.repeat(32), 'b'.repeat(16)]
  for (const text of [
    undefined,
    '',
    '__proto__',
    `00-${traceId}-${spanId}`,
    `ff-${traceId}-${spanId}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId}-${spanId}-01\n`,
    'x'.repeat(10_000),
  ])
    assert.equal(parseTraceparent(text), undefined)
  assert.equal(await inTrace(undefined, () => Promise.resolve(currentTrace())), undefined)
})
