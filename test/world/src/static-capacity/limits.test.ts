import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { karpenterKinds } from '@tenon/api'
import { type Clock, integerBetween, SeededRandom, type Transport, unit } from '@tenon/runtime'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { madeClaims } from '../testing/pools.test-support.ts'
import { openStatic, resize, staying } from './static-stage.test-support.ts'

/** Counts claims, deleting ones too, at every change of their number; answers the most there were. */
function watchMost(stage: Stage): () => number {
  let count = stage.world.claims().length
  let most = count
  stage.world.cluster.server.local.subscribe(karpenterKinds.nodeClaim, {
    added: () => {
      most = Math.max(most, ++count)
    },
    deleted: () => {
      count--
    },
  })
  return () => most
}

type Fault = 'none' | 'refused' | 'lost' | 'late'

/** Loses creations of claims: the request, its answer, or both, with the request arriving later. */
class LossyPath {
  faultOf: () => Fault = () => 'none'
  clock: Clock | undefined

  readonly wrap = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const isCreation = request.method === 'POST' && request.path.endsWith('/nodeclaims')
      const fault = isCreation ? this.faultOf() : 'none'
      if (fault === 'late')
        this.clock?.after(2 * seconds, () => void inner.send(request, new AbortController().signal))
      if (fault === 'late' || fault === 'refused') throw new Error('the connection was closed')
      const response = await inner.send(request, signal)
      if (fault === 'lost') throw new Error('the connection was reset')
      return response
    },
  })
}

/** A pool whose creations may be lost; nothing runs yet. */
async function openLossy(
  t: TestContext,
  replicas: number,
  nodes: number,
  seed = 1,
): Promise<{ readonly stage: Stage; readonly path: LossyPath; readonly most: () => number }> {
  const path = new LossyPath()
  const pool = { limits: { nodes: String(nodes) } }
  const stage = await openStatic(t, replicas, { seed, apiPath: path.wrap, pool, idle: true })
  path.clock = stage.world.clock
  return { stage, path, most: watchMost(stage) }
}

for (const fault of ['lost', 'late'] as const) {
  test(`a creation that is ${fault} is not made twice`, async (t) => {
    const { stage, path, most } = await openLossy(t, 3, 3)
    let faults = 3
    path.faultOf = () => (faults-- > 0 ? fault : 'none')
    await stage.start()
    await stage.pass(5 * minutes)
    assert.deepEqual([most(), madeClaims(stage).length], [3, 3])
  })
}

test('a lost creation that is wanted no more gives its room back', async (t) => {
  const { stage, path } = await openLossy(t, 2, 2)
  path.faultOf = () => 'refused'
  await stage.start()
  const occupied = () => stage.operator.operator.state.poolClaims.occupied('default')
  assert.deepEqual([madeClaims(stage).length, occupied()], [0, 2])
  await resize(stage, 0)
  await stage.pass(30 * seconds)
  assert.equal(occupied(), 2)
  await stage.pass(3 * minutes)
  assert.equal(occupied(), 0)
  path.faultOf = () => 'none'
  await resize(stage, 2)
  assert.equal(staying(stage).length, 2)
})

/** Another process takes over once the lease of the dead one has run out. */
async function takeOver(stage: Stage): Promise<void> {
  await stage.world.bury(stage.operator)
  await stage.pass(15 * seconds)
  await stage.start()
}

for (const seed of [1, 2, 3, 4, 5, 6]) {
  test(`the limit holds while answers are lost, claims vanish and sizes change (seed ${seed})`, async (t) => {
    const random = new SeededRandom(`static-limits-${seed}`)
    const { stage, path, most } = await openLossy(t, 4, 5, seed)
    const faults = ['none', 'none', 'lost', 'late', 'refused'] as const
    path.faultOf = () => faults[integerBetween(random, 0, faults.length - 1)] ?? 'none'
    await stage.start()
    for (let step = 0; step < 40; step++) {
      const [victim] = staying(stage)
      const action = integerBetween(random, 0, 3)
      if (action === 0) await resize(stage, integerBetween(random, 0, 9))
      else if (action === 1 && victim !== undefined)
        stage.delete(karpenterKinds.nodeClaim, victim.metadata.name)
      else if (action === 2 && unit(random) < 0.3) await takeOver(stage)
      await stage.pass(integerBetween(random, 10, 40_000))
      assert.ok(most() <= 5, `${most()} claims at step ${step}`)
    }
    path.faultOf = () => 'none'
    await resize(stage, 9)
    await stage.pass(5 * minutes)
    assert.equal(staying(stage).length, 5)
    await resize(stage, 3)
    await stage.pass(5 * minutes)
    assert.equal(madeClaims(stage).length, 3)
    assert.equal(stage.cloud.instances.length, 3)
    assert.ok(most() <= 5)
  })
}

for (const when of ['before', 'after'] as const) {
  test(`the operator dies ${when} any of its writes, and the pool has its nodes once`, async (t) => {
    for (let crashAt = 1; crashAt <= 24; crashAt++) {
      const stage = await openStatic(t, 4, { seed: crashAt, pool: { limits: { nodes: '4' } }, idle: true })
      const most = watchMost(stage)
      stage.operator = await stage.world.startOperator(crashAt, when)
      await stage.pass(20 * seconds)
      assert.ok(stage.operator.process.isDead, `write ${crashAt} happens`)
      await stage.restart()
      await stage.pass(2 * minutes)
      const story = `crash ${when} write ${crashAt}`
      assert.equal(madeClaims(stage).length, 4, story)
      assert.equal(stage.cloud.instances.length, 4, story)
      assert.equal(most(), 4, story)
    }
  })
}
