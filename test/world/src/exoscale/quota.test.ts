/** What users are told while the organisation's quota of instances is used up. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type KubeObject, kinds } from '@tenon/api'
import { aDeployment, deploymentKind, World } from '../world.ts'
import { aNodeClass, aPool, nodeClassKind } from './manifests.test-support.ts'

const hour = 60 * 60_000

interface Event extends KubeObject {
  readonly reason?: string
  readonly message?: string
}

test('with the quota of instances full pods are told of the quota and until when, not to widen a pool', async (t) => {
  const world = await World.start({
    seed: 3,
    provider: 'exoscale',
    cloudSettings: { quotas: { instance: 0 } },
  })
  world.create(nodeClassKind, aNodeClass('standard'))
  world.create(karpenterKinds.nodePool, aPool('standard', ['standard.small', 'standard.medium']))
  const running = await world.startOperator()
  t.after(async () => {
    await world.bury(running)
    await world.stop()
  })
  world.create(deploymentKind, aDeployment('web', 1))
  await world.clock.advance(10 * 60_000)
  const events: readonly Event[] = world.cluster.server.local.list(kinds.event)
  const told = events
    .filter(({ reason }) => reason === 'FailedScheduling')
    .map(({ message = '' }) => message)
    .filter((message) => message.startsWith('No node can be launched'))
  assert.ok(told.length > 0)
  for (const message of told) {
    assert.match(message, /the quota of instances is used up; ask Exoscale to raise it, next try at \d{4}-/)
    assert.doesNotMatch(message, /widen/)
  }
})

test('with the quota full consolidation tries ever less often, and nodes are told what stands in the way', async (t) => {
  const world = await World.start({
    seed: 3,
    provider: 'exoscale',
    cloudSettings: { quotas: { instance: 1 } },
  })
  world.create(nodeClassKind, aNodeClass('standard'))
  const disruption = {
    consolidationPolicy: 'WhenEmptyOrUnderutilized',
    consolidateAfter: '30s',
    budgets: [{ nodes: '100%' }],
  } as const
  world.create(
    karpenterKinds.nodePool,
    aPool('standard', ['standard.small', 'standard.large'], { disruption }),
  )
  const running = await world.startOperator()
  t.after(async () => {
    await world.bury(running)
    await world.stop()
  })
  const { local } = world.cluster.server
  world.create(deploymentKind, aDeployment('web', 4))
  const typeOf = () => world.cluster.cloud.instances().map(({ type }) => type)
  assert.ok(await world.clock.advanceUntil(() => typeOf().length === 1, hour))
  await world.clock.advance(hour / 6)
  const creations = () =>
    world.cluster.cloud.calls().filter(({ operation }) => operation === 'create-instance').length
  const before = creations()
  const told = () =>
    (local.list(kinds.event) as readonly Event[])
      .filter(({ reason }) => reason === 'Unconsolidatable')
      .map(({ message = '' }) => message)
  local.setScale(deploymentKind, 'default', 'web', 1)
  for (const waitMs of [hour / 6, 6 * hour]) {
    await world.clock.advance(waitMs)
    assert.deepEqual(typeOf(), ['standard.large'])
    const all = told().join('\n')
    assert.match(all, /the quota of instances is used up.*next try at \d{4}-/)
    assert.doesNotMatch(all, /does not sell|widen/)
  }
  const tries = creations() - before
  assert.ok(tries >= 3 && tries <= 12, `${tries} tries in six hours`)
  Object.assign(world.cluster.cloud.settings, { quotas: { instance: 2 } })
  assert.ok(await world.clock.advanceUntil(() => typeOf().join() === 'standard.small', 2 * hour))
})
