/** A quota of the account that is nearly used up, and evictions that are due together. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type KubeObject } from '@tenon/api'
import type { Transport } from '@tenon/runtime'
import { aDeployment, deploymentKind } from '../world.ts'
import { AutoscalerWorld, type WorldPool } from './autoscaler-world.ts'

const minute = 60_000
const workers: WorldPool = {
  name: 'workers',
  kind: 'nodepool',
  type: 'standard.large',
  size: 1,
  min: 1,
  max: 30,
}
const others: WorldPool = { ...workers, name: 'others', kind: 'instancePool', size: 2, min: 2, max: 2 }
/** One takes a node of its own. */
const big = { cpu: '3', memory: '4Gi' }

function scales(world: AutoscalerWorld) {
  return world.cluster.cloud
    .calls()
    .filter(({ operation }) => operation === 'scale-sks-nodepool')
    .map(({ status }) => status)
}

function refusals(world: AutoscalerWorld): string[] {
  return world.cluster.server.local
    .list<KubeObject & { readonly reason?: string; readonly message?: string }>(kinds.event)
    .filter(({ reason }) => reason === 'NotTriggerScaleUp')
    .map(({ message }) => message ?? '')
}

test('RPB-31 of a quota of 6 with 3 used, 3 nodes are launched at once and the rest as usage falls', async () => {
  const world = await AutoscalerWorld.start({
    seed: 1,
    pools: [workers, others],
    cloudSettings: { quotas: { instance: 6 } },
  })
  const autoscaler = world.startAutoscaler()
  await world.clock.advance(30_000)
  world.create(deploymentKind, aDeployment('web', 9, big))
  await world.clock.advance(2 * minute)
  assert.equal(world.members('workers').length, 4)
  assert.deepEqual(scales(world), [200], 'one call, and none is refused')
  assert.equal(world.pending().length, 3)
  assert.ok(
    refusals(world).some((text) => text.includes("the cloud's quota of instances is used up")),
    refusals(world).join(),
  )

  await world.clock.advance(7 * minute)
  world.cluster.cloud.settings.quotas = { instance: 7 }
  await world.clock.advance(30_000)
  assert.equal(world.members('workers').length, 5, 'within a loop of the moment at which there is room')
  world.cluster.cloud.interventions.deletePool(world.poolId('others'))
  await world.clock.advance(30_000)
  assert.equal(world.members('workers').length, 7, 'members of other pools have left the room to these')
  assert.ok(scales(world).every((status) => status === 200))
  assert.equal(autoscaler.failure(), undefined)
  await autoscaler.end()
  await world.stop()
})

for (const effect of ['refused', 'taken on, and its operation fails'] as const)
  test(`RPB-31 an increase that the quota explains (${effect}) is no reason to wait once there is room`, async () => {
    let isFirst = true
    const between = (inner: Transport): Transport => ({
      send: async (request) => {
        if (!isFirst || !request.path.endsWith(':scale')) return await inner.send(request)
        isFirst = false
        const { settings, faults } = world.cluster.cloud
        // Somebody else is faster: the quota is used up between the look and the increase.
        const takeAway = () => {
          settings.quotas = { instance: 1 }
        }
        if (effect === 'refused') takeAway()
        else
          faults.add({
            operation: 'scale-sks-nodepool',
            times: 1,
            effect: { kind: 'failOperation', reason: 'unavailable', message: 'quota' },
          })
        const answer = await inner.send(request)
        takeAway()
        return answer
      },
    })
    const world = await AutoscalerWorld.start({
      seed: 2,
      pools: [workers],
      cloudSettings: { quotas: { instance: 5 } },
      ports: { cloud: between },
    })
    const autoscaler = world.startAutoscaler()
    await world.clock.advance(30_000)
    world.create(deploymentKind, aDeployment('web', 4, big))
    await world.clock.advance(minute)
    assert.equal(world.members('workers').length, 1)
    world.cluster.cloud.settings.quotas = { instance: 3 }
    await world.clock.advance(30_000)
    assert.equal(world.members('workers').length, 3)
    assert.equal(autoscaler.failure(), undefined)
    await autoscaler.end()
    await world.stop()
  })

test('RPB-32 seven empty members due together go by one eviction call', async () => {
  const world = await AutoscalerWorld.start({
    seed: 3,
    pools: [{ ...workers, size: 8 }],
    flags: ['--scale-down-unneeded-time=1m', '--scale-down-delay-after-add=0s'],
  })
  const autoscaler = world.startAutoscaler()
  await world.clock.advance(5 * minute)
  assert.equal(world.members('workers').length, 1)
  const evictions = world.cluster.cloud
    .calls()
    .filter(({ operation }) => operation === 'evict-sks-nodepool-members')
  assert.equal(evictions.length, 1)
  assert.equal(autoscaler.failure(), undefined)
  await autoscaler.end()
  await world.stop()
})
