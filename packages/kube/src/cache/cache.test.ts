import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Pod } from '@tenon/api'
import {
  type HttpResponse,
  oneChunk,
  type LogFields,
  type Logger,
  SeededRandom,
  silentLogger,
  VirtualClock,
} from '@tenon/runtime'
import { createKubeClient } from '../client/client.ts'
import type { Change } from '../contract.ts'
import { MemoryServer } from '../testing/memory-server.test-support.ts'
import { refusal } from '../testing/scripted-transport.test-support.ts'
import { createCache, type CacheOptions, type FollowingCache } from './cache.ts'
import { createCacheRegistry, waitForSync } from './registry.ts'

const pods = '/api/v1/namespaces/n/pods'

interface World {
  readonly server: MemoryServer
  readonly clock: VirtualClock
  readonly cache: FollowingCache<Pod>
  readonly changes: string[]
  readonly stop: AbortController
}

function textOf(change: Change<Pod>): string {
  const version = (pod: Pod) => pod.metadata.resourceVersion ?? ''
  const old = change.kind === 'updated' ? `${version(change.old)}->` : ''
  return `${change.kind} ${change.object.metadata.name} ${old}${version(change.object)}`
}

function world(options: Partial<CacheOptions<Pod>> = {}, server = new MemoryServer()): World {
  const clock = new VirtualClock()
  const client = createKubeClient({ transport: server, clock, pageLimit: 3 })
  const cache = createCache(client, kinds.pod, {
    clock,
    logger: silentLogger,
    random: new SeededRandom(1),
    useStreamedList: false,
    ...options,
  })
  const changes: string[] = []
  cache.onChange((change) => changes.push(textOf(change)))
  return { server, clock, cache, changes, stop: new AbortController() }
}

/** Ten pods to which nothing happens: what goes beside them is not much of all. */
function withBystanders(made: World): World {
  for (let i = 0; i < 10; i++) made.server.put(pods, `bystander-${i}`)
  return made
}

async function started(made: World): Promise<World> {
  const { cache, server, clock, stop } = made
  cache.start(stop.signal)
  await clock.advanceUntil(() => cache.isSynced && server.openWatches > 0, 60_000)
  assert.ok(cache.isSynced)
  return made
}

for (const useStreamedList of [false, true]) {
  const how = useStreamedList ? 'a streamed' : 'a paged'
  test(`${how} list is followed by every later change`, async () => {
    const made = world({ useStreamedList })
    for (let i = 1; i <= 5; i++) made.server.put(pods, `p${i}`)
    const { server, clock, cache, changes, stop } = await started(made)
    assert.equal(cache.size, 5)
    assert.equal(cache.get({ namespace: 'n', name: 'p1' })?.kind, 'Pod')
    changes.length = 0
    server.put(pods, 'p1', { spec: { nodeName: 'x' } })
    server.remove(pods, 'p2')
    server.put(pods, 'p6')
    await clock.advance(0)
    assert.deepEqual(changes, ['updated p1 101->106', 'deleted p2 107', 'added p6 108'])
    assert.equal(cache.lastSyncResourceVersion, '108')
    assert.equal(server.requests.filter(({ path }) => path.includes('watch')).length, 1)
    stop.abort()
    await clock.advance(0)
    assert.equal(server.openWatches, 0)
  })
}

test('a server that refuses streamed lists is asked for an ordinary one', async () => {
  const made = world({ useStreamedList: true })
  made.server.allowsStreamedLists = false
  made.server.put(pods, 'p1')
  const { server, cache } = await started(made)
  assert.equal(cache.size, 1)
  assert.deepEqual(
    server.requests.map(({ path }) => path.replace(/timeoutSeconds=\d+/, 't')),
    [
      '/api/v1/pods?watch=true&allowWatchBookmarks=true&t&sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
      '/api/v1/pods?limit=3',
      '/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=101&t',
    ],
  )
})

