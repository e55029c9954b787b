/** Lists and watches that tell what is not so, and how a cache gets its right content back (reports-2.md 2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Pod } from '@tenon/api'
import {
  type HttpRequest,
  type HttpResponse,
  oneChunk,
  SeededRandom,
  silentLogger,
  VirtualClock,
} from '@tenon/runtime'
import { createKubeClient } from '../client/client.ts'
import { ByteStream } from '../testing/byte-stream.test-support.ts'
import { MemoryServer } from '../testing/memory-server.test-support.ts'
import { refusal } from '../testing/scripted-transport.test-support.ts'
import { createCache, type CacheOptions, type FollowingCache } from './cache.ts'

const pods = '/api/v1/namespaces/n/pods'
const minute = 60_000

interface World {
  readonly server: MemoryServer
  readonly clock: VirtualClock
  readonly cache: FollowingCache<Pod>
  /** `kind name` of every change since the start. */
  readonly changes: string[]
}

async function followed(count: number, options: Partial<CacheOptions<Pod>> = {}): Promise<World> {
  const made = unfollowed(count, options)
  const { cache, changes, clock, server } = made
  cache.start(new AbortController().signal)
  assert.ok(await clock.advanceUntil(() => cache.isSynced && server.openWatches > 0, minute))
  changes.length = 0
  return made
}

function unfollowed(count: number, options: Partial<CacheOptions<Pod>> = {}): World {
  const clock = new VirtualClock()
  const server = new MemoryServer()
  for (let i = 0; i < count; i++) server.put(pods, `p${i}`, { spec: { nodeName: 'x' } })
  const client = createKubeClient({ transport: server, clock, pageLimit: 50 })
  const cache = createCache(client, kinds.pod, {
    clock,
    logger: silentLogger,
    random: new SeededRandom(1),
    useStreamedList: false,
    ...options,
  })
  const changes: string[] = []
  cache.onChange(({ kind, object }) => changes.push(`${kind} ${object.metadata.name}`))
  return { server, clock, cache, changes }
}

const isWatch = ({ path }: HttpRequest) => path.includes('watch=true')
const isList = (request: HttpRequest) => !isWatch(request) && !/\/pods\/./.test(request.path)
const lists = ({ requests }: MemoryServer) => requests.filter(isList).length
const namesIn = (cache: FollowingCache<Pod>) => cache.list().map(({ metadata }) => metadata.name)

function answer(body: object): HttpResponse {
  return { status: 200, headers: {}, body: oneChunk(JSON.stringify(body)) }
}

function listOf(server: MemoryServer, keeps: (index: number) => boolean, resourceVersion?: string) {
  const metadata = { resourceVersion: resourceVersion ?? String(server.version) }
  const there = server.all().filter(({ metadata: { namespace } }) => namespace === 'n')
  return answer({ kind: 'List', metadata, items: there.filter((_, index) => keeps(index)) })
}

/** The history is gone, so that the collection has to be listed. */
function loseHistory(server: MemoryServer): void {
  server.stallWatches()
  server.put('/api/v1/nodes', 'x')
  server.compact()
  server.dropWatches('end')
}

/** The first `times` lists from here on lack what `keeps` does not keep. */
function lieInLists(server: MemoryServer, times: number, keeps: (index: number) => boolean): void {
  let left = times
  server.fault = (request) =>
    isList(request) && left-- > 0 ? listOf(server, keeps, String(server.version)) : undefined
}

for (const [what, keeps] of [
  ['nothing', () => false],
  ['half of it', (index: number) => index % 2 === 0],
  ['three quarters of it', (index: number) => index % 4 !== 0],
] as const)
  for (const count of [1, 4, 40])
    test(`RPB-42 one list that shows ${what} of ${count} pods takes none away`, async () => {
      const { server, clock, cache, changes } = await followed(count)
      lieInLists(server, 1, keeps)
      loseHistory(server)
      await clock.advance(20_000)
      assert.equal(cache.size, count)
      assert.deepEqual(changes, [])
      server.put(pods, 'later')
      await clock.advance(0)
      assert.deepEqual(changes, ['added later'], 'it is followed all the same')
    })

test('RPB-42 a streamed list that lost much takes nothing away either', async () => {
  const { server, clock, cache, changes } = await followed(10, { useStreamedList: true })
  let lies = 1
  server.fault = (request) => {
    if (!request.path.includes('sendInitialEvents') || lies-- <= 0) return undefined
    const annotations = { 'k8s.io/initial-events-end': 'true' }
    const metadata = { name: '', resourceVersion: String(server.version), annotations }
    return answer({ type: 'BOOKMARK', object: { metadata } })
  }
  loseHistory(server)
  await clock.advance(20_000)
  assert.equal(cache.size, 10)
  assert.deepEqual(changes, [])
})

