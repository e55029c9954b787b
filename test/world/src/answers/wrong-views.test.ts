/** Nothing is destroyed, and nothing is launched twice, on a view of pods that is late or wrong (reports-2.md 1, 2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import type { Clock, Transport } from '@tenon/runtime'
import { WrongViews } from '../simulation/faults/wrong-views.ts'
import { aDeployment, deploymentKind, type World } from '../world.ts'
import { callsTo, healthyCluster, instanceIds, podNames } from './healthy-cluster.test-support.ts'

const minute = 60_000
const nodes = 6

/** Passes time, and asserts that no instance went, no pod was evicted and nothing was launched. */
async function assertUntouched(world: World, minutes: number): Promise<void> {
  const before = [instanceIds(world), podNames(world)]
  await world.clock.advance(minutes * minute)
  assert.equal(callsTo(world, 'delete-instance'), 0)
  assert.equal(callsTo(world, 'create-instance'), nodes)
  assert.deepEqual([instanceIds(world), podNames(world)], before)
}

for (const lie of ['empty', 'half', 'old'] as const)
  test(`RPB-42 a list of pods that is ${lie} once costs no instance and no pod`, async (t) => {
    const views = new WrongViews()
    const world = await healthyCluster(t, nodes, { apiPath: views.path })
    views.lie('pods', lie, 1)
    views.expire('pods')
    await world.clock.advance(minute)
    views.stopLying('pods')
    await assertUntouched(world, 15)
  })

for (const lie of ['empty', 'half', 'old'] as const)
  for (const minutes of [1, 10])
    test(`RPB-42 lists of pods that are all ${lie} for ${minutes} min cost no instance and no pod`, async (t) => {
      const views = new WrongViews()
      const world = await healthyCluster(t, nodes, { apiPath: views.path })
      views.lie('pods', lie)
      views.expire('pods')
      await assertUntouched(world, minutes)
      views.stopLying('pods')
      await assertUntouched(world, 15)
    })

test('RPB-42 DELETED events for pods that run cost no instance and no pod', async (t) => {
  const views = new WrongViews()
  const world = await healthyCluster(t, nodes, { apiPath: views.path })
  views.reportDeleted('pods', world.cluster.server.local.list(kinds.pod))
  await assertUntouched(world, 15)
})

for (const late of [30, 130, 300])
  test(`RPB-9 a pod that the cache shows ${late} s late keeps its node`, async (t) => {
    const views = new WrongViews()
    const world = await healthyCluster(t, nodes, { apiPath: views.path })
    // Each pod is made anew at once and bound to a node that looks empty for as long.
    views.late('pods', late * 1000)
    for (const { metadata } of world.pods())
      world.cluster.server.local.delete(kinds.pod, 'default', metadata.name, { gracePeriodSeconds: 0 })
    await world.clock.advance(30_000)
    await assertUntouched(world, 15)
  })

for (const kind of ['nodes', 'nodeclaims'])
  test(`RPB-43 nothing is launched until ${kind} that have to be listed again are known`, async (t) => {
    const views = new WrongViews()
    const held = { on: false }
    const isList = new RegExp(`/${kind}\\?(?!.*watch=true(?!.*sendInitialEvents))`)
    const apiPath = (inner: Transport, clock: Clock): Transport => ({
      send: async (request, signal) => {
        while (held.on && isList.test(request.path)) await clock.sleep(1000, signal)
        return await views.path(inner, clock).send(request, signal)
      },
    })
    const world = await healthyCluster(t, nodes, { apiPath })
    held.on = true
    views.expire(kind)
    await world.clock.advance(1000)
    world.create(deploymentKind, aDeployment('new', 1, { cpu: '1', memory: '1Gi' }))
    await world.clock.advance(minute)
    assert.equal(world.claims().length, nodes)
    held.on = false
    await world.clock.advance(5 * minute)
    assert.equal(callsTo(world, 'create-instance'), nodes + 1)
  })