test('a streamed list without an end is given up for an ordinary one', async () => {
  const made = world({ useStreamedList: true })
  made.server.put(pods, 'p1')
  made.server.fault = (request) =>
    request.path.includes('sendInitialEvents')
      ? {
          status: 200,
          headers: {},
          body: endless(`${JSON.stringify({ type: 'ADDED', object: made.server.get(`${pods}/p1`) })}\n`),
        }
      : undefined
  const { cache, changes } = await started(made)
  assert.equal(cache.size, 1)
  assert.deepEqual(changes, ['added p1 101'])
})

async function* endless(first: string): AsyncGenerator<string> {
  yield first
  await new Promise(() => undefined)
}

for (const how of ['end', 'break'] as const) {
  test(`after a watch that was dropped (${how}) it goes on where it was`, async () => {
    const { server, clock, cache, changes } = await started(withBystanders(world()))
    changes.length = 0
    server.put(pods, 'p1')
    await clock.advance(0)
    server.dropWatches(how)
    server.put(pods, 'p1')
    server.put(pods, 'p2')
    server.remove(pods, 'p2')
    await clock.advance(30_000)
    assert.deepEqual(changes, ['added p1 111', 'updated p1 111->112', 'added p2 113', 'deleted p2 114'])
    assert.equal(cache.size, 11)
    assert.equal(server.requests.filter(({ path }) => path.includes('limit=')).length, 4)
  })
}

test('a stalled watch is replaced when nothing was heard for too long', async () => {
  const { server, clock, changes } = await started(world())
  server.stallWatches()
  server.put(pods, 'p1')
  // A server may skip a bookmark: the next one comes after two minutes.
  await clock.advance(149_000)
  assert.deepEqual(changes, [])
  await clock.advance(10_000)
  assert.deepEqual(changes, ['added p1 101'])
})

test('bookmarks keep a quiet watch alive and move the point of resumption', async () => {
  const { server, clock, cache } = await started(world())
  for (let minute = 0; minute < 4; minute++) {
    server.put('/api/v1/nodes', `n${minute}`)
    server.bookmark()
    await clock.advance(60_000)
  }
  assert.equal(cache.lastSyncResourceVersion, '104')
  assert.equal(server.requests.filter(({ path }) => path.includes('watch')).length, 1)
  server.compact()
  server.dropWatches('end')
  await clock.advance(30_000)
  assert.equal(server.requests.filter(({ path }) => path.includes('limit=')).length, 1)
})

for (const how of ['answer', 'event'] as const) {
  test(`410 as an ${how} leads to a new list with the exact differences`, async () => {
    const made = withBystanders(world())
    for (const name of ['stays', 'changes', 'goes', 'recreated']) made.server.put(pods, name)
    const { server, clock, cache, changes } = await started(made)
    changes.length = 0
    server.stallWatches()
    server.put(pods, 'changes')
    server.remove(pods, 'goes')
    server.remove(pods, 'recreated')
    server.put(pods, 'recreated')
    server.put(pods, 'new')
    server.compact()
    if (how === 'event') {
      server.fault = (request) => {
        if (!request.path.includes('resourceVersion=114')) return undefined
        const line = JSON.stringify({ type: 'ERROR', object: refusal(410, 'Expired') })
        return { status: 200, headers: {}, body: oneChunk(`${line}\n`) }
      }
    }
    server.dropWatches('end')
    await clock.advance(30_000)
    assert.deepEqual(changes, [
      'deleted goes 113',
      'updated changes 112->115',
      'deleted recreated 114',
      'added recreated 118',
      'added new 119',
    ])
    assert.equal(cache.size, 14)
  })
}

test('garbage on the line breaks the watch, and nothing is lost', async () => {
  for (const line of [
    'garbage\n',
    '{"type":"ADDED"}\n',
    'null\n',
    '{"type":"WHAT","object":{"metadata":{}}}\n',
  ]) {
    const { server, clock, changes } = await started(world())
    server.inject(line)
    server.put(pods, 'p1')
    await clock.advance(30_000)
    assert.deepEqual(changes, ['added p1 101'], line)
  }
})

