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
