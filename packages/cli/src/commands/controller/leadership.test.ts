import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEventRecorder, createKubeClient, createLeaderElector, fencedTransport } from '@tenon/kube'
import {
  type HttpRequest,
  type HttpResponse,
  oneChunk,
  readText,
  SeededRandom,
  silentLogger,
  type Transport,
  VirtualClock,
} from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import { type Elect, Leadership, leasePace } from './leadership.ts'

/** An API server that knows one lease and any events. */
class LeaseServer {
  readonly events: string[] = []
  #lease: { metadata: Record<string, unknown>; spec?: Record<string, unknown> } | undefined
  #version = 0

  get holder(): unknown {
    return this.#lease?.spec?.['holderIdentity']
  }

  readonly handle = async ({ method, path, body = '' }: HttpRequest): Promise<HttpResponse> => {
    const given = method === 'GET' ? {} : JSON.parse(await readText(oneChunk(body)))
    if (path.includes('/events')) {
      this.events.push(given.message)
      return answer(201, given)
    }
    // As where the right to watch is missing.
    if (path.includes('watch=true')) return refusal(403, 'Forbidden')
    if (method === 'GET')
      return this.#lease === undefined ? refusal(404, 'NotFound') : answer(200, this.#lease)
    const expected = given.metadata?.resourceVersion
    if (expected !== undefined && expected !== `${this.#version}`) return refusal(409, 'Conflict')
    const resourceVersion = `${++this.#version}`
    this.#lease = {
      ...this.#lease,
      ...given,
      metadata: { ...this.#lease?.metadata, ...given.metadata, resourceVersion },
      spec: { ...this.#lease?.spec, ...given.spec },
    }
    return answer(200, this.#lease ?? {})
  }
}

function refusal(code: number, reason: string): HttpResponse {
  return answer(code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code })
}

function answer(status: number, object: object): HttpResponse {
  return { status, headers: {}, body: oneChunk(JSON.stringify(object)) }
}

/** A replica, whose operator writes once a second while it leads, and does not care to be stopped. */
function replica(server: LeaseServer, clock: VirtualClock, identity: string) {
  const told: string[] = []
  const writes: number[] = []
  const arrivals = new Map([
    ['nodeclaims', 0],
    ['nodepools', 0],
  ])
  let isCut = false
  const transport: Transport = {
    send: (request) => (isCut ? new Promise(() => undefined) : server.handle(request)),
  }
  const random = new SeededRandom(identity)
  const options = { identity, clock, random, logger: silentLogger }
  const leadership = new Leadership({ ...options, election: { namespace: 'kube-system', name: 'tenon' } })
  const sink: Transport = {
    send: () => {
      writes.push(clock.now())
      return Promise.resolve(answer(200, {}))
    },
  }
  const fenced = fencedTransport(sink, () => leadership.mayAct())
  const [known, quiet] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const write = () => {
    fenced.send({ method: 'PATCH', path: '/api/v1/nodes/x', headers: {} }).catch(() => undefined)
    clock.after(1000, write)
  }
  const operator = {
    get waitingFor() {
      return [...arrivals.keys()]
    },
    get arrivals() {
      return new Map(arrivals)
    },
    observe: () => known.promise,
    lead: () => {
      told.push('leads')
      write()
    },
    quiesce: () => quiet.promise,
    // Its thread hangs.
    stop: () => new Promise<void>(() => undefined),
    framework: { leads: (name: string, isLeading: boolean) => told.push(`${name} ${isLeading}`) },
  }
  const ending = new AbortController()
  const client = createKubeClient({ transport, clock })
  const events = createEventRecorder({ ...options, client })
  const elect: Elect = (election, hooks) =>
    createLeaderElector({ ...options, ...election, ...leasePace, ...hooks, client, events })
  const run = leadership.run(operator, elect, ending.signal)
  const outcome = run.then(
    () => 'ended well',
    (error: unknown) => (error instanceof CliError ? `${error.exitCode}: ${error.message}` : String(error)),
  )
  return {
    told,
    writes,
    arrivals,
    outcome,
    leadership,
    know: known.resolve,
    fallQuiet: quiet.resolve,
    end: () => {
      ending.abort()
    },
    cut: () => {
      isCut = true
    },
  }
}

test('OPS-16 of two replicas one leads; a clean end hands over in less than three seconds, and is told', async () => {
  const [server, clock] = [new LeaseServer(), new VirtualClock()]
  const first = replica(server, clock, 'a_1')
  first.know()
  await clock.advance(3000)
  const second = replica(server, clock, 'b_2')
  second.know()
  await clock.advance(60_000)
  assert.deepEqual([first.told, second.told], [['tenon false', 'tenon true', 'leads'], ['tenon false']])
  assert.deepEqual([first.leadership.mayAct(), second.leadership.mayAct()], [true, false])
  first.end()
  const endedAt = clock.now()
  await clock.advance(3000)
  assert.equal(await first.outcome, 'ended well')
  assert.deepEqual([server.holder, second.told], ['b_2', ['tenon false', 'tenon true', 'leads']])
  const [firstWrite = 0] = second.writes
  assert.ok((first.writes.at(-1) ?? 0) <= endedAt && firstWrite >= endedAt && firstWrite < endedAt + 3000)
  assert.deepEqual(server.events, ['a_1 became leader', 'a_1 stopped leading', 'b_2 became leader'])
  second.end()
  await clock.advance(3000)
})

test('OPS-16 the lease is free as soon as nothing is under way, whatever else has to end', async () => {
  const [server, clock] = [new LeaseServer(), new VirtualClock()]
  const first = replica(server, clock, 'a_1')
  first.know()
  await clock.advance(3000)
  first.end()
  await clock.advance(500)
  assert.deepEqual([server.holder, first.leadership.mayAct()], ['a_1', true])
  first.fallQuiet()
  await clock.advance(1)
  assert.deepEqual([server.holder, first.leadership.mayAct()], ['', false])
  await clock.advance(300)
  assert.equal(await first.outcome, 'ended well')
})

test('OPS-18 who cannot renew for ten seconds writes no more and ends with an error', async () => {
  const [server, clock] = [new LeaseServer(), new VirtualClock()]
  const first = replica(server, clock, 'a_1')
  first.know()
  await clock.advance(30_000)
  first.cut()
  const cutAt = clock.now()
  await clock.advance(30_000)
  assert.equal(
    await first.outcome,
    '1: lost lease kube-system/tenon; another replica may lead, this one exits',
  )
  const last = first.writes.at(-1) ?? 0
  assert.ok(last > cutAt && last <= cutAt + 10_000, `${last - cutAt} ms after the cut`)
  assert.deepEqual(first.told.at(-1), 'tenon false')
})

test('OPS-93 a leader that cannot follow the cluster for two minutes ends, names what is missing, and gives the lease back', async () => {
  const [server, clock] = [new LeaseServer(), new VirtualClock()]
  const first = replica(server, clock, 'a_1')
  await clock.advance(129_000)
  assert.deepEqual(first.told, ['tenon false', 'tenon true'])
  assert.equal(server.holder, 'a_1')
  await clock.advance(5000)
  assert.match(
    await first.outcome,
    /^1: leading for two minutes without a list of nodeclaims, nodepools: are/,
  )
  assert.equal(server.holder, '')
  const second = replica(server, clock, 'a_2')
  second.know()
  await clock.advance(3000)
  assert.deepEqual(second.told, ['tenon false', 'tenon true', 'leads'])
  second.end()
  await clock.advance(3000)
})

test('a leader waits for a list as long as more of it arrives, and names one of which nothing does', async () => {
  const [server, clock] = [new LeaseServer(), new VirtualClock()]
  const first = replica(server, clock, 'a_1')
  first.arrivals.set('pods', 0)
  first.arrivals.delete('nodeclaims')
  first.arrivals.delete('nodepools')
  let pods = 0
  const listPodsFor = async (minutes: number) => {
    for (let minute = 0; minute < minutes; minute++) {
      await clock.advance(60_000)
      first.arrivals.set('pods', ++pods)
    }
  }
  await listPodsFor(9)
  assert.deepEqual(first.told, ['tenon false', 'tenon true'])
  first.arrivals.set('nodepools', 0)
  await listPodsFor(5)
  assert.match(await first.outcome, /without a list of nodepools/)
})

test('a leader that got a large list late leads', async () => {
  const [server, clock] = [new LeaseServer(), new VirtualClock()]
  const first = replica(server, clock, 'a_1')
  for (let minute = 1; minute <= 5; minute++) {
    await clock.advance(60_000)
    for (const kind of first.arrivals.keys()) first.arrivals.set(kind, minute)
  }
  first.know()
  await clock.advance(1)
  assert.deepEqual(first.told, ['tenon false', 'tenon true', 'leads'])
  first.end()
  await clock.advance(3000)
})