test('repeated and older events change nothing', async () => {
  const { server, clock, cache, changes } = await started(world())
  const first = server.put(pods, 'p1')
  server.put(pods, 'p1')
  server.inject(`${JSON.stringify({ type: 'MODIFIED', object: server.get(`${pods}/p1`) })}\n`)
  server.inject(`${JSON.stringify({ type: 'MODIFIED', object: first })}\n`)
  server.inject(`${JSON.stringify({ type: 'DELETED', object: first })}\n`)
  await clock.advance(0)
  assert.deepEqual(changes, ['added p1 101', 'updated p1 101->102'])
  assert.equal(cache.lastSyncResourceVersion, '102')
})

test('errors are waited out with growing pauses, and Retry-After is kept to', async () => {
  const made = world()
  made.server.put(pods, 'p1')
  const at: number[] = []
  made.server.fault = () => {
    at.push(made.clock.monotonic())
    return at.length <= 5 ? 'break' : undefined
  }
  await started(made)
  const pauses = at.slice(1, 6).map((time, index) => time - (at[index] as number))
  for (const [index, pause] of pauses.entries()) {
    const step = 800 * 2 ** index
    assert.ok(pause >= step / 2 && pause <= step, `${pause} of ${step}`)
  }
  assert.equal(made.cache.size, 1)
})

test('a server that ends every watch at once is not asked in a tight loop', async () => {
  const { server, clock } = await started(world())
  server.fault = (request) =>
    request.path.includes('watch') ? { status: 200, headers: {}, body: oneChunk('') } : undefined
  server.dropWatches('end')
  const before = server.requests.length
  await clock.advance(60_000)
  assert.ok(server.requests.length - before < 10, `${server.requests.length - before} requests`)
})

test('a new listener learns what is there; a removed one hears nothing more', async () => {
  const made = world()
  made.server.put(pods, 'p1')
  const { server, clock, cache } = await started(made)
  const heard: string[] = []
  const leave = cache.onChange((change) => heard.push(textOf(change)))
  assert.deepEqual(heard, ['added p1 101'])
  server.put(pods, 'p2')
  await clock.advance(0)
  leave()
  server.put(pods, 'p3')
  await clock.advance(0)
  assert.deepEqual(heard, ['added p1 101', 'added p2 102'])
})

test('a listener that joins during a change hears each object once', async () => {
  const { server, clock, cache } = await started(world())
  const heard: string[] = []
  let hasJoined = false
  cache.onChange(() => {
    if (hasJoined) return
    hasJoined = true
    cache.onChange((change) => heard.push(textOf(change)))
  })
  server.put(pods, 'p1')
  await clock.advance(0)
  assert.deepEqual(heard, ['added p1 101'])
})

test('a bug in a listener is logged and stops nobody else', async () => {
  const logged: (LogFields | undefined)[] = []
  const logger: Logger = {
    ...silentLogger,
    error: (_message, fields) => logged.push(fields),
    with: () => logger,
  }
  const { server, clock, cache } = await started(world({ logger }))
  const heard: string[] = []
  cache.onChange(() => {
    throw new TypeError('oops')
  })
  cache.onChange((change) => heard.push(textOf(change)))
  server.put(pods, 'p1')
  server.put(pods, 'p2')
  await clock.advance(0)
  assert.deepEqual(heard, ['added p1 101', 'added p2 102'])
  assert.equal(logged.length, 2)
})

