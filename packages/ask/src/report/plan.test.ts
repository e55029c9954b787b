import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  aClaimedNode,
  aPending,
  aPool,
  aRunning,
  aSnapshot,
  aType,
} from '../testing/clusters.test-support.ts'
import { reportedCluster } from './cluster.ts'
import { asItIs, planned } from './plan.ts'

const small = aType('small', 2)
const large = aType('large', 8)
const pool = aPool('default')
const requests = { cpu: '900m', memory: '1Gi' }

/** Four large nodes, each with a single small pod. */
const spread = aSnapshot(
  [
    pool,
    ...[0, 1, 2, 3].flatMap((at) => [
      ...aClaimedNode(`node-${at}`, pool, large),
      aRunning(aPending(`web-${at}`, requests, {}, 'web'), `node-${at}`),
    ]),
  ],
  [small, large],
)

test('ADO-4 the same pods from nothing run on the cheapest nodes that hold them', async () => {
  const cluster = reportedCluster(spread)
  assert.equal(asItIs(cluster).price.pricePerHour, 1.6)
  const plan = await planned(cluster, { stay: new Set() })
  assert.equal(plan.price.pricePerHour, 0.2)
  assert.deepEqual([plan.nodes, plan.removed, plan.evictions, plan.unplaceable], [2, 4, 4, []])
  assert.deepEqual(plan.added, [
    { nodePool: 'default', instanceType: 'small', count: 2, pricePerHour: 0.1, pods: 4 },
  ])
})

test('ADO-4 nodes that stay take the pods of the others, and are neither removed nor added', async () => {
  const plan = await planned(reportedCluster(spread), { stay: new Set(['node-0']) })
  assert.deepEqual([plan.nodes, plan.removed, plan.evictions, plan.added], [1, 3, 3, []])
  assert.equal(plan.price.pricePerHour, 0.4)
})
