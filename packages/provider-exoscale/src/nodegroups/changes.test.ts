import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NodeGroupError } from '@tenon/provider'
import { oneChunk } from '@tenon/runtime'
import {
  aStage,
  batchPoolId,
  sksRole,
  type Stage,
  type StageOptions,
  unmanagedRole,
} from './node-groups.test-support.ts'

const minute = 60_000
const kinds = [
  [
    'an SKS nodepool',
    (stage: Stage) => stage.workersId,
    sksRole,
    'scale-sks-nodepool',
    'evict-sks-nodepool-members',
  ],
  [
    'an Instance Pool',
    () => batchPoolId,
    unmanagedRole,
    'scale-instance-pool',
    'evict-instance-pool-members',
  ],
] as const

/** A stage on which the group of one pool is known. */
async function known(poolOf: (stage: Stage) => string, options: StageOptions = {}) {
  const stage = aStage(options)
  const poolId = poolOf(stage)
  for (const node of stage.nodesOf(poolId)) await stage.groups.groupOf(node, stage.signal)
  stage.called()
  const target = () => stage.groups.group(poolId)?.targetSize
  const ids = () => stage.members(poolId).map((id) => `exoscale://${id}`)
  const remove = (providerIds: readonly string[], belowMinimum = false) =>
    stage.groups.deleteInstances(poolId, providerIds, stage.signal, { belowMinimum })
  const grow = async (delta: number) => {
    const { settled } = await stage.settle(stage.groups.increaseSize(poolId, delta, stage.signal))
    await stage.settle(settled)
  }
  return { ...stage, poolId, target, ids, remove, grow }
}

const plain = (options: StageOptions = {}) => known(() => batchPoolId, options)

for (const [title, poolOf, operations, scale, evict] of kinds) {
  describe(`of ${title}`, () => {
    test('CAS-14 CAS-21 an increase scales, watches the operation and the pool, and the target follows', async () => {
      const stage = await known(poolOf, { operations, specs: ['1:9:workers', '1:9:batch'] })
      const increase = await stage.groups.increaseSize(stage.poolId, 2, stage.signal)
      assert.equal(increase.targetSize, 4)
      assert.equal(stage.target(), 4)
      assert.equal(stage.members(stage.poolId).length, 2)
      await stage.settle(increase.settled)
      assert.equal(stage.target(), 4)
      assert.equal(stage.members(stage.poolId).length, 4)
      assert.deepEqual(stage.called(), ['get-instance-pool', scale, 'get-operation', 'get-instance-pool'])
    })

    test('CAS-17 CAS-21 two members go by one evict, the target with them, and nothing scales', async () => {
      const stage = await known(poolOf, { operations, workers: { size: 3 } })
      if (stage.members(stage.poolId).length === 2) await stage.grow(1)
      stage.called()
      const [first = '', second = '', kept] = stage.ids()
      await stage.settle(stage.remove([first, second]))
      assert.deepEqual(stage.ids(), [kept])
      assert.equal(stage.target(), 1)
      assert.deepEqual(stage.called(), ['get-instance-pool', evict, 'get-operation', 'get-instance-pool'])
    })
  })
}

test('CAS-13 an increase that is not positive or goes beyond the maximum calls nothing', async () => {
  const stage = await plain({ specs: ['1:3:batch'] })
  const grow = (delta: number) => stage.groups.increaseSize(batchPoolId, delta, stage.signal)
  for (const delta of [0, -1, 1.5, Number.NaN])
    await assert.rejects(grow(delta), {
      message: `group ${batchPoolId}: the increase must be positive, not ${delta}`,
    })
  await assert.rejects(grow(2), {
    name: 'NodeGroupError',
    message: `group ${batchPoolId}: the increase is too large: size 2, desired 4, maximum 3`,
  })
  assert.deepEqual(stage.called(), [])
})

test('EXO-139 an unlimited quota refuses no increase', async () => {
  const stage = await plain({ settings: { quotas: { instance: -1 } } })
  await stage.grow(2)
  assert.equal(stage.target(), 4)
})