test('RPB-42 a list that is old, at a high version, takes nothing back', async () => {
  const { server, clock, cache, changes } = await followed(10)
  const old = server.all()
  for (let i = 0; i < 10; i++) server.put(pods, `p${i}`, { spec: { nodeName: 'y' } })
  await clock.advance(0)
  changes.length = 0
  let lies = 1
  server.fault = (request) =>
    !isList(request) || lies-- <= 0
      ? undefined
      : answer({ kind: 'List', metadata: { resourceVersion: String(server.version) }, items: old })
  loseHistory(server)
  await clock.advance(20_000)
  assert.deepEqual(changes, [])
  assert.ok(cache.list().every(({ spec }) => spec.nodeName === 'y'))
})

test('RPB-42 what two lists lack is gone, and what is new in the first is there at once', async () => {
  const { server, clock, cache, changes } = await followed(10)
  for (let i = 0; i < 9; i++) server.put(pods, `new${i}`)
  server.stallWatches()
  for (let i = 0; i < 9; i++) server.remove(pods, `p${i}`)
  await clock.advance(0)
  changes.length = 0
  server.put(pods, 'newest')
  loseHistory(server)
  await clock.advance(900)
  assert.deepEqual(changes, ['added newest'])
  await clock.advance(6_000)
  assert.deepEqual(namesIn(cache).toSorted(), [
    ...Array.from({ length: 9 }, (_, i) => `new${i}`),
    'newest',
    'p9',
  ])
})

for (const [what, keeps] of [
  ['nothing', () => false],
  ['half of it', (index: number) => index % 2 === 0],
] as const)
  test(`RPB-42 every list for an hour shows ${what}, and named reads find the rest: nothing goes`, async () => {
    const { server, clock, cache, changes } = await followed(40)
    lieInLists(server, Number.POSITIVE_INFINITY, keeps)
    loseHistory(server)
    const before = server.requests.length
    await clock.advance(60 * minute)
    assert.deepEqual(changes, [])
    assert.equal(cache.size, 40)
    assert.ok(server.requests.length - before < 900, `${server.requests.length - before} requests`)
    server.fault = () => undefined
    server.remove(pods, 'p0')
    await clock.advance(minute)
    assert.deepEqual(changes, ['deleted p0'])
  })

test('RPB-42 without the right to read objects by name, a second list decides', async () => {
  const { server, clock, cache } = await followed(40)
  server.fault = (request) =>
    isWatch(request) || isList(request)
      ? undefined
      : { status: 403, headers: {}, body: oneChunk(JSON.stringify(refusal(403, 'Forbidden'))) }
  server.stallWatches()
  for (let i = 0; i < 20; i++) server.remove(pods, `p${i}`)
  loseHistory(server)
  await clock.advance(20_000)
  assert.equal(cache.size, 20)
})

test('RPB-1 a watch whose events are 300 s late is not waited for: lists show what it does not', async () => {
  const { server, clock, cache } = await followed(4)
  server.stallWatches()
  server.put(pods, 'new')
  server.fault = (request) =>
    isWatch(request) ? { status: 200, headers: {}, body: new ByteStream() } : undefined
  await clock.advance(6 * minute)
  assert.equal(cache.size, 5)
})

test('RPB-42 lists that contradict each other change nothing, and are asked for with growing pauses', async () => {
  const { server, clock, cache, changes } = await followed(40)
  let turn = 0
  server.fault = (request) => {
    if (!isList(request)) return undefined
    const odd = turn++ % 2
    return listOf(server, (index) => index % 2 === odd)
  }
  loseHistory(server)
  await clock.advance(10 * minute)
  assert.deepEqual(changes, [])
  assert.ok(turn >= 8 && turn <= 25, `${turn} lists`)
  server.fault = () => undefined
  await clock.advance(minute)
  assert.equal(cache.size, 40)
})

for (const [what, keeps] of [
  ['empty', () => false],
  ['half', (index: number) => index % 2 === 0],
] as const)
  test(`RPB-42 a first list that is ${what} is found out within ten minutes`, async () => {
    const { server, clock, cache } = unfollowed(10)
    lieInLists(server, 1, keeps)
    cache.start(new AbortController().signal)
    await clock.advance(10 * minute)
    assert.equal(cache.size, 10)
  })

test('RPB-42 a collection that is followed is listed again every few hours, in pages', async () => {
  const { server, clock, cache } = await followed(120, { useStreamedList: true })
  await clock.advance(10 * minute)
  const before = lists(server)
  await clock.advance(24 * 60 * minute)
  const taken = (lists(server) - before) / 3
  assert.ok(taken >= 3 && taken <= 12, `${taken} lists in a day`)
  assert.equal(cache.size, 120)
})

