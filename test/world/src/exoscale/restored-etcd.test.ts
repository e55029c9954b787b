/** The API server shows the cluster as it was an hour ago, while instances have come and gone since. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type KubeObject, kinds, type ResourceType } from '@tenon/api'
import { aDeployment, deploymentKind, type RunningOperator, World } from '../world.ts'
import { aNodeClass, aPool, nodeClassKind } from './manifests.test-support.ts'

const minute = 60_000

interface EventObject extends KubeObject {
  readonly reason: string
  readonly message: string
}

async function heldInstances({ operator }: RunningOperator): Promise<number | undefined> {
  const metric = operator.metrics.registry.getSingleMetric('tenon_sweep_held_objects')
  const { values } = (await metric?.get()) ?? { values: [] }
  return values.find(({ labels }) => labels['sweep'] === 'exoscale_instances')?.value
}

/** Brings objects of a kind back to what they were, whatever their finalizers say. */
function restore(world: World, type: ResourceType, before: readonly KubeObject[]): void {
  const { local } = world.cluster.server
  const names = new Set(before.map(({ metadata }) => metadata.name))
  for (const { metadata } of local.list(type)) {
    if (names.has(metadata.name)) continue
    local.patch(type, metadata.namespace, metadata.name, { metadata: { finalizers: null } })
    local.delete(type, metadata.namespace, metadata.name, { gracePeriodSeconds: 0 })
  }
  const present = new Set(local.list(type).map(({ metadata }) => metadata.name))
  for (const { metadata, ...object } of before) {
    if (present.has(metadata.name)) continue
    const { resourceVersion: _, uid: __, creationTimestamp: ___, generation: ____, ...kept } = metadata
    const whole = { ...object, metadata: kept }
    local.create(type, whole)
    if ('status' in whole)
      local.patch(type, metadata.namespace, metadata.name, { status: whole.status }, 'status')
  }
}

test('ADO-15 after a restore of etcd, instances of lost claims are announced for ten minutes, and all converge', async (t) => {
  const world = await World.start({ seed: 15, provider: 'exoscale' })
  t.after(() => world.stop())
  world.create(nodeClassKind, aNodeClass('standard'))
  world.create(karpenterKinds.nodePool, aPool('standard', ['standard.medium']))
  world.create(deploymentKind, aDeployment('web', 2))
  const before = await world.startOperator()
  await world.clock.advance(10 * minute)
  const kept = new Set(world.cluster.cloud.instances().map(({ id }) => id))
  const [claims, nodes] = [world.claims(), world.nodes()]

  world.scale('web', 12)
  await world.clock.advance(60 * minute)
  const lost = world.cluster.cloud.instances().filter(({ id }) => !kept.has(id))
  assert.ok(lost.length > 0, 'the hour has launched instances')

  await world.bury(before)
  restore(world, karpenterKinds.nodeClaim, claims)
  restore(world, kinds.node, nodes)
  const deletions = () =>
    world.cluster.cloud.calls().filter(({ operation }) => operation === 'delete-instance').length
  const atRestore = deletions()
  const after = await world.startOperator()
  let announcedMs: number | undefined
  while (deletions() === atRestore) {
    await world.clock.advance(minute / 2)
    if ((await heldInstances(after)) === lost.length) announcedMs ??= world.clock.now()
    assert.ok(world.clock.now() < Date.UTC(2026, 0, 1, 4), 'something is deleted in the end')
  }
  assert.ok(announcedMs !== undefined, 'the metric shows the instances')
  assert.ok(world.clock.now() - announcedMs >= 9.5 * minute, 'ten minutes, read every half minute')
  const events = world.cluster.server.local.list(kinds.event as ResourceType<EventObject>)
  const told = events.find(({ reason }) => reason === 'InstanceSweepHeld')
  assert.match(
    told?.message ?? '',
    new RegExp(`^${lost.length} of \\d+ instances have no NodeClaim, as after a restore`),
  )

  await world.clock.advance(90 * minute)
  const ids = world.claims().map(({ status }) => status?.providerID?.replace(/.*\//, '') ?? '')
  assert.deepEqual(
    world.cluster.cloud
      .instances()
      .map(({ id }) => id)
      .toSorted(),
    ids.toSorted(),
  )
  assert.ok(world.pods().every(({ status }) => status?.phase === 'Running'))
})
