import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, labels } from '@tenon/api'
import { rfc3339, type Transport } from '@tenon/runtime'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, createPool, madeClaims } from '../testing/pools.test-support.ts'
import { openStatic } from '../static-capacity/static-stage.test-support.ts'
import { aKwokPool } from '../world.ts'

/** Says of a claim that it may be consolidated, whatever its controllers think. */
function forceConsolidatable(stage: Stage, name: string): void {
  const kept = (stage.claimNow(name)?.status?.conditions ?? []).filter(
    ({ type }) => type !== 'Consolidatable',
  )
  const lastTransitionTime = rfc3339(stage.now)
  const forced = { type: 'Consolidatable', status: 'True', reason: 'Forced', message: '', lastTransitionTime }
  stage.patch(karpenterKinds.nodeClaim, name, { status: { conditions: [...kept, forced] } }, 'status')
}

test('STA-89 an empty static node stays, even if its claim says that it may be consolidated', async (t) => {
  const disruption = { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] } as const
  const stage = await Stage.open(t, { pool: { replicas: 1, disruption } })
  stage.cloud.instanceTypes = [aType('medium', 4)]
  createPool(stage, aKwokPool('dynamic', { disruption }))
  await stage.ready('static')
  await stage.ready('dynamic', {}, { labels: { [labels.nodePool]: 'dynamic' } })
  for (let i = 0; i < 60; i++) {
    forceConsolidatable(stage, 'static')
    await stage.pass(10 * seconds)
  }
  assert.equal(stage.state('static', 'Consolidatable'), 'True/Forced')
  assert.equal(stage.claimNow('static')?.metadata.deletionTimestamp, undefined)
  assert.equal(stage.nodeNow('node-static')?.spec?.taints?.length ?? 0, 0)
  assert.deepEqual(
    stage
      .events('DisruptionTerminating')
      .map(({ object }) => object)
      .toSorted(),
    ['Node/node-dynamic', 'NodeClaim/dynamic'],
  )
  await stage.pass(10 * minutes)
  assert.notEqual(stage.claimNow('static'), undefined)
  assert.equal(stage.claimNow('dynamic'), undefined)
})

test('STA-122 the place of a claim that is still being created is kept while its sibling launches', async (t) => {
  let stage: Stage | undefined
  let posts = 0
  const apiPath = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const isCreation = request.method === 'POST' && request.path.endsWith('/nodeclaims')
      if (isCreation && ++posts === 2) await stage?.world.clock.sleep(10 * seconds)
      return await inner.send(request, signal)
    },
  })
  const resize = (replicas: number, nodes: string) => {
    stage?.patch(karpenterKinds.nodePool, 'default', { spec: { replicas, limits: { nodes } } })
  }
  stage = await openStatic(t, 2, { apiPath, idle: true, pool: { limits: { nodes: '2' } } })
  await stage.start()
  const [first, ...others] = madeClaims(stage)
  assert.ok(first?.status?.providerID !== undefined && others.length === 0)
  // The pool is looked at again, and has no room for a third.
  resize(3, '2')
  await stage.pass(5 * seconds)
  assert.equal(posts, 2)
  await stage.pass(2 * minutes)
  assert.deepEqual([posts, madeClaims(stage).length], [2, 2])
  // What was set aside was released: there is room for one more, and for no other.
  resize(5, '3')
  await stage.pass(2 * minutes)
  assert.deepEqual([posts, madeClaims(stage).length], [3, 3])
})