test('RPB-42 a cache that is told so takes a new list, once for many who say so', async () => {
  const { server, clock, cache, changes } = await followed(10)
  server.stallWatches()
  server.remove(pods, 'p3')
  const before = lists(server)
  for (let i = 0; i < 100; i++) cache.relist('a named GET found something else')
  await clock.advance(6_000)
  assert.deepEqual(changes, ['deleted p3'])
  assert.equal(lists(server) - before, 1)
  const since = lists(server)
  for (let second = 0; second < 600; second++) {
    cache.relist('again')
    await clock.advance(1_000)
  }
  assert.ok(lists(server) - since <= 20, `${lists(server) - since} lists in ten minutes`)
})

test('RPB-42 while lists fail, the watch goes on', async () => {
  const { server, clock, cache, changes } = await followed(10)
  server.fault = (request) =>
    isWatch(request)
      ? undefined
      : { status: 500, headers: {}, body: oneChunk(JSON.stringify(refusal(500, 'InternalError'))) }
  cache.relist('a named GET found something else')
  await clock.advance(5 * minute)
  server.put(pods, 'new')
  await clock.advance(2_000)
  assert.deepEqual(changes, ['added new'])
  server.fault = () => undefined
  await clock.advance(5 * minute)
  assert.equal(cache.size, 11)
})

for (const deleted of [1, 3, 10])
  test(`RPB-42 a watch that tells ${deleted} of 10 live pods deleted is looked into`, async () => {
    const { server, clock, cache, changes } = await followed(10)
    for (const object of server.all().slice(0, deleted))
      server.inject(`${JSON.stringify({ type: 'DELETED', object })}\n`)
    await clock.advance(0)
    assert.ok(cache.size >= 8, 'no more than a fifth is believed')
    await clock.advance(10 * minute)
    assert.equal(cache.size, 10)
    assert.ok(changes.filter((change) => change.startsWith('deleted')).length <= 2)
  })

test('WNT-3 RPB-42 what holds something back is gone once a list agrees, and not before', async () => {
  const { server, clock, cache, changes } = await followed(10, { areLimits: true })
  const [first, second] = server.all()
  server.inject(`${JSON.stringify({ type: 'DELETED', object: first })}\n`)
  await clock.advance(minute)
  assert.equal(cache.size, 10)
  assert.deepEqual(changes, [])
  server.remove(pods, second?.metadata.name ?? '')
  await clock.advance(20_000)
  assert.deepEqual(changes, [`deleted ${second?.metadata.name}`])
})

test('RPB-42 one of 100 live pods told deleted is back within ten minutes, and one list is for many', async () => {
  const { server, clock, cache } = await followed(100)
  // The check of the first list is over.
  await clock.advance(20 * minute)
  const before = lists(server)
  for (const object of server.all().slice(0, 3)) {
    server.inject(`${JSON.stringify({ type: 'DELETED', object })}\n`)
    await clock.advance(minute)
  }
  assert.equal(cache.size, 97, 'daily business')
  await clock.advance(8 * minute)
  assert.equal(cache.size, 100)
  assert.equal(lists(server) - before, 2, 'one list of two pages')
})

test('RPB-42 what is being deleted and is told gone too early is back within seconds', async () => {
  const { server, clock, cache } = await followed(40)
  const deletionTimestamp = '2026-11-28T00:00:00Z'
  for (let i = 0; i < 40; i++)
    server.put(pods, `p${i}`, { metadata: { deletionTimestamp, finalizers: ['x'] }, spec: { nodeName: 'x' } })
  await clock.advance(minute)
  for (const received of [server.all().slice(0, 1), server.all()]) {
    for (const object of received) server.inject(`${JSON.stringify({ type: 'DELETED', object })}\n`)
    await clock.advance(6_000)
    assert.equal(cache.size, 40)
  }
})

test('RPB-42 what has finalizers and is told gone without a deletionTimestamp stays until a read agrees', async () => {
  const { server, clock, cache, changes } = await followed(40)
  for (let i = 0; i < 40; i++) server.put(pods, `p${i}`, { metadata: { finalizers: ['x'] } })
  await clock.advance(minute)
  changes.length = 0
  const [first, second] = server.all()
  server.inject(`${JSON.stringify({ type: 'DELETED', object: first })}\n`)
  server.remove(pods, second?.metadata.name ?? '')
  await clock.advance(6_000)
  assert.deepEqual(changes, [`deleted ${second?.metadata.name}`])
  assert.equal(cache.size, 39)
})

