/** Replicas that users and Tenon change at the same time, on the simulated Cluster API (reports-2.md 12). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, type KubeObject } from '@tenon/api'
import { aDeployment, deploymentKind } from '../world.ts'
import { Stage } from './stage.test-support.ts'

const minutes = 60_000
const deleteMachine = 'cluster.x-k8s.io/delete-machine'
const requests = { cpu: '1200m', memory: '1Gi' }

interface CoreEvent {
  readonly reason?: string
  readonly involvedObject?: { readonly kind?: string }
}

test('RPB-57 replicas that a user has lowered for a marked Machine are not lowered again for its claim, and that Machine alone goes', async (t) => {
  const stage = await Stage.open(t)
  for (const name of ['goes', 'stays']) stage.world.create(deploymentKind, aDeployment(name, 1, requests))
  await stage.settles(2, 5 * minutes)
  const pod = stage.world.pods().find(({ metadata }) => metadata.name.startsWith('goes'))
  const machine = pod?.spec.nodeName ?? ''
  const others = stage.machineNames.filter((name) => name !== machine)
  stage.pauseCluster(true)
  stage.annotateMachine(machine, { [deleteMachine]: '' })
  stage.patch({ spec: { replicas: 1 } })
  stage.world.scale('goes', 0)
  await stage.world.clock.advance(10 * minutes)
  assert.equal(stage.replicas, 1)
  assert.deepEqual(stage.machineNames.toSorted(), [machine, ...others].toSorted())
  stage.pauseCluster(false)
  await stage.settles(1, 5 * minutes)
  await stage.world.clock.advance(20 * minutes)
  assert.deepEqual(stage.machineNames, others)
  assert.equal(stage.made.size, 2, [...stage.made].join(' '))
})

test('RPB-37 replicas that a user has raised stay; those that Tenon asked for in vain go, told by an event', async (t) => {
  const stage = await Stage.open(t)
  const counts = () => [stage.replicas, stage.machines.length, stage.claims.length]
  stage.world.create(deploymentKind, aDeployment('web', 2, requests))
  await stage.settles(2, 5 * minutes)
  // Machines come so late that the pods which they are for have gone.
  const { deploymentDelay } = stage.world.clusterApi.settings
  stage.world.clusterApi.settings.deploymentDelay = { minMs: 2 * minutes, maxMs: 2 * minutes }
  stage.world.scale('web', 4)
  await stage.world.clock.advance(20_000)
  assert.equal(stage.replicas, 4)
  stage.world.scale('web', 2)
  for (const { metadata, status } of stage.claims)
    if ((status?.providerID ?? '') === '')
      stage.world.cluster.server.local.delete(karpenterKinds.nodeClaim, undefined, metadata.name)
  stage.patch({ spec: { replicas: 5 } })
  await stage.world.clock.advance(10 * minutes)
  stage.world.clusterApi.settings.deploymentDelay = deploymentDelay
  assert.equal(stage.machines.length, 5)
  await stage.world.clock.advance(50 * minutes)
  assert.deepEqual(counts(), [3, 3, 2])
  const events: readonly (KubeObject & CoreEvent)[] = stage.world.cluster.server.local.list(kinds.event)
  const told = events.filter(({ reason }) => reason === 'MachineGivenBack')
  assert.equal(told.length, 2)
  for (const { involvedObject } of told) assert.equal(involvedObject?.kind, 'ClusterAPINodeClass')
  // One that is in use is taken by hand, and later one is added by hand.
  stage.world.scale('web', 1)
  stage.patch({ spec: { replicas: 1 } })
  await stage.world.clock.advance(10 * minutes)
  stage.patch({ spec: { replicas: 3 } })
  await stage.world.clock.advance(60 * minutes)
  assert.deepEqual(counts(), [3, 3, 1])
})

test('RPB-33 while the MachineDeployment controller lags, the Machine of an ended claim is neither replaced nor does another go for it', async (t) => {
  const stage = await Stage.open(t)
  for (const name of ['goes', 'stays']) stage.world.create(deploymentKind, aDeployment(name, 1, requests))
  await stage.settles(2, 5 * minutes)
  const pod = stage.world.pods().find(({ metadata }) => metadata.name.startsWith('stays'))
  stage.world.clusterApi.settings.deploymentDelay = { minMs: 2 * minutes, maxMs: 2 * minutes }
  stage.world.scale('goes', 0)
  await stage.settles(1, 10 * minutes)
  await stage.world.clock.advance(10 * minutes)
  assert.deepEqual(stage.machineNames, [pod?.spec.nodeName])
  assert.equal(stage.replicas, 1)
  assert.equal(stage.made.size, 2, [...stage.made].join(' '))
})
