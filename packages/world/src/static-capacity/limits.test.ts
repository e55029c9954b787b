import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds } from '@tenon/api'
import { integerBetween, SeededRandom, type Transport, unit } from '@tenon/runtime'
import { minutes, seconds, type Stage } from '../lifecycle/stage.test-support.ts'
import { madeClaims } from '../provisioning.test-support.ts'
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

type Fault = 'none' | 'refused' | 'lost'

/** Lets a test lose the answers to creations of claims, or the requests themselves. */
function losing(faultOf: () => Fault): (inner: Transport) => Transport {
  return (inner) => ({
    send: async (request, signal) => {
      const isCreation = request.method === 'POST' && request.path.endsWith('/nodeclaims')
      const fault = isCreation ? faultOf() : 'none'
      if (fault === 'refused') throw new Error('the connection was refused')
      const response = await inner.send(request, signal)
      if (fault === 'lost') throw new Error('the connection was reset')
      return response
    },
  })
}

test('a creation whose answer is lost is not made twice', async (t) => {
  let faults = 3
  const apiPath = losing(() => (faults-- > 0 ? 'lost' : 'none'))
  const stage = await openStatic(t, 3, { apiPath, pool: { limits: { nodes: '3' } }, idle: true })
  const most = watchMost(stage)
  await stage.start()
  await stage.pass(5 * minutes)
  assert.deepEqual([most(), madeClaims(stage).length], [3, 3])
  assert.equal(await stage.metric('nodeclaims_created_total'), 3)
})

test('a lost creation that is wanted no more is found and given up', async (t) => {
  let isLosing = true
  const apiPath = losing(() => (isLosing ? 'refused' : 'none'))
  const stage = await openStatic(t, 2, { apiPath, pool: { limits: { nodes: '2' } } })
  assert.equal(stage.operator.operator.state.poolClaims.unsettled('default').length, 2)
  await resize(stage, 0)
  await stage.pass(2 * minutes)
  assert.equal(stage.operator.operator.state.poolClaims.occupied('default'), 0)
  isLosing = false
  await resize(stage, 2)
  assert.equal(staying(stage).length, 2)
})

for (const seed of [1, 2, 3, 4, 5, 6]) {
  test(`ASK-20 the limit holds while answers are lost, claims vanish and sizes change (seed ${seed})`, async (t) => {
    const random = new SeededRandom(`static-limits-${seed}`)
    let isFaulty = true
    const faultOf = (): Fault => {
      const draw = isFaulty ? unit(random) : 1
      return draw < 0.25 ? 'lost' : draw < 0.5 ? 'refused' : 'none'
    }
    const stage = await openStatic(t, 4, {
      seed,
      apiPath: losing(faultOf),
      pool: { limits: { nodes: '5' } },
      idle: true,
    })
    const most = watchMost(stage)
    await stage.start()
    for (let step = 0; step < 40; step++) {
      const [victim] = staying(stage)
      const action = integerBetween(random, 0, 3)
      if (action === 0) await resize(stage, integerBetween(random, 0, 9))
      else if (action === 1 && victim !== undefined)
        stage.delete(karpenterKinds.nodeClaim, victim.metadata.name)
      else if (action === 2 && unit(random) < 0.3) await stage.restart()
      await stage.pass(integerBetween(random, 10, 40_000))
      assert.ok(most() <= 5, `${most()} claims at step ${step}`)
    }
    isFaulty = false
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
