/** Who else decides about a MachineDeployment, on the simulated Cluster API (reports-2.md 12). */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { conditionOf, karpenterKinds } from '@tenon/api'
import { aDeployment, deploymentKind } from '../world.ts'
import { Stage } from './stage.test-support.ts'

const seconds = 1000
const minutes = 60 * seconds
const requests = { cpu: '1200m', memory: '1Gi' }

/** What the NodePool says of its class. */
const poolMessage = (stage: Stage): string => {
  const pool = stage.world.cluster.server.local.get(karpenterKinds.nodePool, undefined, 'default')
  return (pool && conditionOf(pool, 'NodeClassReady')?.message) ?? ''
}

/** How often Tenon changes the replicas from here on. */
function countWrites(t: Pick<TestContext, 'after'>, stage: Stage): { count: number; theirs: number } {
  const seen = { count: 0, theirs: 2 }
  t.after(
    stage.world.clusterApi.hub.subscribe(stage.world.clusterApi.kinds.deployment, {
      updated: ({ spec }, { spec: old }) => {
        if (spec?.replicas !== old?.replicas && spec?.replicas !== seen.theirs) seen.count++
      },
    }),
  )
  return seen
}

test('RPB-35 a topology sets the replicas: class and NodePool name it, and nothing is launched until it leaves them out', async (t) => {
  const stage = await Stage.open(t)
  const writes = countWrites(t, stage)
  await stage.applyAsTopology(2)
  await stage.world.clock.advance(10 * seconds)
  stage.world.create(deploymentKind, aDeployment('web', 3, requests))
  await stage.world.clock.advance(10 * minutes)
  assert.deepEqual([stage.replicas, stage.claims.length, writes.count], [2, 0, 0])
  assert.equal(stage.classConditions.get('Ready')?.status, 'False')
  for (const told of [stage.classMessages, poolMessage(stage)])
    assert.match(told, /replicas belong to the topology of Cluster workload: leave replicas out/)
  await stage.applyAsTopology(undefined)
  const isRunning = () => stage.world.pods().every(({ status }) => status?.phase === 'Running')
  assert.ok(await stage.world.clock.advanceUntil(isRunning, 5 * minutes))
  assert.equal(stage.replicas, 3)
})

test('RPB-35 somebody writes the replicas every ten seconds: two write-backs in five minutes at most, and class and NodePool say so', async (t) => {
  const stage = await Stage.open(t)
  const writes = countWrites(t, stage)
  writes.theirs = 0
  const clock = stage.world.clock
  let isOver = false
  const write = () => {
    if (isOver) return
    stage.patch({ spec: { replicas: 0 } })
    clock.after(10 * seconds, write)
  }
  write()
  stage.world.create(deploymentKind, aDeployment('web', 2, requests))
  const counts: number[] = []
  for (let minute = 0; minute < 60; minute++) {
    await clock.advance(minutes)
    counts.push(writes.count)
    const before = counts[minute - 5] ?? 0
    // The first is none that is written back.
    assert.ok(writes.count - before <= 3, `${writes.count - before} writes in five minutes`)
  }
  assert.ok(writes.count <= 12, `${writes.count} writes in an hour`)
  for (const told of [stage.classMessages, poolMessage(stage)])
    assert.match(told, /somebody else sets its replicas again each time/)
  isOver = true
  const isRunning = () => stage.world.pods().every(({ status }) => status?.phase === 'Running')
  assert.ok(await clock.advanceUntil(isRunning, 90 * minutes))
})

test('RPB-39 a paused Cluster: the class says so, and nothing is asked for until it goes on', async (t) => {
  const stage = await Stage.open(t)
  stage.pauseCluster(true)
  await stage.world.clock.advance(10 * seconds)
  stage.world.create(deploymentKind, aDeployment('web', 2, requests))
  await stage.world.clock.advance(10 * minutes)
  assert.deepEqual([stage.replicas, stage.claims.length], [0, 0])
  const found = stage.classConditions.get('MachineDeploymentsFound')?.message ?? ''
  for (const told of [stage.classMessages, found])
    assert.match(told, /its Cluster default\/workload is paused by spec\.paused/)
  stage.pauseCluster(false)
  await stage.settles(2, 5 * minutes)
})
