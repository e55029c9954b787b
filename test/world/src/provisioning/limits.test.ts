/** Limits of NodePools hold whatever happens in between. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import * as fc from 'fast-check'
import { karpenterKinds, labels } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { ProviderError } from '@tenon/provider'
import type { Clock, Transport } from '@tenon/runtime'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, createPool, objectsWithEvent, waitingPod } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'

const dynamicLimit = 3
const staticLimit = 2

type Fault = 'refused' | 'lost' | 'late'

type Step =
  | { readonly kind: 'pods'; readonly count: number }
  | { readonly kind: 'replicas'; readonly count: number }
  | { readonly kind: 'creations'; readonly fault: Fault; readonly count: number }
  | { readonly kind: 'launches'; readonly count: number }
  | { readonly kind: 'lag'; readonly ms: number }
  | { readonly kind: 'restart' }
  | { readonly kind: 'pass'; readonly ms: number }

const small = fc.integer({ min: 1, max: 4 })
const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('pods' as const), count: small }),
    fc.record({ kind: fc.constant('replicas' as const), count: small }),
    fc.record({
      kind: fc.constant('creations' as const),
      fault: fc.constantFrom<Fault[]>('refused', 'lost', 'late'),
      count: small,
    }),
    fc.record({ kind: fc.constant('launches' as const), count: small }),
    fc.record({ kind: fc.constant('lag' as const), ms: fc.constantFrom(0, 2000, 8000) }),
    fc.constant({ kind: 'restart' as const }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(1000, 5000, 40_000) }),
  ),
  { minLength: 4, maxLength: 10 },
)

/** What stands between the operator and the API server: lost creations of claims, late watches. */
class RoughPath {
  readonly faults: Fault[] = []
  lagMs = 0
  clock: Clock | undefined

  readonly wrap = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const isCreation = request.method === 'POST' && request.path.endsWith('/nodeclaims')
      const fault = isCreation ? this.faults.shift() : undefined
      if (fault === 'late')
        this.clock?.after(1500, () => void inner.send(request, new AbortController().signal))
      if (fault === 'late' || fault === 'refused') throw new Error('the connection was closed')
      const response = await inner.send(request, signal)
      if (fault === 'lost') throw new Error('the connection was reset')
      const isWatch = request.path.includes('/nodeclaims?') && request.path.includes('watch=')
      return isWatch ? { ...response, body: this.#late(response.body) } : response
    },
  })

  #late(body: AsyncIterable<Uint8Array | string>): Readable {
    const delayed = async function* (this: RoughPath) {
      for await (const chunk of body) {
        if (this.lagMs > 0) await this.clock?.sleep(this.lagMs)
        yield chunk
      }
    }
    return Readable.from(delayed.call(this))
  }
}

async function open(t: TestContext): Promise<{ readonly stage: Stage; readonly path: RoughPath }> {
  const path = new RoughPath()
  const stage = await Stage.open(t, {
    idle: true,
    apiPath: path.wrap,
    settings: { featureGates: { ...defaultSettings.featureGates, staticCapacity: true } },
    pool: { limits: { nodes: String(dynamicLimit) } },
  })
  path.clock = stage.world.clock
  stage.cloud.instanceTypes = [aType('medium', 4)]
  createPool(
    stage,
    aKwokPool('fixed', {
      replicas: 1,
      limits: { nodes: String(staticLimit) },
      disruption: { consolidateAfter: 'Never' },
    }),
  )
  return { stage, path }
}

/** Claims of a pool that are not on their way out. */
function living(stage: Stage, pool: string): number {
  return stage.world
    .claims()
    .filter(
      ({ metadata }) =>
        metadata.deletionTimestamp === undefined && metadata.labels?.[labels.nodePool] === pool,
    ).length
}

test('a pool never has more nodes than its limit, however creations, caches, launches and restarts fall together', async (t) => {
  const most = { default: 0, fixed: 0 }
  const run = async (story: readonly Step[]): Promise<void> => {
    const { stage, path } = await open(t)
    let failing = 0
    let pods = 0
    stage.cloud.onCreate = () => {
      if (failing-- > 0)
        throw new ProviderError(failing % 2 === 0 ? 'insufficientCapacity' : 'create', 'none')
    }
    const seen: string[] = []
    stage.world.cluster.server.local.subscribe(karpenterKinds.nodeClaim, {
      added: () => {
        const now = { default: living(stage, 'default'), fixed: living(stage, 'fixed') }
        most.default = Math.max(most.default, now.default)
        most.fixed = Math.max(most.fixed, now.fixed)
        if (now.default > dynamicLimit || now.fixed > staticLimit) seen.push(JSON.stringify(now))
      },
    })
    await stage.start()
    for (const step of story) {
      if (step.kind === 'pods')
        for (let i = 0; i < step.count; i++) waitingPod(stage, `pod-${pods++}`, { cpu: '3' })
      else if (step.kind === 'replicas')
        stage.patch(karpenterKinds.nodePool, 'fixed', { spec: { replicas: step.count } })
      else if (step.kind === 'creations')
        path.faults.push(...Array.from({ length: step.count }, () => step.fault))
      else if (step.kind === 'launches') failing = step.count
      else if (step.kind === 'lag') path.lagMs = step.ms
      else if (step.kind === 'restart') await stage.restart()
      else await stage.pass(step.ms)
      await stage.pass(500)
    }
    path.lagMs = 0
    // What launches fail for is left alone for longer each time.
    await stage.pass(30 * minutes)
    assert.deepEqual(seen, [])
    const { plans } = stage.operator.operator.state
    const waiting = stage.world.pods().filter(({ metadata }) => plans.get(metadata.uid ?? '') === undefined)
    const isFull = living(stage, 'default') === dynamicLimit
    assert.ok(isFull || waiting.length === 0, 'what the limit has room for is there in the end')
    await stage.world.bury(stage.operator)
  }
  await fc.assert(fc.asyncProperty(steps, run), { numRuns: 12, seed: 20, endOnFailure: true })
  assert.deepEqual(most, { default: dynamicLimit, fixed: staticLimit })
})

test('a pool at its limit says so, and so do the pods that wait', async (t) => {
  const { stage } = await open(t)
  for (let i = 0; i < dynamicLimit + 3; i++) waitingPod(stage, `pod-${i}`, { cpu: '3' })
  await stage.start()
  await stage.pass(30 * seconds)
  assert.equal(living(stage, 'default'), dynamicLimit)
  assert.match(stage.events('FailedScheduling')[0]?.message ?? '', /limit/)
  assert.deepEqual(objectsWithEvent(stage, 'LimitReached'), ['NodePool/default'])
})
