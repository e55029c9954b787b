/** Rollouts of a MachineDeployment whose Machines claims use, on the simulated Cluster API (reports-2.md 12). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { aDeployment, deploymentKind } from '../world.ts'
import { Stage } from './stage.test-support.ts'

const minutes = 60_000
const requests = { cpu: '1200m', memory: '1Gi' }
const setOf = (stage: Stage) =>
  new Set(stage.machines.map(({ metadata }) => metadata.ownerReferences?.[0]?.uid))

test('RPB-56 machines boot for eight minutes: a rollout ends, and each of its Machines stays', async (t) => {
  const stage = await Stage.open(t)
  stage.world.create(deploymentKind, aDeployment('web', 3, requests))
  await stage.settles(3, 5 * minutes)
  const former = new Set(stage.machineNames)
  stage.world.clusterApi.settings.nodeDelay = { minMs: 8 * minutes, maxMs: 8 * minutes }
  stage.patch({ spec: { template: { spec: { version: 'v1.35.0' } } } })
  const isOver = () => stage.isSettled(3) && stage.machineNames.every((name) => !former.has(name))
  assert.ok(await stage.world.clock.advanceUntil(isOver, 60 * minutes), stage.machineNames.join(' '))
  await stage.world.clock.advance(60 * minutes)
  assert.ok(isOver())
  // One of the rollout stands in for each; none was made in vain.
  assert.equal(stage.made.size, 6, [...stage.made].join(' '))
})

test('RPB-34 a PodDisruptionBudget holds a rollout up for an hour: its new Machine stays, and nothing else is made', async (t) => {
  const stage = await Stage.open(t)
  stage.world.create(deploymentKind, aDeployment('web', 2, requests))
  await stage.settles(2, 5 * minutes)
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'default' },
    spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'web' } } },
  })
  stage.patch({ spec: { template: { spec: { version: 'v1.35.0' } } } })
  await stage.world.clock.advance(60 * minutes)
  assert.equal(stage.made.size, 3, [...stage.made].join(' '))
  assert.equal(stage.machines.length, 3)
  assert.equal(setOf(stage).size, 2)
  assert.equal(stage.replicas, 2)
  stage.world.cluster.server.local.delete(kinds.podDisruptionBudget, 'default', 'web')
  const isOver = () => stage.isSettled(2) && setOf(stage).size === 1
  assert.ok(await stage.world.clock.advanceUntil(isOver, 20 * minutes))
  assert.equal(stage.made.size, 4, [...stage.made].join(' '))
})
