/** Random changes under random faults: the cache must end equal to the server, through exact steps. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Pod } from '@tenon/api'
import { oneChunk, integerBetween, SeededRandom, silentLogger, unit, VirtualClock } from '@tenon/runtime'
import { createKubeClient } from '../client/client.ts'
import type { Change } from '../contract.ts'
import { MemoryServer } from '../testing/memory-server.test-support.ts'
import { refusal } from '../testing/scripted-transport.test-support.ts'
import { createCache } from './cache.ts'

/** Fails at the first change that does not fit to what was received before. */
function checkedHistory(): {
  readonly seen: Map<string, Pod>
  readonly listen: (change: Change<Pod>) => void
  readonly faults: string[]
} {
  const seen = new Map<string, Pod>()
  const faults: string[] = []
  const expect = (condition: boolean, what: string) => {
    if (!condition) faults.push(what)
  }
  return {
    seen,
    faults,
    listen(change) {
      const { name } = change.object.metadata
      const last = seen.get(name)
      if (change.kind === 'added') expect(last === undefined, `${name} added twice`)
      if (change.kind === 'updated') {
        expect(change.old === last, `${name} updated from something else`)
        expect(change.object.metadata.uid === last?.metadata.uid, `${name} changed its uid`)
        expect(
          Number(change.object.metadata.resourceVersion) > Number(last?.metadata.resourceVersion),
          `${name} went back`,
        )
      }
      if (change.kind === 'deleted') {
        expect(last !== undefined, `${name} deleted without being there`)
        expect(change.object.metadata.uid === last?.metadata.uid, `${name} deleted as another`)
        seen.delete(name)
      } else seen.set(name, change.object)
    },
  }
}

async function churn(seed: number): Promise<void> {
  const random = new SeededRandom(seed)
  const clock = new VirtualClock()
  const server = new MemoryServer()
  server.allowsStreamedLists = unit(random) < 0.5
  let faultRate = 0.2
  server.fault = () => {
    if (unit(random) >= faultRate) return undefined
    const reply = (status: number, body: object) => ({
      status,
      headers: status === 429 ? { 'retry-after': '1' } : {},
      body: oneChunk(JSON.stringify(body)),
    })
    const faults = [
      'break' as const,
      'breakAfter' as const,
      'silence' as const,
      reply(500, refusal(500, 'InternalError')),
      reply(429, refusal(429, 'TooManyRequests')),
      reply(410, refusal(410, 'Expired')),
      { status: 502, headers: {}, body: oneChunk('<html>') },
    ]
    return faults[integerBetween(random, 0, faults.length - 1)]
  }
  const client = createKubeClient({ transport: server, clock, pageLimit: 7 })
  const cache = createCache(client, kinds.pod, { clock, logger: silentLogger, random: random.fork('cache') })
  const history = checkedHistory()
  cache.onChange(history.listen)
  cache.addIndex('node', (pod) => [pod.spec.nodeName ?? ''])
  const stop = new AbortController()
  cache.start(stop.signal)
  for (let step = 0; step < 400; step++) {
    const name = `p${integerBetween(random, 0, 24)}`
    const collection = `/api/v1/namespaces/n/pods`
    if (unit(random) < 0.3) server.remove(collection, name)
    else server.put(collection, name, { spec: { nodeName: `n${integerBetween(random, 0, 3)}` } })
    const dice = unit(random)
    if (dice < 0.03) server.dropWatches('end')
    else if (dice < 0.06) server.dropWatches('break')
    else if (dice < 0.07) server.stallWatches()
    else if (dice < 0.09) server.inject('%%%\n')
    else if (dice < 0.11)
      server.inject(`${JSON.stringify({ type: 'ERROR', object: refusal(410, 'Gone') })}\n`)
    else if (dice < 0.13) server.compact()
    else if (dice < 0.2) server.bookmark()
    if (unit(random) < 0.5) await clock.advance(integerBetween(random, 0, 4000))
  }
  faultRate = 0
  await clock.advance(400_000)
  assert.deepEqual(history.faults, [])
  const versions = (all: Iterable<{ readonly metadata: Pod['metadata'] }>) =>
    Array.from(
      all,
      ({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`,
    ).toSorted()
  assert.deepEqual(versions(cache.list()), versions(server.all()))
  assert.deepEqual(versions(history.seen.values()), versions(server.all()))
  const indexed = ['n0', 'n1', 'n2', 'n3'].flatMap((node) => {
    const found = cache.byIndex('node', node)
    assert.ok(found.every((pod) => pod.spec.nodeName === node))
    return found
  })
  assert.equal(indexed.length, cache.size)
  stop.abort()
}

test('under faults the cache misses nothing, repeats nothing and ends equal to the server', async () => {
  for (let seed = 1; seed <= 25; seed++) {
    try {
      await churn(seed)
    } catch (cause) {
      throw new Error(`seed ${seed}`, { cause })
    }
  }
})
