/** An API server that is that of another cluster (reports-2.md 2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type KubeObject, type ResourceType } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import type { Transport } from '@tenon/runtime'
import { AnotherCluster } from '../simulation/faults/another-cluster.ts'
import { deploymentKind, type RunningOperator } from '../world.ts'
import { callsTo, healthyCluster, instanceIds } from './healthy-cluster.test-support.ts'

const minute = 60_000

interface EventObject extends KubeObject {
  readonly reason: string
  readonly message: string
}

const uidHere = (world: Awaited<ReturnType<typeof healthyCluster>>) =>
  world.cluster.server.local.get(kinds.namespace, undefined, 'kube-system')?.metadata.uid ?? ''

function told(world: Awaited<ReturnType<typeof healthyCluster>>): readonly EventObject[] {
  return world.cluster.server.local
    .list(kinds.event as ResourceType<EventObject>)
    .filter(({ reason }) => reason === 'ClusterNotRecognized')
}

for (const isFromTheStart of [false, true])
  test(`RPB-43 an API server that is another, empty cluster ${isFromTheStart ? 'from the start' : 'from one moment on'} costs no instance`, async (t) => {
    const other = new AnotherCluster('0e500000-0000-4000-8000-000000000000')
    let running: RunningOperator | undefined
    const world = await healthyCluster(t, 4, { apiPath: other.path }, (operator) => {
      running = operator
    })
    const before = instanceIds(world)
    if (isFromTheStart && running !== undefined) await world.bury(running)
    other.hide(uidHere(world))
    if (isFromTheStart) await world.startOperator()
    await world.clock.advance(40 * minute)
    assert.equal(callsTo(world, 'delete-instance'), 0)
    assert.deepEqual(instanceIds(world), before)
    assert.ok(told(world).length > 0, 'somebody is told')
  })

test('RPB-43 whoever accepts the cluster has what it does not know swept', async (t) => {
  const other = new AnotherCluster('0e500000-0000-4000-8000-000000000000')
  let running: RunningOperator | undefined
  const settings = { ...defaultSettings, identity: { isAccepted: true } }
  const world = await healthyCluster(t, 2, { apiPath: other.path, settings }, (operator) => {
    running = operator
  })
  if (running !== undefined) await world.bury(running)
  other.hide(uidHere(world))
  await world.startOperator()
  await world.clock.advance(40 * minute)
  assert.equal(callsTo(world, 'delete-instance'), 2)
})

test('RPB-43 a node that another cluster says is gone takes pods again, and no other is launched for them', async (t) => {
  const other = new AnotherCluster('0e500000-0000-4000-8000-000000000000')
  let isRefused = false
  let here: string | undefined
  const apiPath = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const isOf = (method: string, plural: string) =>
        request.method === method && request.path.includes(`/${plural}/`)
      // The command has begun: its taint is the first that the other cluster answers.
      if (here !== undefined && isOf('PATCH', 'nodes')) other.hide(here)
      isRefused ||= here !== undefined && isOf('DELETE', 'nodeclaims')
      return await other.path(inner).send(request, signal)
    },
  })
  const world = await healthyCluster(t, 4, { apiPath })
  const before = instanceIds(world)
  const scale = (replicas: number): void => {
    world.cluster.server.local.patch(deploymentKind, 'default', 'web', { spec: { replicas } })
  }
  scale(3)
  here = uidHere(world)
  assert.ok(await world.clock.advanceUntil(() => isRefused, 5 * minute))
  here = undefined
  scale(4)
  other.show()
  await world.clock.advance(5 * minute)
  scale(5)
  await world.clock.advance(5 * minute)
  assert.equal(callsTo(world, 'create-instance'), 5)
  assert.deepEqual(
    instanceIds(world).filter((id) => before.includes(id)),
    before,
  )
})
