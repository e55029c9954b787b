/** How often lists are asked for: each is as large as the cluster (scale.md 3). */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { karpenterKinds } from '@tenon/api'
import type { Clock, HttpRequest, HttpResponse, Transport } from '@tenon/runtime'
import { aDeployment, aKwokPool, deploymentKind, World } from '../world.ts'

const seconds = 1000
const minutes = 60 * seconds

/**
 * Whether a request asks for all objects of a kind: by a list, or by a watch that begins with all of them. Lists of Nodes
 * do not count: by these the simulated provider asks its cloud.
 */
function isWhole({ method, path }: HttpRequest): boolean {
  const { pathname, searchParams } = new URL(path, 'http://cluster')
  if (method !== 'GET' || searchParams.has('continue')) return false
  if (searchParams.get('watch') !== null) return searchParams.get('sendInitialEvents') === 'true'
  return /\/(?:pods|nodeclaims|nodepools|daemonsets|persistentvolumeclaims)$/.test(pathname)
}

const kindOf = ({ path }: HttpRequest) => path.split('?')[0] ?? ''

async function opened(
  t: TestContext,
  through: (inner: Transport, clock: Clock) => Transport = (inner) => inner,
): Promise<{ readonly world: World; readonly requests: HttpRequest[] }> {
  const requests: HttpRequest[] = []
  const world = await World.start({
    seed: 1,
    provider: 'kwok',
    apiPath: (inner, clock) => {
      const cut = through(inner, clock)
      return {
        send: async (request, signal) => {
          const answer = await cut.send(request, signal)
          // Kinds that are not served are asked for again.
          if (answer.status === 200) requests.push(request)
          return answer
        },
      }
    },
  })
  t.after(() => world.stop())
  world.create(kwokNodeClassKind, {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
    spec: {},
  })
  // Deletions are checked by a list.
  world.create(karpenterKinds.nodePool, aKwokPool('default', { disruption: { consolidateAfter: 'Never' } }))
  return { world, requests }
}

test('SCA-10 two replicas that start read each kind once each, lists in pages', async (t) => {
  const { world, requests } = await opened(t)
  const first = await world.startOperator()
  const second = await world.startOperator(Number.POSITIVE_INFINITY, 'after', { observeOnly: true })
  await world.clock.advance(2 * minutes)
  const whole = requests.filter(isWhole)
  const byKind = Map.groupBy(whole, kindOf)
  assert.ok(byKind.size > 5)
  for (const [kind, all] of byKind) {
    assert.ok(all.length <= 2, `${kind} was read ${all.length} times`)
    for (const { path } of all)
      assert.ok(path.includes('sendInitialEvents=true') || /[?&]limit=\d/.test(path), path)
  }
  await world.bury(first)
  await world.bury(second)
})

test('SCA-11 streams that are cut every 30 s go on where they were, without another list', async (t) => {
  let cuts = 0
  const cutting = (inner: Transport, clock: Clock): Transport => ({
    send: async (request, signal) => {
      const answer = await inner.send(request, signal)
      if (!/[?&]watch=/.test(request.path)) return answer
      return { ...answer, body: endingAfter(answer, clock) }
    },
  })
  async function* endingAfter({ body }: HttpResponse, clock: Clock): AsyncGenerator<string | Uint8Array> {
    const pieces = body[Symbol.asyncIterator]()
    const over = new AbortController()
    const end = clock.sleep(30 * seconds, over.signal).then(
      () => 'cut' as const,
      () => 'cut' as const,
    )
    try {
      for (;;) {
        const next = await Promise.race([pieces.next(), end])
        if (next === 'cut') {
          cuts++
          return
        }
        if (next.done === true) return
        yield next.value
      }
    } finally {
      over.abort()
      void pieces.return?.()
    }
  }
  const { world, requests } = await opened(t, cutting)
  const running = await world.startOperator()
  // The first decision lists NodeClaims once more.
  world.create(deploymentKind, aDeployment('web', 10))
  // Five to nine minutes after the first list a second one checks it (reports-2.md 2).
  await world.clock.advance(10 * minutes)
  requests.length = 0
  cuts = 0
  for (let minute = 0; minute < 10; minute++) {
    world.scale('web', 10 + minute)
    await world.clock.advance(1 * minutes)
  }
  assert.ok(cuts > 100, `${cuts} cuts`)
  assert.deepEqual(
    requests.filter(isWhole).map(({ path }) => path),
    [],
  )
  assert.equal(world.pods().filter(({ spec }) => (spec.nodeName ?? '') !== '').length, 19)
  await world.bury(running)
})