test('RPB-42 of many that are gone, eight are looked for at a time', async () => {
  const { server, clock, cache } = await followed(100)
  await clock.advance(20 * minute)
  const deletionTimestamp = '2026-11-28T00:00:00Z'
  for (let i = 0; i < 50; i++)
    server.put(pods, `p${i}`, { metadata: { deletionTimestamp, finalizers: ['x'] }, spec: { nodeName: 'x' } })
  await clock.advance(1000)
  let reads = 0
  server.fault = ({ path }) => {
    if (!/\/pods\/./.test(path)) return undefined
    reads++
    return 'silence'
  }
  for (let i = 0; i < 50; i++) server.remove(pods, `p${i}`)
  await clock.advance(1000)
  assert.equal(cache.size, 50)
  assert.equal(reads, 8)
})

test('RPB-42 4 of 4 live pods told deleted, one after the other, stay but one', async () => {
  const { server, clock, cache } = await followed(4)
  for (const object of server.all()) {
    server.inject(`${JSON.stringify({ type: 'DELETED', object })}\n`)
    await clock.advance(50)
  }
  assert.equal(cache.size, 3)
  await clock.advance(6_000)
  assert.equal(cache.size, 4)
})

test('RPB-42 5,000 pods that end as pods end are gone at once, without a list', async () => {
  const { server, clock, cache } = await followed(5_000)
  const before = lists(server)
  for (let i = 0; i < 5_000; i++)
    server.put(pods, `p${i}`, {
      metadata: { deletionTimestamp: '2026-11-28T00:00:00Z' },
      spec: { nodeName: 'x' },
    })
  for (let i = 0; i < 5_000; i++) server.remove(pods, `p${i}`)
  await clock.advance(0)
  assert.equal(cache.size, 0)
  await clock.advance(minute)
  assert.equal(lists(server), before)
})

test('RPB-42 pods deleted by force are gone once a list agrees; those that may end so, at once', async () => {
  for (const endsUnannounced of [undefined, ({ spec }: Pod) => spec.nodeName === 'x']) {
    const { server, clock, cache } = await followed(100, endsUnannounced && { endsUnannounced })
    for (let i = 0; i < 100; i++) server.remove(pods, `p${i}`)
    await clock.advance(0)
    assert.equal(cache.size, endsUnannounced === undefined ? 80 : 0)
    await clock.advance(6_000)
    assert.equal(cache.size, 0)
  }
})

for (const status of [400, 403, 404, 406, 409, 422, 429, 500, 503, 504])
  test(`RPB-44 a version that watches refuse with ${status} ends in a fresh list`, async () => {
    const { server, clock, cache } = unfollowed(4)
    let lies = 1
    server.fault = (request) => {
      if (!isWatch(request)) return lies-- > 0 ? listOf(server, () => false, 'abc') : undefined
      return request.path.includes('resourceVersion=abc')
        ? { status, headers: {}, body: oneChunk(JSON.stringify(refusal(status, 'Whatever'))) }
        : undefined
    }
    cache.start(new AbortController().signal)
    await clock.advance(minute)
    assert.equal(cache.size, 4)
    assert.ok(lists(server) <= 3, `${lists(server)} lists`)
  })

test('RPB-44 a version that watches never take leads to lists with growing pauses', async () => {
  const { server, clock, cache } = unfollowed(4)
  server.fault = (request) =>
    isWatch(request)
      ? { status: 400, headers: {}, body: oneChunk(JSON.stringify(refusal(400, 'BadRequest'))) }
      : listOf(server, () => true, 'abc')
  cache.start(new AbortController().signal)
  await clock.advance(10 * minute)
  assert.equal(cache.size, 4)
  assert.ok(lists(server) <= 30, `${lists(server)} lists in ten minutes`)
})

for (const [how, next] of [
  ['the same token again', () => 'again'],
  ['two tokens in turn', (page: number) => `turn-${page % 2}`],
  ['ever new tokens with the first page', (page: number) => `page-${page}`],
] as const)
  test(`RPB-44 pages without end, ${how}, end the list, and the next one is right`, async () => {
    const { server, clock, cache } = unfollowed(4)
    let pages = 0
    const isLying = () => clock.monotonic() < 20_000
    server.fault = (request) => {
      if (isWatch(request) || !isLying()) return undefined
      const metadata = { resourceVersion: '104', continue: next(pages++) }
      return answer({ kind: 'List', metadata, items: server.all().slice(0, 2) })
    }
    cache.start(new AbortController().signal)
    await clock.advance(20_000)
    assert.ok(pages <= 30, `${pages} pages`)
    assert.equal(cache.isSynced, false)
    await clock.advance(minute)
    assert.equal(cache.size, 4)
  })
