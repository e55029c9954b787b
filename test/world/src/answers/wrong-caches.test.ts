/** Caches that were told what is not so, in a whole cluster (reports-2.md 2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunningOperator } from '../world.ts'
import { type HttpRequest, oneChunk, readText, type Transport } from '@tenon/runtime'
import {
  assertMatched,
  callsTo,
  healthyCluster,
  instanceIds,
  podNames,
} from './healthy-cluster.test-support.ts'

const minute = 60_000

const isWatch = ({ path }: HttpRequest) => path.includes('watch=true')
const isOf = ({ method, path }: HttpRequest, plural: string) =>
  method === 'GET' && path.split('?')[0]?.endsWith(`/${plural}`) === true

function statusOf(code: number, reason: string) {
  const body = { apiVersion: 'v1', kind: 'Status', status: 'Failure', code, reason, message: reason }
  return {
    status: code,
    headers: { 'content-type': 'application/json' },
    body: oneChunk(JSON.stringify(body)),
  }
}

/** Once `lie` is called, the next watch of the kind finds its version gone, and the list after it keeps what is kept. */
function lyingOnce(
  plural: string,
  keeps: (index: number) => boolean,
): {
  readonly apiPath: (inner: Transport) => Transport
  readonly lie: () => void
  readonly lies: () => number
} {
  let step: 'quiet' | 'watch' | 'list' = 'quiet'
  let lies = 0
  return {
    lie: () => {
      step = 'watch'
    },
    lies: () => lies,
    apiPath: (inner) => ({
      async send(request, signal) {
        if (step === 'quiet' || !isOf(request, plural)) return await inner.send(request, signal)
        if (isWatch(request)) {
          if (request.path.includes('sendInitialEvents')) return statusOf(422, 'Invalid')
          if (step === 'list') return await inner.send(request, signal)
          step = 'list'
          return statusOf(410, 'Expired')
        }
        if (step === 'watch') return await inner.send(request, signal)
        step = 'quiet'
        lies++
        const response = await inner.send(request, signal)
        const list = JSON.parse(await readText(response.body)) as { items: unknown[] }
        const items = list.items.filter((_, index) => keeps(index))
        return { ...response, body: oneChunk(JSON.stringify({ ...list, items })) }
      },
    }),
  }
}

const empty = ['empty', () => false] as const
const half = ['half', (index: number) => index % 2 === 0] as const

for (const plural of [
  'pods',
  'poddisruptionbudgets',
  'daemonsets',
  'namespaces',
  'persistentvolumes',
  'persistentvolumeclaims',
  'csinodes',
  'storageclasses',
  'exoscalenodeclasses',
  'nodepools',
  'nodes',
  'nodeclaims',
])
  for (const [what, keeps] of plural === 'pods' ? [empty, half] : [empty])
    test(`RPB-42 a list of ${plural} that is ${what} once costs nothing`, async (t) => {
      const liar = lyingOnce(plural, keeps)
      const world = await healthyCluster(t, 4, { apiPath: liar.apiPath })
      const before = [instanceIds(world), podNames(world)]
      const created = callsTo(world, 'create-instance')
      liar.lie()
      await world.clock.advance(25 * minute)
      assert.equal(liar.lies(), 1, 'the list was asked for')
      assert.deepEqual([instanceIds(world), podNames(world)], before)
      assert.equal(callsTo(world, 'create-instance'), created)
      assertMatched(world, 'all is as it was')
      world.scale('web', 5)
      await world.clock.advance(8 * minute)
      assert.equal(callsTo(world, 'create-instance'), created + 1, 'it decides from the right picture')
    })

test('RPB-42 claims whose Nodes the cache does not show ask once, then with back-off', async (t) => {
  let isHidden = false
  let running: RunningOperator | undefined
  const asked: string[] = []
  const world = await healthyCluster(
    t,
    4,
    {
      apiPath: (inner) => ({
        async send(request, signal) {
          const [path] = request.path.split('?')
          if (isHidden && request.method === 'GET' && path?.startsWith('/api/v1/nodes/'))
            asked.push(path.slice('/api/v1/nodes/'.length))
          if (!isHidden || !isOf(request, 'nodes')) return await inner.send(request, signal)
          if (request.path.includes('sendInitialEvents')) return statusOf(422, 'Invalid')
          if (isWatch(request)) return { status: 200, headers: {}, body: never(signal) }
          const body = { kind: 'NodeList', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items: [] }
          return { status: 200, headers: {}, body: oneChunk(JSON.stringify(body)) }
        },
      }),
    },
    (operator) => {
      running = operator
    },
  )
  const before = instanceIds(world)
  if (running !== undefined) await world.bury(running)
  isHidden = true
  await world.startOperator()
  await world.clock.advance(16 * minute)
  const most = Math.max(
    ...world.nodes().map(({ metadata }) => asked.filter((n) => n === metadata.name).length),
  )
  assert.ok(most >= 1 && most <= 40, `${most} GETs of one Node in 16 minutes`)
  isHidden = false
  await world.clock.advance(10 * minute)
  assert.deepEqual(instanceIds(world), before)
  world.scale('web', 5)
  await world.clock.advance(8 * minute)
  assert.equal(instanceIds(world).length, 5)
})

async function* never(signal: AbortSignal | undefined): AsyncGenerator<string> {
  await new Promise((_, reject) => {
    signal?.addEventListener('abort', () => {
      reject(signal.reason as Error)
    })
  })
  yield ''
}
