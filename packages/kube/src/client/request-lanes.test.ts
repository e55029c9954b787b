import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { VirtualClock } from '@tenon/runtime'
import type { Lane } from '../contract.ts'
import { type Answer, json, ScriptedTransport } from '../testing/scripted-transport.test-support.ts'
import { createKubeClient, type WatchingKubeClient } from './client.ts'

/** What was asked for, whatever that was. */
const answered: Answer = (request, signal) => {
  const [path = '', query] = request.path.split('?')
  const [name = '', parent = '', grandparent = ''] = path.split('/').toReversed()
  const own =
    request.method === 'POST' ? (JSON.parse(request.body as string) as { metadata: object }) : undefined
  const isList = request.method === 'GET' && query !== undefined
  const namespace = path.includes('/namespaces/') ? (isList || own ? parent : grandparent) : undefined
  return json(
    200,
    name === 'eviction'
      ? { kind: 'Status', status: 'Success' }
      : {
          metadata: { name, ...(namespace && { namespace }), ...own?.metadata, resourceVersion: '1' },
          ...(isList && { items: [] }),
        },
  )(request, signal)
}

interface World {
  readonly clock: VirtualClock
  readonly transport: ScriptedTransport
  readonly client: WatchingKubeClient
  /** Names of the objects asked for so far, in order. */
  readonly sent: () => string[]
  readonly ask: (name: string, lane?: Lane, signal?: AbortSignal) => Promise<unknown>
}

function world(
  rate: { perSecond: number; burst: number },
  transport = new ScriptedTransport(answered),
): World {
  const clock = new VirtualClock()
  const client = createKubeClient({ transport, clock, rate })
  return {
    clock,
    transport,
    client,
    sent: () => transport.requests.map(({ path }) => path.slice(path.lastIndexOf('/') + 1)),
    ask: (name, lane, signal) =>
      client.patch(
        kinds.node,
        { name },
        { spec: {} },
        { ...(lane !== undefined && { lane }), ...(signal !== undefined && { signal }) },
      ),
  }
}

function rows(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`)
}

test('an urgent write overtakes hundreds of bulk writes and waits for one token only', async () => {
  const { clock, sent, ask } = world({ perSecond: 100, burst: 10 })
  const bulk = rows('bulk', 500).map((name) => ask(name))
  await clock.advance(0)
  assert.equal(sent().length, 10)
  const urgent = ask('urgent', 'urgent')
  await clock.advance(10)
  await urgent
  assert.deepEqual(sent().slice(10), ['urgent'])
  await clock.advance(5_000)
  await Promise.all(bulk)
  assert.deepEqual(
    sent().filter((name) => name !== 'urgent'),
    rows('bulk', 500),
  )
})

test('a flood of urgent writes leaves every fifth token to the others, and each lane keeps its order', async () => {
  const { clock, sent, ask } = world({ perSecond: 1, burst: 1 })
  const all = [
    ...rows('u', 40).map((name) => ask(name, 'urgent')),
    ...rows('n', 10).map((name) => ask(name, 'normal')),
  ]
  await clock.advance(24_000)
  const first = sent().slice(0, 25)
  assert.deepEqual(
    first.filter((name) => name.startsWith('n')),
    rows('n', 5),
  )
  assert.deepEqual(
    first.filter((name) => name.startsWith('u')),
    rows('u', 20),
  )
  await clock.advance(60_000)
  await Promise.all(all)
})

test('what is to be sent together does not wait for tokens, and what follows pays them back', async () => {
  const { clock, sent, ask } = world({ perSecond: 100, burst: 10 })
  const bulk = rows('bulk', 30).map((name) => ask(name))
  const urgent = rows('urgent', 3).map((name) => ask(name, 'urgent'))
  await clock.advance(0)
  assert.equal(sent().length, 10)
  const together = rows('together', 10).map((name) => ask(name, 'together'))
  await clock.advance(0)
  await Promise.all(together)
  assert.deepEqual(sent().slice(10), rows('together', 10))
  await clock.advance(100)
  assert.equal(sent().length, 20, 'ten are owed')
  await clock.advance(30)
  await Promise.all(urgent)
  assert.deepEqual(sent().slice(20), rows('urgent', 3))
  await clock.advance(200)
  await Promise.all(bulk)
})

test('no more than a burst is sent on credit, and the rest goes ahead of everything urgent', async () => {
  const { clock, sent, ask } = world({ perSecond: 100, burst: 2 })
  const others = rows('urgent', 5).map((name) => ask(name, 'urgent'))
  const together = rows('together', 4).map((name) => ask(name, 'together'))
  await clock.advance(0)
  assert.deepEqual(sent(), ['urgent0', 'urgent1', 'together0', 'together1'])
  await clock.advance(50)
  await Promise.all(together)
  assert.deepEqual(sent().slice(4), ['together2', 'together3', 'urgent2'])
  await clock.advance(1_000)
  await Promise.all(others)
})

test('reads, creations, deletions, evictions and watches wait in the lane they name', async () => {
  const { clock, transport, client, ask } = world({ perSecond: 1, burst: 1 })
  void ask('first')
  const bulk = ask('bulk')
  const key = { namespace: 'n', name: 'p' }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: key, spec: { containers: [] } }
  const urgent = { lane: 'urgent' } as const
  const all = Promise.all([
    client.get(kinds.pod, key, urgent),
    client.list(kinds.pod, urgent),
    client.create(kinds.pod, pod, urgent),
    client.delete(kinds.pod, key, urgent),
    client.evict(key, 'uid', urgent),
    client.watch(kinds.pod, { resourceVersion: '1', timeoutSeconds: 10, ...urgent }),
  ])
  await clock.advance(7_000)
  await Promise.all([all, bulk])
  const asked = transport.requests.map(({ method, path }) => `${method} ${path.replace(/\?.*/, '')}`)
  assert.equal(asked.indexOf('PATCH /api/v1/nodes/bulk'), 5)
  assert.equal(asked.length, 8)
})

test('a request that is given up while it waits leaves the line and costs no token', async () => {
  const { clock, sent, ask } = world({ perSecond: 1, burst: 1 })
  const abort = new AbortController()
  await ask('first')
  const given = ask('given-up', 'normal', abort.signal)
  const next = ask('next')
  abort.abort(new Error('enough'))
  await assert.rejects(given, /enough/)
  await clock.advance(1_000)
  await next
  assert.deepEqual(sent(), ['first', 'next'])
})

test('against a server that does not answer, normal requests are bounded and urgent ones are still sent', async () => {
  const release: (() => void)[] = []
  const slow = new ScriptedTransport(async (request, signal) => {
    await new Promise<void>((resolve) => release.push(resolve))
    return answered(request, signal)
  })
  const { clock, sent, ask } = world({ perSecond: 1000, burst: 1000 }, slow)
  const bulk = rows('bulk', 100).map((name) => ask(name))
  await clock.advance(1_000)
  assert.equal(sent().length, 64)
  const urgent = ask('urgent', 'urgent')
  await clock.advance(0)
  assert.equal(sent().at(-1), 'urgent')
  release[0]?.()
  await clock.advance(1)
  assert.equal(sent().at(-1), 'bulk64')
  for (let done = 1; done < release.length; done++) {
    release[done]?.()
    await clock.advance(1)
  }
  await Promise.all([...bulk, urgent])
  assert.equal(sent().length, 101)
})

test('a burst of nothing still lets one request after the other pass', async () => {
  const { clock, ask } = world({ perSecond: 10, burst: 0 })
  const both = Promise.all([ask('a'), ask('b')])
  await clock.advance(1_000)
  await both
})
