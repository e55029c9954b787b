import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Lease } from '@tenon/api'
import { JsonLogger, oneChunk, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { createKubeClient, type WatchingKubeClient } from '../client/client.ts'
import { MemoryServer } from '../testing/memory-server.test-support.ts'
import { createLeaderElector, type LeaderElector } from './leader-election.ts'

const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases'

interface World {
  readonly server: MemoryServer
  readonly clock: VirtualClock
  readonly history: string[]
  readonly spec: () => NonNullable<Lease['spec']>
  /** Each candidate has a way of its own to the server, that can be cut. */
  readonly candidate: (
    identity: string,
    options?: {
      readonly skewMs?: number
      readonly rate?: { perSecond: number; burst: number }
      readonly writes?: 'update'
    },
  ) => {
    readonly client: WatchingKubeClient
    readonly elector: LeaderElector
    readonly cut: (how: boolean) => void
  }
}

function world(): World {
  const server = new MemoryServer()
  const clock = new VirtualClock()
  const history: string[] = []
  return {
    server,
    clock,
    history,
    spec: () => (server.get(`${leases}/tenon`) as Lease).spec ?? {},
    candidate(identity, { skewMs = 0, rate, writes } = {}) {
      let isCut = false
      const client = createKubeClient({
        clock,
        ...(rate !== undefined && { rate }),
        transport: {
          send: (request, signal) => (isCut ? new Promise(() => undefined) : server.send(request, signal)),
        },
      })
      const elector = createLeaderElector({
        client,
        clock: {
          now: () => clock.now() + skewMs,
          monotonic: () => clock.monotonic(),
          sleep: (ms, signal) => clock.sleep(ms, signal),
          after: (ms, callback) => clock.after(ms, callback),
        },
        random: new SeededRandom(identity),
        logger: silentLogger,
        identity,
        namespace: 'kube-system',
        name: 'tenon',
        labels: { app: 'tenon' },
        ...(writes !== undefined && { writes }),
        onStarted: () => history.push(`${identity} started`),
        onStopped: () => history.push(`${identity} stopped`),
      })
      return {
        client,
        elector,
        cut: (how) => {
          isCut = how
        },
      }
    },
  }
}

test('the first candidate creates the lease and renews it', async () => {
  const { server, clock, history, spec, candidate } = world()
  const { elector } = candidate('a_1')
  elector.start()
  await clock.advance(1000)
  assert.deepEqual(history, ['a_1 started'])
  assert.ok(elector.isLeader)
  assert.deepEqual(spec(), {
    holderIdentity: 'a_1',
    leaseDurationSeconds: 15,
    acquireTime: '2026-01-01T00:00:00.000000Z',
    renewTime: '2026-01-01T00:00:00.000000Z',
    leaseTransitions: 0,
  })
  assert.deepEqual(server.get(`${leases}/tenon`)?.metadata.labels, { app: 'tenon' })
  await clock.advance(60_000)
  assert.equal(spec().acquireTime, '2026-01-01T00:00:00.000000Z')
  assert.equal(spec().renewTime, '2026-01-01T00:01:00.000000Z')
  await elector.stop()
})

test('a clean stop gives the lease back, and the next candidate has it in less than three seconds', async () => {
  const { clock, history, spec, candidate } = world()
  const [first, second] = [candidate('a_1').elector, candidate('b_2').elector]
  first.start()
  await clock.advance(1000)
  second.start()
  await clock.advance(120_000)
  assert.deepEqual([history, second.isLeader], [['a_1 started'], false])
  await first.stop()
  assert.equal(spec().holderIdentity, '')
  await clock.advance(1_500)
  assert.deepEqual(history, ['a_1 started', 'a_1 stopped', 'b_2 started'])
  assert.deepEqual([spec().holderIdentity, spec().leaseTransitions], ['b_2', 1])
  await second.stop()
})

test('a standby sees at once that the lease is given back, also when it has stood for long', async () => {
  for (const standsMs of [700, 600_000]) {
    const { server, clock, history, candidate } = world()
    const [first, second] = [candidate('a_1').elector, candidate('b_2').elector]
    first.start()
    await clock.advance(1000)
    second.start()
    await clock.advance(standsMs)
    await first.stop()
    await clock.advance(10)
    assert.deepEqual(history, ['a_1 started', 'a_1 stopped', 'b_2 started'])
    await clock.advance(10)
    assert.equal(server.openWatches, 0, 'a leader watches its lease no more')
    await second.stop()
  }
})

test('a standby that may not watch, or whose watch hangs, looks by itself', async () => {
  const forbidden = { status: 403, headers: {}, body: oneChunk('{}') }
  for (const answer of [forbidden, 'silence', 'break'] as const) {
    const { server, clock, history, candidate } = world()
    server.fault = ({ path }) => (path.includes('watch=true') ? answer : undefined)
    const [first, second] = [candidate('a_1').elector, candidate('b_2').elector]
    first.start()
    await clock.advance(1000)
    second.start()
    await clock.advance(60_000)
    const asked = server.requests.filter(({ path }) => path.includes('watch=true')).length
    assert.ok(asked >= 1 && asked <= 60, `${asked} watches in a minute`)
    await first.stop()
    await clock.advance(1_500)
    assert.deepEqual(history, ['a_1 started', 'a_1 stopped', 'b_2 started'])
    await second.stop()
  }
})

test('a candidate without rights for its lease says which it lacks at once, then once a minute, until it has them', async () => {
  const { server, clock, history } = world()
  const lines: string[] = []
  let isRefused = true
  const refusal = {
    kind: 'Status',
    status: 'Failure',
    reason: 'Forbidden',
    code: 403,
    message: 'leases "tenon" is forbidden',
  }
  const elector = createLeaderElector({
    client: createKubeClient({
      clock,
      transport: {
        send: (request, signal) =>
          isRefused
            ? Promise.resolve({ status: 403, headers: {}, body: oneChunk(JSON.stringify(refusal)) })
            : server.send(request, signal),
      },
    }),
    clock,
    random: new SeededRandom('a_1'),
    logger: new JsonLogger(clock, (line) => lines.push(line), { value: 'info' }),
    identity: 'a_1',
    namespace: 'kube-system',
    name: 'tenon',
    onStarted: () => history.push('started'),
    onStopped: () => history.push('stopped'),
  })
  elector.start()
  await clock.advance(3000)
  assert.equal(lines.length, 1)
  const missing =
    /"level":"WARN".* grant get, create and patch on leases .* in namespace kube-system".*kube-system\/tenon.*is forbidden/
  assert.match(lines[0] ?? '', missing)
  await clock.advance(60_000)
  assert.equal(lines.length, 2)
  isRefused = false
  await clock.advance(3000)
  assert.deepEqual(history, ['started'])
  await elector.stop()
})

test('leases are taken, renewed, given back and taken over without a right to patch or to watch', async () => {
  const { server, clock, history, spec, candidate } = world()
  const forbidden = { status: 403, headers: {}, body: oneChunk('{}') }
  server.fault = ({ method, path }) =>
    method === 'PATCH' || path.includes('watch=true') ? forbidden : undefined
  const [first, second] = [candidate('a', { writes: 'update' }), candidate('b', { writes: 'update' })]
  first.elector.start()
  await clock.advance(1000)
  second.elector.start()
  await clock.advance(120_000)
  assert.deepEqual([history, spec().renewTime], [['a started'], '2026-01-01T00:02:00.000000Z'])
  await first.elector.stop()
  assert.deepEqual([spec().holderIdentity, spec().leaseTransitions], ['', 0])
  await clock.advance(1_500)
  assert.deepEqual(history, ['a started', 'a stopped', 'b started'])
  assert.deepEqual([spec().holderIdentity, spec().leaseTransitions], ['b', 1])
  assert.deepEqual(server.get(`${leases}/tenon`)?.metadata.labels, { app: 'tenon' })
  const refused = server.requests.filter(({ path }) => path.includes('watch=true'))
  assert.equal(refused.length, 1, 'who may not watch does not ask again and again')
  await second.elector.stop()
})

test('of two candidates that find a lease free at once, with updates, too, one leads', async () => {
  const { clock, history, candidate } = world()
  const [first, second] = ['a', 'b'].map((name) => candidate(name, { writes: 'update' }))
  first?.elector.start()
  second?.elector.start()
  await clock.advance(30_000)
  assert.equal(history.length, 1, history.join(', '))
  first?.cut(true)
  second?.cut(true)
  await clock.advance(30_000)
})

test('of many standbys that all see the lease given back one leads', async () => {
  const { clock, history, candidate } = world()
  const electors = Array.from({ length: 6 }, (_, i) => candidate(`c_${i}`).elector)
  for (const elector of electors) {
    elector.start()
    await clock.advance(1000)
  }
  await electors[0]?.stop()
  await clock.advance(5000)
  assert.equal(history.length, 3, history.join(', '))
  assert.equal(electors.filter(({ isLeader }) => isLeader).length, 1)
  for (const elector of electors) await elector.stop()
})

test('a leader that is cut off stops before another one starts', async () => {
  const { clock, history, candidate } = world()
  const [first, second] = [candidate('a_1'), candidate('b_2')]
  first.elector.start()
  await clock.advance(1000)
  second.elector.start()
  await clock.advance(30_000)
  first.cut(true)
  await clock.advance(12_000)
  assert.deepEqual(history, ['a_1 started', 'a_1 stopped'])
  await clock.advance(30_000)
  assert.deepEqual(history, ['a_1 started', 'a_1 stopped', 'b_2 started'])
  await second.elector.stop()
})

test('a short loss of the connection, and a renewal whose answer was lost, do not end leadership', async () => {
  const { server, clock, history, candidate } = world()
  const { elector, cut } = candidate('a_1')
  elector.start()
  await clock.advance(1000)
  cut(true)
  await clock.advance(1500)
  cut(false)
  await clock.advance(20_000)
  let lost = 1
  server.fault = (request) => (request.method === 'PATCH' && lost-- > 0 ? 'breakAfter' : undefined)
  await clock.advance(60_000)
  assert.deepEqual([history, elector.isLeader], [['a_1 started'], true])
  await elector.stop()
})

test('a leader whose lease was taken by somebody else stops at once', async () => {
  const { server, clock, history, candidate } = world()
  const { elector } = candidate('a_1')
  elector.start()
  await clock.advance(1000)
  server.put(leases, 'tenon', { spec: { holderIdentity: 'thief', leaseDurationSeconds: 15 } })
  await clock.advance(5_000)
  assert.deepEqual([history, elector.isLeader], [['a_1 started', 'a_1 stopped'], false])
  await elector.stop()
})

test('clocks that are hours apart neither cost nor give anybody the lease', async () => {
  for (const skewMs of [-7_200_000, 7_200_000]) {
    const { clock, history, candidate } = world()
    const [a, b] = [candidate('a'), candidate('b', { skewMs })]
    a.elector.start()
    await clock.advance(5_000)
    b.elector.start()
    await clock.advance(120_000)
    assert.deepEqual(history, ['a started'])
    a.cut(true)
    await clock.advance(30_000)
    assert.deepEqual(history, ['a started', 'a stopped', 'b started'])
    await b.elector.stop()
  }
})

test('a leader renews in time behind a long row of writes of its own client', async () => {
  const { server, clock, history, candidate } = world()
  server.put('/api/v1/nodes', 'x')
  const { client, elector } = candidate('a', { rate: { perSecond: 10, burst: 1 } })
  elector.start()
  await clock.advance(2_000)
  const bulk = Promise.all(
    Array.from({ length: 600 }, () => client.patch(kinds.node, { name: 'x' }, { spec: {} })),
  )
  await clock.advance(80_000)
  await bulk
  assert.deepEqual(history, ['a started'])
  await elector.stop()
})

test('OPS-17 whenever the leader dies, the standby leads within the lease, and not before the last renewal is that old', async () => {
  for (const diesMs of [30_000, 30_400, 30_900, 31_300, 31_900]) {
    const { clock, history, spec, candidate } = world()
    const [first, second] = [candidate('a_1'), candidate('b_2')]
    first.elector.start()
    await clock.advance(1000)
    second.elector.start()
    await clock.advance(diesMs)
    const renewed = Date.parse(spec().renewTime ?? '')
    first.cut(true)
    await clock.advance(renewed + 15_000 - clock.now() - 1)
    assert.ok(!second.elector.isLeader)
    await clock.advance(2)
    assert.ok(second.elector.isLeader)
    assert.deepEqual(history, ['a_1 started', 'a_1 stopped', 'b_2 started'])
    await second.elector.stop()
  }
})

test('a leader that was held up for longer than it may go without renewal leads no more, before any timer has run', async () => {
  const { clock, history, candidate } = world()
  let stoodStillMs = 0
  const { client } = candidate('x')
  const elector = createLeaderElector({
    client,
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic() + stoodStillMs,
      sleep: (ms, signal) => clock.sleep(ms, signal),
      after: (ms, callback) => clock.after(ms, callback),
    },
    random: new SeededRandom('a'),
    logger: silentLogger,
    identity: 'a_1',
    namespace: 'kube-system',
    name: 'tenon',
    onStarted: () => history.push('started'),
    onStopped: () => history.push('stopped'),
  })
  elector.start()
  await clock.advance(5_000)
  assert.ok(elector.isLeader)
  stoodStillMs = 10_000
  assert.ok(!elector.isLeader)
  assert.deepEqual(history, ['started'])
  await clock.advance(2_500)
  assert.deepEqual(history, ['started', 'stopped'])
  await elector.stop()
})

