/** Commands of the global search: several nodes go, several come in their place, and pods move in waves. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { annotations, conditionOf, kinds, type NodeClaim } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import { minutes, seconds } from '../testing/stage.test-support.ts'
import { madeClaims } from '../testing/pools.test-support.ts'
import { setDisruption, tainted } from './disruption-stage.test-support.ts'
import { asking, priced, soldOut } from './fleet-stage.test-support.ts'
import {
  assertAllStay,
  assertDone,
  assertUntouched,
  large,
  medium,
  replaces,
  small,
  twoLarge,
  untilBegun,
  untilDecided,
} from './global-commands.test-support.ts'

test('old nodes go only once all new ones are ready, and large pods move before small ones', async (t) => {
  const fleet = await twoLarge(t)
  const { stage } = fleet
  const told: string[] = []
  const goneBefore: boolean[] = []
  stage.world.cluster.server.local.subscribe(kinds.pod, {
    updated: (now, before) => {
      if (now.metadata.deletionTimestamp === undefined || before.metadata.deletionTimestamp !== undefined)
        return
      told.push(now.metadata.labels?.['app'] ?? '')
      goneBefore.push(
        madeClaims(stage).every((claim) => conditionOf(claim, 'Initialized')?.status === 'True'),
      )
    },
  })
  await untilBegun(fleet)
  assert.deepEqual(tainted(stage), ['a', 'b'])
  assert.ok(madeClaims(stage).length > 1)
  await assertDone(fleet, 0.6)
  assert.deepEqual(told, ['big', 'big', 'little', 'little'])
  assert.deepEqual(new Set(goneBefore), new Set([true]))
  assert.ok(madeClaims(stage).every(replaces), 'no instance was launched but those that were planned')
})

describe('between the decision and its execution', () => {
  test('prices rise: nothing is launched', async (t) => {
    const fleet = await twoLarge(t)
    await untilDecided(fleet)
    fleet.stage.cloud.instanceTypes = [priced(small, 0.3), priced(medium, 0.5), large]
    await fleet.stage.pass(2 * minutes)
    assertUntouched(fleet)
  })

  test('the cheaper types cannot be had any more: nothing is launched', async (t) => {
    const fleet = await twoLarge(t)
    await untilDecided(fleet)
    fleet.stage.cloud.instanceTypes = [soldOut(small), soldOut(medium), large]
    await fleet.stage.pass(2 * minutes)
    assertUntouched(fleet)
  })

  test('a pod that comes is moved with a plan that has room for it, or not at all', async (t) => {
    const fleet = await twoLarge(t)
    await untilDecided(fleet)
    fleet.workload('late', ['node-a'], asking({ cpu: '1900m' }))
    await assertDone(fleet, 0.8)
    assert.ok(madeClaims(fleet.stage).every(replaces), 'an instance was launched for it')
  })

  test('a pod that must not be disrupted comes: its node stays', async (t) => {
    const fleet = await twoLarge(t)
    await untilDecided(fleet)
    const held = { [annotations.doNotDisrupt]: 'true' }
    await fleet.stage.pod('held', 'node-b', { spec: asking({ cpu: '100m' }), annotations: held })
    await fleet.stage.pass(25 * seconds)
    assertUntouched(fleet)
  })
})

describe('replacements', () => {
  test('one that never joins: after ten minutes the nodes take pods again, and no pod was moved', async (t) => {
    const fleet = await twoLarge(t)
    const { stage } = fleet
    const [joined, lost]: [string[], string[]] = [[], []]
    fleet.joins = ({ metadata: { name } }) => {
      const list = joined.length === 0 ? joined : lost
      list.push(name)
      return list === joined
    }
    await untilBegun(fleet)
    await stage.pass(9 * minutes)
    assert.deepEqual(tainted(stage), ['a', 'b'])
    setDisruption(stage, { consolidateAfter: 'Never' })
    await stage.pass(minutes + 10 * seconds)
    assert.ok(joined.length === 1 && lost.length > 0)
    assertAllStay(fleet)
    assert.equal(stage.state('a', 'DisruptionReason'), 'absent')
  })

  test('one that the cloud has no room for: the nodes stay until all can be had', async (t) => {
    const fleet = await twoLarge(t)
    const { stage } = fleet
    const { onCreate } = stage.cloud
    let launches = 0
    stage.cloud.onCreate = (claim) => {
      if (launches++ === 1) throw new ProviderError('insufficientCapacity', 'no room')
      onCreate(claim)
    }
    setDisruption(stage, { consolidateAfter: '0s' })
    assert.ok(await stage.world.clock.advanceUntil(() => launches >= 2, minutes))
    await stage.pass(2 * seconds)
    assertAllStay(fleet)
    await assertDone(fleet, 0.6)
    assert.ok(launches > 2)
  })

  test('one that is gone again before the others are ready: no pod is moved for the sake of those', async (t) => {
    const fleet = await twoLarge(t)
    const { stage } = fleet
    let launches = 0
    fleet.joins = () => launches++ === 0
    await untilBegun(fleet)
    const isInitialized = (claim: NodeClaim) => conditionOf(claim, 'Initialized')?.status === 'True'
    assert.ok(await stage.world.clock.advanceUntil(() => madeClaims(stage).some(isInitialized), minutes))
    await stage.pass(3 * seconds)
    setDisruption(stage, { consolidateAfter: 'Never' })
    await stage.deleteClaim(madeClaims(stage).find(isInitialized)?.metadata.name ?? '')
    await stage.pass(5 * seconds)
    assertAllStay(fleet)
  })
})
