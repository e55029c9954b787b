/** Where traces go, and what becomes of the controller when they go nowhere (adoption.md 4). */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import {
  type HttpRequest,
  JsonLogger,
  oneChunk,
  SeededRandom,
  serveHttp,
  SystemClock,
  traced,
} from '@tenon/runtime'
import { openTracing } from './tracing.ts'
import { tracingSettings } from './tracing-settings.ts'

type Env = Readonly<Record<string, string>>
type Line = Readonly<Record<string, unknown>>

const endpoint = 'http://127.0.0.1:4318'
const on = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }

function read(env: Env) {
  return tracingSettings(env, 'tenon')
}

test('ADO-12 the standard variables say where traces go, and which', () => {
  assert.deepEqual(read({}), { problems: [] })
  assert.deepEqual(read({ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }), { problems: [] })
  for (const off of [{ OTEL_SDK_DISABLED: 'True' }, { OTEL_TRACES_EXPORTER: 'none' }])
    assert.deepEqual(read({ ...on, ...off }), { problems: [] })
  assert.deepEqual(read(on), {
    settings: {
      url: `${endpoint}/v1/traces`,
      protocol: 'http/protobuf',
      headers: {},
      timeoutMs: 10_000,
      delayMs: 5000,
      sampler: 'all',
      attributes: { 'service.name': 'tenon' },
    },
    problems: [],
  })
  const all = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://example.com/otlp/',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20YTpi, x-team = a',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-team=b',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_TIMEOUT: '2000',
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '3000',
    OTEL_BSP_SCHEDULE_DELAY: '100',
    OTEL_SERVICE_NAME: 'mine',
    OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,deployment.environment.name=a%2Cb',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
  }
  assert.deepEqual(read(all), {
    settings: {
      url: 'https://example.com/otlp/v1/traces',
      protocol: 'http/json',
      headers: { authorization: 'Basic YTpi', 'x-team': 'b' },
      timeoutMs: 3000,
      delayMs: 100,
      sampler: { ratio: 0.25 },
      attributes: { 'service.name': 'mine', 'deployment.environment.name': 'a,b' },
    },
    problems: [],
  })
  const own = read({ ...on, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://example.com/otlp' })
  assert.equal(own.settings?.url, 'https://example.com/otlp', 'it is used as it stands')
})

test('ADO-12 ADO-5 a value that cannot be used is named with a fix, and without what may be secret', () => {
  const secret = 'hunter2'
  const cases: readonly (readonly [env: Env, problem: RegExp, settings: object | undefined])[] = [
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /OTLP_ENDPOINT .*http:\/\//, undefined],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `::${secret}` }, /OTLP_TRACES_ENDPOINT .*http:\/\//, undefined],
    [{ ...on, OTEL_SDK_DISABLED: 'yes' }, /OTEL_SDK_DISABLED=yes: use true or false/, {}],
    [{ ...on, OTEL_TRACES_EXPORTER: 'zipkin' }, /OTEL_TRACES_EXPORTER=zipkin: use otlp/, {}],
    [{ ...on, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /PROTOCOL=grpc: use http\/protobuf/, {}],
    [{ ...on, OTEL_EXPORTER_OTLP_HEADERS: secret }, /OTLP_HEADERS: a part without a name/, { headers: {} }],
    [
      { ...on, OTEL_EXPORTER_OTLP_HEADERS: `a=${secret}%0d%0ab` },
      /HEADERS: "a" is left out/,
      { headers: {} },
    ],
    [{ ...on, OTEL_EXPORTER_OTLP_HEADERS: `a=${secret}%` }, /HEADERS: "a" is left out/, { headers: {} }],
    [{ ...on, OTEL_EXPORTER_OTLP_HEADERS: `a b=${secret}` }, /HEADERS: "a b" is left out/, { headers: {} }],
    [{ ...on, OTEL_RESOURCE_ATTRIBUTES: '=x' }, /RESOURCE_ATTRIBUTES: a part without a name/, {}],
    ...['0', '-1', 'NaN', '1e309', '10s', '99999999999', '9'.repeat(10_000)].map(
      (text) =>
        [
          { ...on, OTEL_EXPORTER_OTLP_TIMEOUT: text },
          /OTLP_TIMEOUT=.*milliseconds/,
          { timeoutMs: 10_000 },
        ] as const,
    ),
    [{ ...on, OTEL_TRACES_SAMPLER: 'jaeger_remote' }, /SAMPLER=jaeger_remote: use one of always_on/, {}],
    ...['1.5', '-1', 'NaN', '1e309', 'half'].map(
      (text) =>
        [
          { ...on, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: text },
          /SAMPLER_ARG=.*from 0 to 1/,
          { sampler: 'all' },
        ] as const,
    ),
  ]
  for (const [env, problem, expected] of cases) {
    const { settings, problems } = read(env)
    assert.equal(problems.length, 1, JSON.stringify(env))
    assert.match(problems[0] ?? '', problem)
    assert.ok(!problems.join().includes(secret) && problems.join().length < 400)
    if (expected === undefined) assert.equal(settings, undefined)
    else assert.deepEqual({ ...settings, ...expected }, settings)
  }
  const named = read({ ...on, OTEL_RESOURCE_ATTRIBUTES: '__proto__=x,constructor=y' }).settings?.attributes
  assert.deepEqual(Object.keys(named ?? {}), ['__proto__', 'constructor', 'service.name'])
})

interface Receiver {
  readonly url: string
  readonly requests: HttpRequest[]
  status: number
}

async function receiver(t: TestContext): Promise<Receiver> {
  const requests: HttpRequest[] = []
  const state = { url: '', requests, status: 200 }
  const server = await serveHttp(
    (request) => {
      requests.push(request)
      const headers = { 'content-type': 'application/json' }
      return Promise.resolve({ status: state.status, headers, body: oneChunk('{}') })
    },
    { host: '127.0.0.1', port: 0 },
  )
  t.after(() => server.close())
  state.url = `http://127.0.0.1:${server.port}`
  return state
}

async function open(env: Env, log: Line[] = []) {
  const clock = new SystemClock()
  const write = (line: string) => log.push(JSON.parse(line) as Line)
  const logger = new JsonLogger(clock, write, { value: 'info' })
  const about = { serviceName: 'tenon', instance: 'one' }
  const tracing = await openTracing(env, about, { clock, random: new SeededRandom(1), logger })
  assert.ok(tracing !== undefined)
  return tracing
}

/** Gives up after a time that only a hanging program takes. */
async function until(isSo: () => boolean): Promise<void> {
  const deadline = Date.now() + 60_000
  while (!isSo() && Date.now() < deadline) await new Promise((resolve) => setImmediate(resolve))
}

const textOf = ({ body = '' }: HttpRequest) =>
  typeof body === 'string' ? body : Buffer.from(body).toString()

test('ADO-12 a receiver gets the spans with their parents, as JSON or protobuf, and the headers', async (t) => {
  for (const [protocol, type] of [
    ['http/json', 'application/json'],
    ['http/protobuf', 'application/x-protobuf'],
  ] as const) {
    const { url, requests } = await receiver(t)
    const tracing = await open({
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_BSP_SCHEDULE_DELAY: '1',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x',
      OTEL_RESOURCE_ATTRIBUTES: 'k8s.cluster.name=lab',
    })
    await traced(tracing.tracer, 'outer', {}, () =>
      traced(tracing.tracer, 'inner', { kind: 'client', attributes: { 'tenon.pods': ['a/b'] } }, () =>
        Promise.reject(new TypeError('secret text')),
      ).catch(() => undefined),
    )
    // Closing waits for a busy host no longer than for a receiver.
    await until(() => requests.map(textOf).join().includes('outer'))
    await tracing.close()
    for (const { method, path, headers } of requests) {
      assert.deepEqual([method, path, headers['content-type']], ['POST', '/v1/traces', type])
      assert.equal(headers['authorization'], 'Bearer x')
    }
    const text = requests.map(textOf).join()
    for (const word of ['outer', 'inner', 'lab', 'TypeError', 'a/b']) assert.ok(text.includes(word), word)
    assert.ok(!text.includes('secret text'))
    if (protocol === 'http/protobuf') continue
    const sent = requests.flatMap((request) => {
      const { resourceSpans } = JSON.parse(textOf(request)) as {
        resourceSpans: { scopeSpans: { spans: Line[] }[] }[]
      }
      return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
    })
    const [inner, outer] = ['inner', 'outer'].map((name) => sent.find((span) => span['name'] === name))
    assert.deepEqual([inner?.['parentSpanId'], inner?.['kind']], [outer?.['spanId'], 3])
    assert.deepEqual(inner?.['status'], { code: 2, message: 'TypeError' })
  }
})

test('ADO-12 a receiver that is down is named once, and keeps nothing waiting', async (t) => {
  const down = await receiver(t)
  down.status = 400
  const log: Line[] = []
  const tracing = await open(
    { OTEL_EXPORTER_OTLP_ENDPOINT: `${down.url}/?key=hunter2`, OTEL_BSP_SCHEDULE_DELAY: '1' },
    log,
  )
  await until(() => {
    tracing.tracer.start('batch').end()
    return log.length > 0
  })
  const asked = down.requests.length
  for (let i = 0; i < 5000; i++) tracing.tracer.start('batch').end()
  await tracing.close()
  assert.equal(down.requests.length, asked, 'it is left alone for a while')
  assert.deepEqual(
    log.map(({ level, message, receiver: at }) => ({ level, message, at })),
    [
      {
        level: 'WARN',
        message: 'traces are not received; they are dropped until they are',
        at: `${down.url}/v1/traces`,
      },
    ],
  )
})

test('ADO-12 traces that are not sampled are not sent', async (t) => {
  const { url, requests } = await receiver(t)
  const tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_TRACES_SAMPLER: 'always_off' })
  tracing.tracer.start('batch').end()
  await tracing.close()
  assert.deepEqual(requests, [])
})

// prom-client loads the interface @opentelemetry/api, as it always has.
test('ADO-12 without an endpoint no command loads anything of OpenTelemetry', async () => {
  const script = `
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({ load: (url, context, next) => { if (/@opentelemetry\\/(?!api\\/)/.test(url)) loaded.push(url); return next(url, context) } })
    const at = (file) => import(new URL(file, ${JSON.stringify(import.meta.url)}))
    for (const file of ['./run.ts', '../up/run.ts', '../up/cluster-autoscaler.ts', '../cluster-autoscaler/run.ts']) await at(file)
    const { openTracing } = await at('./tracing.ts')
    const logger = { warn() {}, error(message, { error }) { throw error } }
    const clock = { now: () => 0, monotonic: () => 0, sleep: async () => {}, after: () => () => {} }
    const random = { uint32: () => 1, fork: () => random }
    const open = (env) => openTracing(env, { serviceName: 'a', instance: 'b' }, { clock, random, logger })
    const off = await open({})
    const before = loaded.length
    const on = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: ${JSON.stringify(endpoint)} })
    console.log(JSON.stringify([off === undefined, before, on !== undefined, loaded.length > 10]))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  assert.deepEqual(JSON.parse(stdout), [true, 0, true, true])
})