test('CAS-15 a pool that does not get done in 10 min fails with the limit in the message', async () => {
  const stage = await plain()
  const start = stage.world.clock.now()
  const { settled } = await stage.groups.increaseSize(batchPoolId, 1, stage.signal)
  stage.world.clock.after(2_000, () =>
    stage.world.cloud.interventions.setPoolState(batchPoolId, 'scaling-up'),
  )
  await assert.rejects(stage.settle(settled), {
    name: 'NodeGroupError',
    message: `instance pool ${batchPoolId} was not running within 10 min: it is scaling-up`,
  })
  assert.ok(stage.world.clock.now() - start <= 11 * minute)
})

test('CAS-16 an operation that fails is told with its reason, and the target is what the pool has', async () => {
  const stage = await plain({ settings: { capacity: { 'standard.small': 2 } } })
  const { settled } = await stage.groups.increaseSize(batchPoolId, 1, stage.signal)
  await assert.rejects(stage.settle(settled), (error) => {
    assert.ok(error instanceof NodeGroupError)
    assert.match(
      error.message,
      /^operation .* failed: unavailable: no room for an instance of type standard.small/,
    )
    return true
  })
  assert.equal(stage.target(), 2)
})

test('CAS-16 a refused increase is told at once and leaves no target behind', async () => {
  const stage = await plain({ settings: { quotas: { instance: 4 }, quotaRefusalStatus: 403 } })
  stage.world.cloud.settings.quotas = { instance: 2 }
  await assert.rejects(
    stage.groups.increaseSize(batchPoolId, 1, stage.signal),
    /^NodeGroupError: scale-instance-pool failed: .*quota instance exceeded.*; allow scale-instance-pool in the IAM role of EXOSCALE_API_KEY, and check the quota/,
  )
  assert.equal(stage.target(), 2)
})

test('CAS-18 a size is not taken back, and no call is made', async () => {
  const stage = await plain()
  assert.equal(await stage.groups.decreaseTargetSize(batchPoolId, -1, stage.signal), 'unsupported')
  assert.deepEqual(stage.called(), [])
  assert.equal(stage.target(), 2)
})

test('trap 7: an operation of several minutes does not hold the loop up, and is watched to its end', async () => {
  const operationDelays = { 'scale-instance-pool': { minMs: 4 * minute, maxMs: 4 * minute } }
  const stage = await plain({ settings: { operationDelays } })
  const start = stage.world.clock.now()
  const { settled } = await stage.groups.increaseSize(batchPoolId, 2, stage.signal)
  assert.equal(stage.world.clock.now(), start)
  await stage.groups.refresh(stage.signal)
  assert.equal(stage.target(), 4)
  await stage.settle(settled)
  assert.ok(stage.world.clock.now() - start >= 4 * minute)
  assert.equal(stage.members(batchPoolId).length, 4)
})

test('an operation that hangs fails after its time, and the pool is watched until then', async () => {
  const stage = await plain()
  stage.world.cloud.faults.add({ operation: 'scale-instance-pool', effect: { kind: 'hangOperation' } })
  const { settled } = await stage.groups.increaseSize(batchPoolId, 1, stage.signal)
  await assert.rejects(stage.settle(settled), /was not running within 10 min/)
})

test('trap 33: removals that come together are carried out by one call', async () => {
  const stage = await plain({ seed: bigBatch(6) })
  const ids = stage.ids()
  await stage.settle(Promise.all(ids.slice(0, 4).map((id) => stage.remove([id]))))
  assert.deepEqual(stage.ids(), ids.slice(4))
  assert.equal(stage.called().filter((operation) => operation.startsWith('evict')).length, 1)
})

test('changes of one pool wait for each other, those of another do not', async () => {
  const stage = await plain({ seed: bigBatch(4) })
  const [first = '', second = ''] = stage.ids()
  const gone = stage.remove([first])
  await stage.world.clock.advance(500)
  const later = stage.remove([second])
  const { settled, targetSize } = await stage.groups.increaseSize(batchPoolId, 3, stage.signal)
  assert.equal(targetSize, 7)
  await stage.settle(Promise.all([gone, later, settled]))
  assert.equal(stage.members(batchPoolId).length, 5)
  assert.equal(stage.target(), 5)
  assert.ok(!stage.world.cloud.calls().some(({ status }) => status === 409))
})

