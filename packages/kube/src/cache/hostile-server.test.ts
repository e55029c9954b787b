/** Caches in front of servers that lag, hang, refuse, forget or only half know how to stream a list. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Pod } from '@tenon/api'
import {
  type HttpRequest,
  type HttpResponse,
  oneChunk,
  SeededRandom,
  silentLogger,
  type Transport,
  VirtualClock,
} from '@tenon/runtime'
import { createKubeClient, type WatchingKubeClient } from '../client/client.ts'
import { ByteStream } from '../testing/byte-stream.test-support.ts'
import { MemoryServer } from '../testing/memory-server.test-support.ts'
import { refusal } from '../testing/scripted-transport.test-support.ts'
import { createCache, type CacheOptions, type FollowingCache } from './cache.ts'

const pods = '/api/v1/namespaces/n/pods'

interface World {
  readonly server: MemoryServer
  readonly clock: VirtualClock
  readonly client: WatchingKubeClient
  readonly cache: FollowingCache<Pod>
  /** `kind name` of every change. */
  readonly changes: string[]
  /** Starts to follow; answers whether the first list arrived within `ms`. */
  readonly follow: (ms: number) => Promise<boolean>
}

interface Wishes extends Partial<CacheOptions<Pod>> {
  readonly transport?: Transport
  readonly rate?: { readonly perSecond: number; readonly burst: number }
}

function world({ transport, rate, ...options }: Wishes = {}): World {
  const clock = new VirtualClock()
  const server = new MemoryServer()
  const client = createKubeClient({
    transport: transport ?? server,
    clock,
    pageLimit: 2,
    ...(rate !== undefined && { rate }),
  })
  const cache = createCache(client, kinds.pod, {
    clock,
    logger: silentLogger,
    random: new SeededRandom(1),
    ...options,
  })
  const changes: string[] = []
  cache.onChange(({ kind, object }) => changes.push(`${kind} ${object.metadata.name}`))
  const follow = (ms: number) => {
    cache.start(new AbortController().signal)
    return clock.advanceUntil(() => cache.isSynced, ms)
  }
  return { server, clock, client, cache, changes, follow }
}

function answer(status: number, body: object, headers: Record<string, string> = {}): HttpResponse {
  return { status, headers, body: oneChunk(JSON.stringify(body)) }
}

const isStreamed = ({ path }: HttpRequest) => path.includes('sendInitialEvents')
const isWatch = ({ path }: HttpRequest) => path.includes('watch=true')
const lists = ({ requests }: MemoryServer) =>
  requests.filter((request) => !isWatch(request) && !/\/pods\/./.test(request.path)).length
const nameOf = (pod: Pod) => pod.metadata.name

test('a server that streams changes for ever instead of ending the list is asked for pages', async () => {
  const { server, clock, cache, follow } = world()
  const object = server.put(pods, 'p1')
  server.fault = (request) => {
    if (!isStreamed(request)) return undefined
    const body = new ByteStream()
    const tell = () => {
      body.write(`${JSON.stringify({ type: 'MODIFIED', object })}\n`)
      clock.after(5_000, tell)
    }
    tell()
    return { status: 200, headers: {}, body }
  }
  assert.ok(await follow(130_000))
  assert.deepEqual(cache.list().map(nameOf), ['p1'])
})

test('a server that never answers the request for a stream is asked for pages', async () => {
  const { server, follow } = world()
  server.put(pods, 'p1')
  server.fault = (request) => (isStreamed(request) ? 'silence' : undefined)
  assert.ok(await follow(100_000))
})

for (const status of [400, 422]) {
  test(`a streamed list refused with ${status} is replaced by pages at once`, async () => {
    const { server, follow } = world()
    server.put(pods, 'p1')
    server.fault = (request) =>
      isStreamed(request)
        ? answer(status, refusal(status, status === 400 ? 'BadRequest' : 'Invalid'))
        : undefined
    assert.ok(await follow(0))
  })
}

test('a stream that breaks halfway deletes nothing, and the list after it loses no deletion', async () => {
  const { server, clock, cache, changes, follow } = world()
  for (const name of ['a', 'b', 'c']) server.put(pods, name)
  assert.ok(await follow(0))
  changes.length = 0
  server.stallWatches()
  server.remove(pods, 'b')
  server.compact()
  server.fault = (request) => {
    if (!isStreamed(request)) return undefined
    const body = new ByteStream()
    body.write(`${JSON.stringify({ type: 'ADDED', object: server.get(`${pods}/a`) })}\n`)
    body.fail(new Error('connection reset'))
    return { status: 200, headers: {}, body }
  }
  server.dropWatches('break')
  await clock.advance(60_000)
  assert.deepEqual(changes, ['deleted b'])
  assert.deepEqual(cache.list().map(nameOf), ['a', 'c'])
})

test('410 in the middle of a streamed watch leads to a new stream with the exact differences', async () => {
  const { server, clock, changes, follow } = world()
  for (const name of ['a', 'b', 'c', 'd', 'goes']) server.put(pods, name)
  assert.ok(await follow(0))
  changes.length = 0
  server.stallWatches()
  server.remove(pods, 'goes')
  server.put(pods, 'new')
  server.dropWatches('end')
  server.compact()
  await clock.advance(60_000)
  assert.deepEqual(changes, ['deleted goes', 'added new'])
  assert.equal(lists(server), 0)
})

test('a list that loses its snapshot again and again still ends', async () => {
  const { server, cache, follow } = world({ useStreamedList: false })
  for (let i = 0; i < 7; i++) server.put(pods, `p${i}`)
  let refused = 0
  server.fault = (request) => {
    if (request.path.includes('continue')) server.compact()
    // The list in one piece, too, is refused at first.
    return request.path === '/api/v1/pods' && refused++ < 2 ? answer(410, refusal(410, 'Expired')) : undefined
  }
  assert.ok(await follow(60_000))
  assert.equal(cache.size, 7)
})

