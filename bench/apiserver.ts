/**
 * Throughput of the API server through its HTTP handler, without sockets:
 * `node bench/apiserver.ts [--json]`.
 */
import { createApiServer, createCredentials } from '@tenon/devcluster'
import { type HttpResponse, readText, SeededRandom, silentLogger, SystemClock } from '@tenon/runtime'

interface Row {
  readonly workload: string
  readonly count: number
  readonly seconds: number
  readonly ratePerSecond: number
}

const watcherCount = 20
const writeCount = 4000
const podCount = 10_000

const clock = new SystemClock()
const credentials = await createCredentials(clock.now())
const rows: Row[] = []

function newServer() {
  return createApiServer({
    clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    adminToken: credentials.adminToken,
    signingKey: credentials.signingKey,
  })
}

type Server = ReturnType<typeof newServer>

function request(
  server: Server,
  method: string,
  path: string,
  body?: object,
  signal?: AbortSignal,
): Promise<HttpResponse> {
  const headers = {
    authorization: `Bearer ${credentials.adminToken.reveal()}`,
    'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
    'user-agent': 'bench/1',
  }
  return server.handle(
    { method, path, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) },
    signal,
  )
}

async function measure(workload: string, count: number, work: () => Promise<void>): Promise<void> {
  const start = clock.monotonic()
  await work()
  const seconds = (clock.monotonic() - start) / 1000
  rows.push({
    workload,
    count,
    seconds: Number(seconds.toFixed(3)),
    ratePerSecond: Math.round(count / seconds),
  })
}

function pod(index: number): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `pod-${index}`, labels: { app: `app-${index % 50}`, tier: 'web' } },
    spec: {
      containers: [
        { name: 'app', image: 'app:1', resources: { requests: { cpu: '250m', memory: '512Mi' } } },
        { name: 'log', image: 'log:1', resources: { requests: { cpu: '50m', memory: '64Mi' } } },
      ],
    },
  }
}

function status(index: number): object {
  const now = new Date(clock.now()).toISOString()
  return {
    status: {
      phase: 'Running',
      podIP: `10.0.${index >> 8}.${index & 255}`,
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: now }],
    },
  }
}

/** Counts the events of a watch until `stop` aborts it. */
function watch(server: Server, path: string, stop: AbortSignal, counted: { events: number }): Promise<void> {
  return (async () => {
    const response = await request(server, 'GET', path, undefined, stop)
    for await (const chunk of response.body) {
      const text = typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk)
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) counted.events++
    }
  })()
}

async function expectStatus(answer: Promise<HttpResponse>, wanted: number): Promise<void> {
  const response = await answer
  if (response.status !== wanted) throw new Error(`${response.status}: ${await readText(response.body)}`)
}

const pods = '/api/v1/namespaces/default/pods'

async function writes(): Promise<void> {
  const server = newServer()
  const stop = new AbortController()
  const counted = { events: 0 }
  const watches = Array.from({ length: watcherCount }, () =>
    watch(server, `${pods}?watch=true`, stop.signal, counted),
  )
  await measure(`create pods, ${watcherCount} watchers`, writeCount, async () => {
    for (let index = 0; index < writeCount; index++)
      await expectStatus(request(server, 'POST', pods, pod(index)), 201)
  })
  await measure(`patch pod status, ${watcherCount} watchers`, writeCount, async () => {
    for (let index = 0; index < writeCount; index++)
      await expectStatus(request(server, 'PATCH', `${pods}/pod-${index}/status`, status(index)), 200)
  })
  await measure(`delete pods, ${watcherCount} watchers`, writeCount, async () => {
    for (let index = 0; index < writeCount; index++)
      await expectStatus(request(server, 'DELETE', `${pods}/pod-${index}?gracePeriodSeconds=0`), 200)
  })
  while (counted.events < 3 * writeCount * watcherCount) await clock.sleep(5)
  stop.abort()
  await Promise.all(watches)
  server.stop()
}

async function lists(): Promise<void> {
  const server = newServer()
  for (let index = 0; index < podCount; index++)
    await expectStatus(request(server, 'POST', pods, pod(index)), 201)
  const list = async (path: string) => {
    const response = await request(server, 'GET', path)
    let size = 0
    for await (const chunk of response.body) size += chunk.length
    if (size < podCount) throw new Error('the list is too short')
  }
  await measure('list pods, first time', podCount, () => list(pods))
  await measure('list pods, again', podCount, () => list(pods))
  await measure('list pods by label', podCount, () => list(`${pods}?labelSelector=tier%3Dweb`))
  await measure('list pods in pages of 500', podCount, async () => {
    let token = ''
    do {
      const path = `${pods}?limit=500&continue=${encodeURIComponent(token)}`
      const page = JSON.parse(await readText((await request(server, 'GET', path)).body)) as {
        metadata: { continue?: string }
      }
      token = page.metadata.continue ?? ''
    } while (token !== '')
  })
  server.stop()
}

await writes()
await lists()
if (process.argv.includes('--json')) for (const row of rows) process.stdout.write(`${JSON.stringify(row)}\n`)
else {
  process.stdout.write(
    `${'workload'.padEnd(36)}${'count'.padStart(8)}${'seconds'.padStart(10)}${'per s'.padStart(10)}\n`,
  )
  for (const { workload, count, seconds, ratePerSecond } of rows)
    process.stdout.write(
      `${workload.padEnd(36)}${String(count).padStart(8)}${seconds.toFixed(3).padStart(10)}${String(ratePerSecond).padStart(10)}\n`,
    )
}
