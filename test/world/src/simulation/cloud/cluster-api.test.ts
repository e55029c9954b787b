import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { FullMachine } from '@tenon/simulator-cluster-api'
import { ownNames } from '@tenon/provider-cluster-api'
import { World } from '../../world.ts'
import { clusterApiIn } from './cluster-api.ts'
import { isLeaving, memberMachinesIn, namespace } from './hub-objects.ts'

const minute = 60_000

/** Cluster API of a world without an operator, with one replica of `small`. */
async function opened(t: TestContext, effect: Parameters<World['clusterApi']['faults']['add']>[0]['effect']) {
  const world = await World.start({ seed: 1, provider: 'cluster-api' })
  t.after(() => world.stop())
  const cloud = clusterApiIn(world, false)
  const { faults, hub, kinds } = world.clusterApi
  faults.add({ times: 1, effect })
  const patch = (spec: object) => hub.patch(kinds.deployment, namespace, 'small', { spec })
  patch({ replicas: 1 })
  await world.clock.advance(3 * minute)
  const [machine] = memberMachinesIn(world)
  assert.ok(machine)
  const bind = ({ metadata: { name } }: FullMachine, claim: string) =>
    hub.patch(kinds.machine, namespace, name, {
      metadata: { annotations: { [ownNames.nodeClaim]: claim, [ownNames.nodeClaimUid]: claim } },
    })
  return { world, cloud, machine, patch, bind }
}

test('a Machine that a rollout cannot drain, and the one in its place, are no leftovers while a pod holds its Node', async (t) => {
  const { world, cloud, machine, patch, bind } = await opened(t, {
    kind: 'slowDeletion',
    moreMs: 60 * minute,
  })
  bind(machine, 'a')
  assert.deepEqual(cloud.leftovers(new Set()), [])
  patch({ template: { spec: { failureDomain: 'domain-1' } } })
  await world.clock.advance(10 * minute)
  assert.deepEqual(
    memberMachinesIn(world)
      .map(isLeaving)
      .toSorted((a, b) => Number(a) - Number(b)),
    [false, true],
  )
  assert.deepEqual(cloud.leftovers(new Set()), [
    'MachineDeployment small has 1 replicas, 2 Machines, 1 of them bound',
  ])
  assert.deepEqual(cloud.leftovers(new Set([machine.metadata.name])), [])
})

test('a Machine without a claim that never becomes ready is replaced, so that its rollout goes on', async (t) => {
  const { world, machine } = await opened(t, { kind: 'neverReady' })
  await world.clock.advance(15 * minute)
  const names = memberMachinesIn(world).map(({ metadata }) => metadata.name)
  assert.equal(names.length, 1)
  assert.notEqual(names[0], machine.metadata.name)
})
