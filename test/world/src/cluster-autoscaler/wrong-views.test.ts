/** Nothing is removed on a view of pods that is late or wrong, or for another cluster (reports-2.md 1, 2). */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { kinds, type KubeObject } from '@tenon/api'
import { VirtualClock } from '@tenon/runtime'
import { WrongViews } from '../simulation/faults/wrong-views.ts'
import { aDeployment, deploymentKind } from '../world.ts'
import { AutoscalerWorld } from './autoscaler-world.ts'

const minute = 60_000
/** Deletions would begin two minutes after nodes look empty. */
const hasty = ['--scale-down-delay-after-add=1m', '--scale-down-unneeded-time=1m']

/** Six members, each with a pod that has no other place. */
async function busyGroup(t: TestContext, views = new WrongViews()): Promise<AutoscalerWorld> {
  const clock = new VirtualClock(undefined, 1)
  const world = await AutoscalerWorld.start({
    seed: 1,
    clock,
    pools: [{ name: 'workers', kind: 'nodepool', type: 'standard.large', size: 6, min: 1, max: 6 }],
    flags: hasty,
    ports: { api: (inner) => views.path(inner, clock) },
  })
  t.after(() => world.stop())
  world.create(deploymentKind, aDeployment('web', 6, { cpu: '3', memory: '4Gi' }))
  await world.clock.advance(minute)
  assert.equal(world.pending().length, 0)
  return world
}

/** The same with an autoscaler that has looked at them. */
async function watchedGroup(t: TestContext, views: WrongViews): Promise<AutoscalerWorld> {
  const world = await busyGroup(t, views)
  const autoscaler = world.startAutoscaler()
  t.after(async () => {
    assert.equal(autoscaler.failure(), undefined)
    await autoscaler.end()
  })
  await world.clock.advance(3 * minute)
  return world
}

async function assertUntouched(world: AutoscalerWorld): Promise<void> {
  const names = () => world.pods().map(({ metadata }) => metadata.name)
  const before = names()
  await world.clock.advance(20 * minute)
  assert.equal(world.members('workers').length, 6)
  assert.deepEqual(names(), before)
  assert.ok(world.nodes().every(({ spec }) => spec?.unschedulable !== true))
}

for (const lie of ['empty', 'half', 'old'] as const)
  test(`RPB-42 a list of pods that is ${lie} once removes no member and no pod`, async (t) => {
    const views = new WrongViews()
    const world = await watchedGroup(t, views)
    views.lie('pods', lie, 1)
    views.expire('pods')
    await world.clock.advance(minute)
    views.stopLying('pods')
    await assertUntouched(world)
  })

test('RPB-42 DELETED events for pods that run remove no member and no pod', async (t) => {
  const views = new WrongViews()
  const world = await watchedGroup(t, views)
  views.reportDeleted('pods', world.pods())
  await assertUntouched(world)
})

for (const late of [30, 130, 300])
  test(`RPB-9 a pod that the cache shows ${late} s late keeps its node`, async (t) => {
    const views = new WrongViews()
    const world = await watchedGroup(t, views)
    views.late('pods', late * 1000)
    for (const { metadata } of world.pods())
      world.cluster.server.local.delete(kinds.pod, 'default', metadata.name, { gracePeriodSeconds: 0 })
    await world.clock.advance(30_000)
    await assertUntouched(world)
  })

test('RPB-43 a lease of another cluster stops removals until it is accepted', async (t) => {
  const world = await busyGroup(t)
  const { local } = world.cluster.server
  const first = world.startAutoscaler()
  await world.clock.advance(2 * minute)
  const identity = () => world.lease()?.metadata.annotations?.['tenon.sh/cluster-identity']
  const own = identity()
  assert.match(own ?? '', /^[0-9a-f-]{36}$/)
  await first.end()
  const lease = world.lease()
  assert.ok(lease)
  const annotations = { 'tenon.sh/cluster-identity': 'another' }
  local.update(kinds.lease, { ...lease, metadata: { ...lease.metadata, annotations } })
  local.delete(deploymentKind, 'default', 'web')
  const second = world.startAutoscaler()
  await world.clock.advance(10 * minute)
  assert.equal(world.members('workers').length, 6)
  assert.ok(world.nodes().every(({ spec }) => spec?.unschedulable !== true))
  const told = local
    .list<KubeObject & { readonly reason?: string; readonly message?: string }>(kinds.event)
    .find(({ reason }) => reason === 'ClusterNotRecognized')
  assert.match(told?.message ?? '', /the lease is that of cluster another.*--accept-cluster-identity/)
  await second.end()
  const third = world.startAutoscaler('--accept-cluster-identity')
  await world.clock.advance(10 * minute)
  assert.equal(world.members('workers').length, 1)
  assert.equal(identity(), own)
  await third.end()
})