test('members are not removed below the minimum, unless that is what was asked for', async () => {
  const stage = await plain({ specs: ['2:9:batch'], seed: bigBatch(3) })
  const [first = '', second = ''] = stage.ids()
  await assert.rejects(stage.settle(stage.remove([first, second])), {
    message: `instance pool ${batchPoolId} has size 3: without 2 members it would be below its minimum 2`,
  })
  const both = await stage.settle(Promise.allSettled([stage.remove([first]), stage.remove([second])]))
  assert.deepEqual(
    both.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  )
  assert.equal(stage.ids().length, 2)
  await stage.settle(stage.remove([second], true))
  assert.equal(stage.ids().length, 1)
})

test('an instance of another pool is never removed, and does not stop others', async () => {
  const stage = await plain({
    seed: { ...bigBatch(3), nodepools: [{ name: 'w', type: 'standard.small', size: 2 }] },
  })
  const stranger = `exoscale://${stage.members(stage.workersId)[0] ?? ''}`
  const [mine = ''] = stage.ids()
  const results = await stage.settle(Promise.allSettled([stage.remove([stranger]), stage.remove([mine])]))
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'fulfilled'],
  )
  assert.equal(stage.members(stage.workersId).length, 2)
  assert.equal(stage.ids().length, 2)
})

test('a member that is gone already counts as removed', async () => {
  const stage = await plain({ seed: bigBatch(3) })
  const [first = ''] = stage.ids()
  await stage.settle(stage.remove([first]))
  stage.called()
  await stage.settle(stage.remove([first]))
  assert.deepEqual(stage.called(), ['get-instance-pool', 'get-instance'])
  assert.equal(stage.ids().length, 2)
})

test('a pool that somebody else made larger meanwhile is not made smaller by an increase', async () => {
  const stage = await plain()
  stage.world.cloud.interventions.resizePool(batchPoolId, 7)
  const before = stage.ids()
  await stage.grow(2)
  assert.deepEqual(stage.ids(), before)
  assert.ok(!stage.called().includes('scale-instance-pool'))
})

test('CAS-19 states of members are told as creating, running, deleting or as an error', async () => {
  const states = [
    'starting',
    'running',
    'stopping',
    'stopped',
    'migrating',
    'error',
    'expunging',
    'destroying',
  ] as const
  const stage = await plain({ seed: bigBatch(states.length) })
  stage.members(batchPoolId).forEach((id, index) => {
    stage.world.cloud.interventions.setInstanceState(id, states[index] ?? 'error')
  })
  const members = await stage.groups.instances(batchPoolId, stage.signal)
  assert.deepEqual(
    members.map(({ providerId }) => providerId),
    stage.ids(),
  )
  assert.deepEqual(
    members.map(({ state, error }) => state ?? error?.code),
    ['creating', 'running', 'deleting', ...Array<string>(5).fill('no-code-exoscale')],
  )
  assert.equal(members[3]?.error?.message, 'the instance is stopped')
  const names = stage.world.cloud.instances().map(({ name }) => name)
  assert.deepEqual(
    members.map(({ nodeName }) => nodeName),
    names,
  )
})

test('an empty pool has no members', async () => {
  let isEmpty = false
  const stage = await plain({
    between: (transport) => ({
      send: async (request, signal) =>
        isEmpty
          ? { status: 200, headers: {}, body: oneChunk(`{"id":"${batchPoolId}","state":"running","size":0}`) }
          : await transport.send(request, signal),
    }),
  })
  await stage.groups.refresh(stage.signal)
  isEmpty = true
  assert.deepEqual(await stage.groups.instances(batchPoolId, stage.signal), [])
})

function bigBatch(size: number) {
  return { instancePools: [{ id: batchPoolId, name: 'batch', type: 'standard.small', size }] }
}