test('indexes follow changes, and objects are trimmed before they are kept', async () => {
  const made = world({
    transform: (pod) => ({ ...pod, metadata: { ...pod.metadata, managedFields: [] } }),
  })
  made.cache.addIndex('node', (pod) => (pod.spec.nodeName === undefined ? [] : [pod.spec.nodeName]))
  made.server.put(pods, 'p1', { spec: { nodeName: 'a' }, metadata: { managedFields: [{}] } })
  const { server, clock, cache } = await started(made)
  assert.deepEqual(cache.get({ namespace: 'n', name: 'p1' })?.metadata.managedFields, [])
  const names = (node: string) => cache.byIndex('node', node).map((pod) => pod.metadata.name)
  assert.deepEqual(names('a'), ['p1'])
  server.put(pods, 'p1', { spec: { nodeName: 'b' } })
  await clock.advance(0)
  assert.deepEqual([names('a'), names('b')], [[], ['p1']])
  cache.addIndex('name', (pod) => [pod.metadata.name])
  assert.equal(cache.byIndex('name', 'p1').length, 1)
  server.remove(pods, 'p1')
  await clock.advance(0)
  assert.deepEqual([names('b'), cache.byIndex('name', 'p1')], [[], []])
  assert.throws(() => cache.byIndex('unknown', 'x'), /no index unknown/)
})

test('an object that changes stands in its indexes as it is now, trimmed with its earlier state at hand', async () => {
  const received: (string | undefined)[] = []
  const made = world({
    transform: (pod, held) => {
      received.push(held?.metadata.resourceVersion)
      return held === undefined ? pod : { ...pod, spec: held.spec }
    },
  })
  made.cache.addIndex('node', (pod) => [pod.spec.nodeName ?? ''])
  made.server.put(pods, 'p1', { spec: { nodeName: 'a' } })
  const { server, clock, cache } = await started(made)
  const before = cache.get({ namespace: 'n', name: 'p1' })
  server.put(pods, 'p1', { spec: { nodeName: 'a' }, status: { phase: 'Running' } })
  await clock.advance(0)
  const [now, ...others] = cache.byIndex('node', 'a')
  assert.deepEqual([now?.status?.phase, others.length], ['Running', 0])
  assert.equal(now?.spec, before?.spec)
  server.remove(pods, 'p1')
  server.put(pods, 'p1', { spec: { nodeName: 'a' } })
  await clock.advance(0)
  // The new pod is another one; the end of the old one shows what was held of it.
  assert.deepEqual(
    [received[0], received[1], received.at(-1)],
    [undefined, before?.metadata.resourceVersion, undefined],
  )
})

test('a registry tells how much of a list has arrived', async () => {
  const server = new MemoryServer()
  const clock = new VirtualClock()
  server.put(pods, 'p1')
  server.fault = (request) =>
    request.path.includes('sendInitialEvents') && request.path.includes('pods')
      ? {
          status: 200,
          headers: {},
          body: endless(`${JSON.stringify({ type: 'ADDED', object: server.get(`${pods}/p1`) })}\n`),
        }
      : undefined
  const client = createKubeClient({ transport: server, clock })
  const registry = createCacheRegistry({ client, clock, logger: silentLogger, random: new SeededRandom(1) })
  registry.cache(kinds.pod)
  registry.cache(kinds.node)
  assert.deepEqual(Object.fromEntries(registry.arrivals), { nodes: 0, pods: 0 })
  const stop = new AbortController()
  registry.start(stop.signal)
  await clock.advance(1000)
  assert.deepEqual(Object.fromEntries(registry.arrivals), { pods: 1 })
  stop.abort()
})

test('a registry follows each type once and says what it waits for', async () => {
  const server = new MemoryServer()
  const clock = new VirtualClock()
  const client = createKubeClient({ transport: server, clock })
  const registry = createCacheRegistry({ client, clock, logger: silentLogger, random: new SeededRandom(1) })
  const first = registry.cache(kinds.pod)
  assert.equal(registry.cache(kinds.pod), first)
  registry.cache(kinds.node)
  let isReachable = false
  server.fault = (request) => (isReachable || request.path.includes('pods') ? undefined : 'break')
  const stop = new AbortController()
  registry.start(stop.signal)
  const synced = registry.synced()
  await clock.advance(10_000)
  assert.deepEqual(registry.waitingFor, ['nodes'])
  await assert.rejects(registry.synced(AbortSignal.abort(new Error('too late'))), /too late/)
  isReachable = true
  await clock.advance(60_000)
  await synced
  assert.deepEqual(registry.waitingFor, [])
  await waitForSync([first])
  const later = registry.cache(kinds.lease)
  assert.equal(later.isSynced, false)
  await assert.rejects(later.synced(AbortSignal.abort(new Error('no more'))), /no more/)
  stop.abort()
})