test('a lease is given back also to a server that takes four seconds to answer', async () => {
  const { server, clock, spec } = world()
  let delayMs = 0
  const client = createKubeClient({
    clock,
    transport: {
      send: async (request, signal) => {
        await clock.sleep(delayMs, signal)
        return await server.send(request, signal)
      },
    },
  })
  const elector = createLeaderElector({
    client,
    clock,
    random: new SeededRandom('a'),
    logger: silentLogger,
    identity: 'a_1',
    namespace: 'kube-system',
    name: 'tenon',
    onStarted: () => undefined,
    onStopped: () => undefined,
  })
  elector.start()
  await clock.advance(1000)
  delayMs = 4000
  const stopped = elector.stop()
  await clock.advance(4100)
  await stopped
  assert.equal(spec().holderIdentity, '')
})

test('a lease is given back also when its last renewal was cut off after it had arrived', async () => {
  const { server, clock, history, spec, candidate } = world()
  const { elector } = candidate('a_1')
  elector.start()
  await clock.advance(1000)
  server.fault = ({ method }) => {
    if (method !== 'PATCH') return undefined
    server.put(leases, 'tenon', { spec: spec() })
    return 'silence'
  }
  await clock.advance(2000)
  server.fault = () => undefined
  await elector.stop()
  assert.deepEqual([history, spec().holderIdentity], [['a_1 started', 'a_1 stopped'], ''])
})

