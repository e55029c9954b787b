import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCredentials } from '@tenon/devcluster'
import { VirtualClock } from '@tenon/runtime'
import { aDeployment, deploymentKind } from '../../world.ts'
import { HubWorld } from './hub-world.ts'

const credentials = await createCredentials(Date.UTC(2026, 0, 1))

test('RPB-54 while the core manager is away nodes keep its taint, and count as starting, also after a restart', async () => {
  const clock = new VirtualClock(undefined, 1)
  const world = await HubWorld.start({
    seed: 1,
    groups: [{ name: 'workers', cpu: 4, memory: '8Gi', replicas: 1, bounds: { min: 1, max: 20 } }],
    controlPlanes: 0,
    credentials,
    clock,
    ports: { api: (inner) => inner, hub: (inner) => inner, groups: (inner) => inner },
  })
  const { settings } = world.cluster.cloud
  const first = world.startAutoscaler()
  world.create(deploymentKind, aDeployment('web', 8, { cpu: '3', memory: '1Gi' }))
  const isTainted = () =>
    world
      .nodes()
      .some(({ spec }) => spec?.taints?.some(({ key }) => key === 'node.cluster.x-k8s.io/uninitialized'))
  const hasProvided = () => world.machines().filter(({ spec }) => spec?.providerID !== undefined).length === 8
  assert.ok(await clock.advanceUntil(hasProvided, 5 * 60_000))
  settings.isCoreAway = true
  assert.ok(await clock.advanceUntil(isTainted, 5 * 60_000))
  await clock.advance(60_000)
  // The next one does not know for which pods the nodes were requested.
  await first.end()
  const autoscaler = world.startAutoscaler()
  await clock.advance(120_000)
  assert.ok(isTainted())
  assert.equal(world.deployment('workers')?.spec?.replicas, 8)
  settings.isCoreAway = false
  const areRunning = () => world.pods().every(({ status }) => status?.phase === 'Running')
  assert.ok(await clock.advanceUntil(areRunning, 5 * 60_000))
  assert.equal(world.machines().length, 8)
  assert.equal(autoscaler.failure(), undefined)
  await autoscaler.end()
  await world.stop()
})