function answerOf(status: number, reason: string): HttpResponse {
  const headers = { 'content-type': 'application/json' }
  return { status, headers, body: oneChunk(JSON.stringify(refusal(status, reason))) }
}

test('what a server does not serve is told once; who can do without it waits for no more than the refusal', async () => {
  const server = new MemoryServer()
  const clock = new VirtualClock()
  const client = createKubeClient({ transport: server, clock })
  const received: string[] = []
  const note = (level: string) => (message: string) => {
    received.push(`${level} ${message}`)
  }
  const logger: Logger = { ...silentLogger, info: note('info'), warn: note('warn'), with: () => logger }
  const registry = createCacheRegistry({ client, clock, logger, random: new SeededRandom(1) })
  const leases = registry.cache(kinds.lease, { isOptional: 'ifRefused' })
  const events = registry.cache(kinds.event, { isOptional: true })
  const needed = registry.cache(kinds.node)
  let refused: 'silent' | 404 | undefined = 'silent'
  server.fault = () => (refused === 'silent' ? 'break' : refused && answerOf(refused, 'NotFound'))
  const stop = new AbortController()
  registry.start(stop.signal)
  await clock.advance(1000)
  assert.deepEqual(registry.waitingFor, ['leases', 'nodes'])
  assert.deepEqual([leases.isRefused, events.isRefused], [false, false])
  received.length = 0
  refused = 404
  await clock.advance(200_000)
  assert.deepEqual(registry.waitingFor, ['nodes'])
  assert.deepEqual([leases.isRefused, events.isRefused, needed.isRefused], [true, true, true])
  assert.equal(
    received.filter((line) => line === 'info not read: the API server does not serve it').length,
    2,
  )
  assert.ok(received.filter((line) => line === 'warn watching failed, will retry').length > 3)
  received.length = 0
  refused = undefined
  await clock.advance(60_000)
  await registry.synced()
  assert.deepEqual([leases.isSynced, leases.isRefused], [true, false])
  assert.deepEqual(received, [])
  stop.abort()
})

test('a right that is missing is told once, and nobody who can do without waits for it', async () => {
  const server = new MemoryServer()
  const clock = new VirtualClock()
  const client = createKubeClient({ transport: server, clock })
  const received: string[] = []
  const warn = (message: string) => {
    received.push(message)
  }
  const logger: Logger = { ...silentLogger, warn, with: () => logger }
  const registry = createCacheRegistry({ client, clock, logger, random: new SeededRandom(1) })
  const leases = registry.cache(kinds.lease, { isOptional: 'ifRefused' })
  server.fault = () => answerOf(403, 'Forbidden')
  const stop = new AbortController()
  registry.start(stop.signal)
  const synced = registry.synced()
  await clock.advance(100_000)
  await synced
  assert.deepEqual([leases.isSynced, leases.isRefused], [false, true])
  assert.deepEqual(received, ['not read: grant the right to list and watch it'])
  stop.abort()
})

test('BUF-91 who waits for claims that have not arrived ends when that is cancelled', async () => {
  const server = new MemoryServer()
  const clock = new VirtualClock()
  const client = createKubeClient({ transport: server, clock })
  const registry = createCacheRegistry({ client, clock, logger: silentLogger, random: new SeededRandom(1) })
  registry.cache(kinds.resourceClaim, { isOptional: 'ifRefused' })
  server.fault = () => 'break'
  const stop = new AbortController()
  registry.start(stop.signal)
  const given = new AbortController()
  const waiting = registry.synced(given.signal)
  await clock.advance(10_000)
  assert.deepEqual(registry.waitingFor, ['resourceclaims'])
  given.abort(new Error('no longer wanted'))
  await assert.rejects(waiting, /no longer wanted/)
  stop.abort()
})