test('RPT-34 an older answer about the lease neither makes a leader nor renews', async () => {
  const { server, clock, history, spec, candidate } = world()
  const [first, second] = [candidate('a_1'), candidate('b_2')]
  first.elector.start()
  await clock.advance(1000)
  second.elector.start()
  await clock.advance(30_000)
  const older = JSON.stringify(server.get(`${leases}/tenon`))
  first.cut(true)
  // What b_2 writes from now on never arrives.
  server.fault = ({ method }) =>
    method === 'PATCH' ? { status: 200, headers: {}, body: oneChunk(older) } : undefined
  await clock.advance(60_000)
  assert.deepEqual([history, second.elector.isLeader], [['a_1 started', 'a_1 stopped'], false])
  server.fault = () => undefined
  await clock.advance(3_000)
  assert.deepEqual([history.at(-1), spec().holderIdentity], ['b_2 started', 'b_2'])
  const own = JSON.stringify(server.get(`${leases}/tenon`))
  server.fault = ({ method }) =>
    method === 'PATCH' ? { status: 200, headers: {}, body: oneChunk(own) } : undefined
  await clock.advance(13_000)
  assert.deepEqual([history.at(-1), second.elector.isLeader], ['b_2 stopped', false])
  await second.elector.stop()
})

test('RPB-10 a renewal that comes late is told with how late it was, and a lost lease once', async () => {
  const { server, clock, history } = world()
  const lines: string[] = []
  let delayMs = 0
  const candidateOf = (identity: string) =>
    createLeaderElector({
      client: createKubeClient({
        clock,
        transport: {
          send: async (request, signal) => {
            await clock.sleep(request.method === 'PATCH' ? delayMs : 0, signal)
            return await server.send(request, signal)
          },
        },
      }),
      clock,
      random: new SeededRandom(identity),
      logger: new JsonLogger(clock, (line) => lines.push(line), { value: 'info' }),
      identity,
      namespace: 'kube-system',
      name: 'tenon',
      onStarted: () => history.push(`${identity} started`),
      onStopped: () => history.push(`${identity} stopped`),
    })
  const elector = candidateOf('a')
  elector.start()
  await clock.advance(10_000)
  lines.length = 0
  delayMs = 4_500
  await clock.advance(8_000)
  delayMs = 0
  await clock.advance(10_000)
  assert.ok(elector.isLeader)
  assert.ok(lines.length >= 1 && lines.length <= 2, lines.join(''))
  assert.match(lines[0] ?? '', /"level":"WARN".*the lease was renewed late.*"late":"4.5s"/)
  lines.length = 0
  delayMs = 60_000
  await clock.advance(60_000)
  assert.ok(!elector.isLeader)
  assert.equal(lines.filter((line) => line.includes('"ERROR"')).length, 1, lines.join(''))
  delayMs = 0
  const stopped = elector.stop()
  await clock.advance(1)
  await stopped
  const stoppedAt = clock.now()
  const next = candidateOf('b')
  next.start()
  await clock.advanceUntil(() => next.isLeader, 15_000)
  assert.ok(next.isLeader && clock.now() - stoppedAt <= 1_000, 'it was given back')
})

test('RPB-10 a lease that another has taken is not given back by who lost it', async () => {
  const { server, clock, spec, candidate } = world()
  const { elector } = candidate('a_1')
  elector.start()
  await clock.advance(1000)
  server.put(leases, 'tenon', { spec: { holderIdentity: 'thief', leaseDurationSeconds: 15 } })
  await clock.advance(5_000)
  assert.ok(!elector.isLeader)
  await elector.stop()
  assert.equal(spec().holderIdentity, 'thief')
})