test('objects are trimmed as each page arrives, and what is known is not trimmed again', async () => {
  const trimmed: string[] = []
  const made = world({
    useStreamedList: false,
    transform: (pod) => {
      trimmed.push(`${pod.metadata.name} after ${made.server.requests.length}`)
      return pod
    },
  })
  const { server, clock, follow } = made
  for (let i = 0; i < 5; i++) server.put(pods, `p${i}`)
  assert.ok(await follow(0))
  assert.deepEqual(trimmed, ['p0 after 1', 'p1 after 1', 'p2 after 2', 'p3 after 2', 'p4 after 3'])
  trimmed.length = 0
  server.stallWatches()
  server.put(pods, 'p1')
  server.compact()
  server.dropWatches('end')
  await clock.advance(60_000)
  assert.deepEqual(
    trimmed.map((line) => line.split(' ')[0]),
    ['p1'],
  )
})

test('a server restored from an older state is listed anew, and later changes are seen', async () => {
  const before = new MemoryServer()
  const restored = new MemoryServer()
  let current = before
  const { clock, cache, changes, follow } = world({
    useStreamedList: false,
    transport: { send: (request, signal) => current.send(request, signal) },
  })
  for (const name of ['a', 'b', 'c', 'd']) before.put(pods, name)
  assert.ok(await follow(0))
  changes.length = 0
  restored.put(pods, 'a')
  restored.fault = (request) => {
    const version = Number(/resourceVersion=(\d+)/.exec(request.path)?.[1] ?? 0)
    if (version <= restored.version) return undefined
    const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }]
    return answer(504, refusal(504, 'Timeout', { details: { causes, retryAfterSeconds: 1 } }))
  }
  current = restored
  before.dropWatches('break')
  await clock.advance(60_000)
  restored.put(pods, 'e')
  await clock.advance(0)
  assert.deepEqual(cache.list().map(nameOf), ['a', 'e'])
  assert.deepEqual(changes, ['deleted b', 'deleted c', 'deleted d', 'added e'])
})

test('a server that only lags behind is given time to catch up, without a new list', async () => {
  const { server, clock, changes, follow } = world({ useStreamedList: false })
  server.put(pods, 'p1')
  assert.ok(await follow(0))
  const before = lists(server)
  let refused = 0
  server.fault = (request) => {
    if (!isWatch(request) || refused++ >= 2) return undefined
    const causes = [{ reason: 'ResourceVersionTooLarge' }]
    return answer(504, refusal(504, 'Timeout', { details: { causes } }))
  }
  server.dropWatches('break')
  server.put(pods, 'p2')
  await clock.advance(60_000)
  assert.deepEqual(changes, ['added p1', 'added p2'])
  assert.equal(lists(server), before)
})

test('a watch that is told to come back later does so, and is not taken for a stalled one', async () => {
  const { server, clock, changes, follow } = world({ stallMs: 60_000 })
  assert.ok(await follow(0))
  const at: number[] = []
  server.fault = (request) => {
    if (!isWatch(request)) return undefined
    at.push(clock.monotonic())
    return at.length <= 3 ? answer(429, refusal(429, 'TooManyRequests'), { 'retry-after': '50' }) : undefined
  }
  server.dropWatches('end')
  server.put(pods, 'p1')
  await clock.advance(200_000)
  assert.deepEqual(changes, ['added p1'])
  assert.deepEqual(
    at.slice(1, 4).map((time, index) => time - (at[index] as number)),
    [50_000, 50_000, 50_000],
  )
})

for (const useStreamedList of [true, false])
  test(`VER-60 a first ${useStreamedList ? 'stream' : 'list'} that is told to come back later does so, and nothing is synced until then`, async () => {
    const { server, clock, cache, follow } = world({ useStreamedList })
    server.put(pods, 'p1')
    const at: number[] = []
    server.fault = () => {
      at.push(clock.monotonic())
      return at.length <= 3
        ? answer(429, refusal(429, 'TooManyRequests'), { 'retry-after': '50' })
        : undefined
    }
    assert.equal(await follow(149_000), false)
    assert.equal(at.length, 3)
    await clock.advance(2_000)
    assert.equal(cache.isSynced, true)
    assert.deepEqual(
      at.slice(1, 4).map((time, index) => time - (at[index] as number)),
      [50_000, 50_000, 50_000],
    )
    assert.deepEqual(cache.list().map(nameOf), ['p1'])
  })

test('a Retry-After of a day does not blind the cache for a day', async () => {
  const { server, clock, changes, follow } = world()
  assert.ok(await follow(0))
  let refused = 0
  server.fault = (request) =>
    isWatch(request) && refused++ === 0
      ? answer(503, refusal(503, 'ServiceUnavailable'), { 'retry-after': '86400' })
      : undefined
  server.dropWatches('end')
  server.put(pods, 'p1')
  await clock.advance(301_000)
  assert.deepEqual(changes, ['added p1'])
})

test('a cache does not wait behind a long row of bulk writes', async () => {
  const { server, client, clock, follow } = world({ rate: { perSecond: 10, burst: 1 } })
  server.put('/api/v1/nodes', 'x')
  server.put(pods, 'p1')
  const bulk = Promise.all(
    Array.from({ length: 300 }, () => client.patch(kinds.node, { name: 'x' }, { spec: {} })),
  )
  assert.ok(await follow(1_000))
  await clock.advance(60_000)
  await bulk
})
