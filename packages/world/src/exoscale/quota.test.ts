/** What users are told while the organisation's quota of instances is used up. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type KubeObject, kinds } from '@tenon/api'
import { aDeployment, deploymentKind, World } from '../world.ts'
import { aNodeClass, aPool, nodeClassKind } from './manifests.test-support.ts'

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
