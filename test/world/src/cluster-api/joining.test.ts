/** From a Machine to a node that takes pods, on the simulated Cluster API (reports-2.md 12). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf } from '@tenon/api'
import { aDeployment, deploymentKind } from '../world.ts'
import { Stage } from './stage.test-support.ts'

const seconds = 1000
const minutes = 60 * seconds
const requests = { cpu: '1200m', memory: '1Gi' }

test('RPB-54 while the core manager is away nodes keep its taint, and no more Machines are asked for', async (t) => {
  const stage = await Stage.open(t)
  const { settings } = stage.world.clusterApi
  stage.world.create(deploymentKind, aDeployment('web', 8, requests))
  const isTainted = () =>
    stage.world
      .nodes()
      .some(({ spec }) => spec?.taints?.some(({ key }) => key === 'node.cluster.x-k8s.io/uninitialized'))
  const hasProvided = () => stage.machines.filter(({ spec }) => spec?.providerID !== undefined).length === 8
  assert.ok(await stage.world.clock.advanceUntil(hasProvided, 2 * minutes))
  settings.isCoreAway = true
  assert.ok(await stage.world.clock.advanceUntil(isTainted, 2 * minutes))
  await stage.world.clock.advance(60 * seconds)
  assert.ok(isTainted())
  for (const claim of stage.claims) assert.notEqual(conditionOf(claim, 'Initialized')?.status, 'True')
  assert.equal(stage.replicas, 8)
  settings.isCoreAway = false
  await stage.settles(8, 5 * minutes)
  assert.equal(stage.made.size, 8)
})

test('RPB-55 a Machine that is replaced before its node joined: the pod runs on the replacement, replicas stay', async (t) => {
  const stage = await Stage.open(t)
  const { faults } = stage.world.clusterApi
  faults.add({ times: 1, effect: { kind: 'neverJoins' } })
  stage.world.create(deploymentKind, aDeployment('web', 1, requests))
  await stage.world.clock.advance(5 * minutes)
  const [broken] = stage.machineNames
  assert.ok(broken !== undefined && stage.claims.length === 1)
  // As a MachineHealthCheck does.
  stage.deleteMachine(broken)
  await stage.settles(1, 3 * minutes)
  assert.equal(stage.made.size, 2)
  await stage.world.clock.advance(30 * minutes)
  assert.ok(stage.isSettled(1))
  assert.equal(stage.made.size, 2)
})

test('RPB-38 a Machine vanishes before its node joined while another of its size is free: the pod runs within a minute', async (t) => {
  const stage = await Stage.open(t)
  stage.patch({ spec: { replicas: 1 } })
  await stage.world.clock.advance(5 * minutes)
  const [ready] = stage.machineNames
  stage.world.clusterApi.settings.nodeDelay = { minMs: 20 * minutes, maxMs: 20 * minutes }
  stage.world.create(deploymentKind, aDeployment('web', 2, requests))
  const hasTwo = () =>
    stage.claims.length === 2 && stage.machines.every(({ spec }) => spec?.providerID !== undefined)
  assert.ok(await stage.world.clock.advanceUntil(hasTwo, 3 * minutes))
  await stage.world.clock.advance(60 * seconds)
  // Somebody puts the one that is ready aside, and takes the other away.
  const other = stage.machineNames.find((name) => name !== ready)
  assert.ok(ready !== undefined && other !== undefined)
  const running = () => stage.world.pods().filter(({ status }) => status?.phase === 'Running').length
  assert.equal(running(), 1)
  stage.world.clusterApi.settings.nodeDelay = { minMs: 10 * seconds, maxMs: 10 * seconds }
  stage.patch({ spec: { replicas: 3 } })
  await stage.world.clock.advance(60 * seconds)
  assert.equal(running(), 1, 'a free Machine is there, and the pod waits for its own')
  stage.deleteMachine(other)
  assert.ok(await stage.world.clock.advanceUntil(() => running() === 2, 60 * seconds))
  await stage.world.clock.advance(10 * minutes)
  assert.equal(stage.replicas, 3)
})
