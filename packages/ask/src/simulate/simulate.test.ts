import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type NodePool } from '@tenon/api'
import type { Snapshot } from '../snapshot/snapshot.ts'
import {
  aClaimedNode,
  aPending,
  aPool,
  aRunning,
  aSnapshot,
  aType,
} from '../testing/clusters.test-support.ts'
import { changedSnapshot, type SnapshotChange } from './changes.ts'
import { simulate, type Simulation } from './simulate.ts'

const small = aType('small', 2)
const large = aType('large', 8)
const pool = aPool('default')

function ok(snapshot: Snapshot, ...changes: readonly SnapshotChange[]): Snapshot {
  const changed = changedSnapshot(snapshot, changes)
  assert.ok('ok' in changed, 'problem' in changed ? changed.problem : '')
  return changed.ok
}

async function simulated(snapshot: Snapshot, ...changes: readonly SnapshotChange[]): Promise<Simulation> {
  return await simulate(snapshot, ok(snapshot, ...changes))
}

/** 40 large and 60 small nodes, each with a pod that fills a small one. */
function fleet(): Snapshot {
  const nodes = Array.from({ length: 100 }, (_, at) => [
    ...aClaimedNode(`node-${at}`, pool, at < 40 ? large : small),
    aRunning(aPending(`web-${at}`, { cpu: '1900m', memory: '1Gi' }, {}, 'web'), `node-${at}`),
  ])
  return aSnapshot([pool, ...nodes.flat()], [small, large])
}

const onlySmall: NodePool = aPool(
  'default',
  {},
  { requirements: [{ key: labels.instanceType, operator: 'In', values: ['small'] }] },
)

test('EXP-13 a requirement that 40 of 100 nodes do not meet: so many drift, at the price before and after', async () => {
  const { budgets, nodes, priceBefore, priceAfter, podsThatMove, podsThatRun, podsThatWait, changesNothing } =
    await simulated(fleet(), { kind: 'apply', object: onlySmall })
  assert.equal(nodes.drifted.length, 40)
  assert.ok(
    nodes.drifted.every(
      ({ instanceType, reason }) => instanceType === 'large' && reason === 'RequirementsDrifted',
    ),
  )
  assert.equal(nodes.kept, 60)
  assert.deepEqual(nodes.added, [
    { nodePool: 'default', instanceType: 'small', count: 40, pricePerHour: 0.1, pods: 40 },
  ])
  assert.deepEqual([podsThatRun, podsThatWait, changesNothing], [[], [], false])
  // Pods that ran before, and run after, have changed their nodes.
  assert.deepEqual(
    podsThatMove,
    Array.from({ length: 40 }, (_, at) => `default/web-${at}`),
  )
  assert.equal(priceBefore.pricePerHour.toFixed(3), (40 * 0.4 + 60 * 0.1).toFixed(3))
  assert.equal(priceAfter.pricePerHour.toFixed(3), '10.000')
  // Before the first one goes: what is to go is not disrupted yet.
  assert.deepEqual(
    budgets.map(({ nodePool, reason, allowed, disrupting, total }) => [
      nodePool,
      reason,
      allowed,
      disrupting,
      total,
    ]),
    [['default', 'Drifted', 100, 0, 100]],
  )
})

test('EXP-15 nothing changes: so it is told, whatever waits anyway', async () => {
  const snapshot = aSnapshot([pool, aPending('a', { cpu: '1', memory: '1Gi' })], [small])
  const simulation = await simulated(snapshot, { kind: 'apply', object: pool })
  assert.equal(simulation.changesNothing, true)
  assert.deepEqual(simulation.nodes.added, simulation.nodes.addedAnyway)
})

test('a workload that grows needs nodes, and one that shrinks gives up the pods that wait first', async () => {
  const web = { kind: 'ReplicaSet', namespace: 'default', name: 'web-7d9f' } as const
  const grown = await simulated(fleet(), { kind: 'scale', object: web, replicas: 103 })
  assert.equal(grown.podsThatRun.length, 3)
  assert.equal(
    grown.nodes.added.reduce((sum, { count }) => sum + count, 0),
    0,
    'the large nodes have room',
  )
  const withWaiting = ok(fleet(), { kind: 'scale', object: web, replicas: 101 })
  const shrunk = ok(withWaiting, { kind: 'scale', object: web, replicas: 100 })
  assert.ok(
    !shrunk.objects.some(({ kind, metadata }) => kind === 'Pod' && metadata.name.includes('simulated')),
  )
})

test('a NodePool that is deleted takes its nodes along, and its pods wait where no other pool is', async () => {
  const snapshot = aSnapshot(
    [
      pool,
      ...aClaimedNode('node-1', pool, small),
      aRunning(aPending('a', { cpu: '1', memory: '1Gi' }, {}, 'a'), 'node-1'),
    ],
    [small],
  )
  const { nodes, podsThatMove, podsThatWait, priceAfter } = await simulated(snapshot, {
    kind: 'delete',
    object: { kind: 'NodePool', name: 'default' },
  })
  assert.deepEqual(
    nodes.removed.map(({ node }) => node),
    ['node-1'],
  )
  assert.deepEqual([podsThatMove, podsThatWait], [[], ['default/a']])
  assert.equal(priceAfter.pricePerHour, 0)
})

test('manifests of workloads become pods; a NodePool whose node class is not there launches nothing', async () => {
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'api', namespace: 'shop' },
    spec: {
      replicas: 3,
      template: {
        metadata: { name: '', labels: { app: 'api' } },
        spec: { containers: [{ name: 'app', resources: { limits: { cpu: '2' } } }] },
      },
    },
  }
  const empty = aSnapshot([pool], [small, large])
  const { nodes, podsThatRun } = await simulated(empty, { kind: 'apply', object: deployment })
  assert.equal(podsThatRun.length, 3)
  assert.ok(nodes.added.length > 0)
  const lost: NodePool = aPool(
    'lost',
    {},
    { nodeClassRef: { ...pool.spec.template.spec.nodeClassRef, name: 'gone' } },
  )
  const without = aSnapshot([], [small])
  const { podsThatWait } = await simulated(
    without,
    { kind: 'apply', object: lost },
    { kind: 'apply', object: deployment },
  )
  assert.equal(podsThatWait.length, 3)
})

test('what is not there cannot be deleted or scaled', () => {
  const snapshot = aSnapshot([pool], [small])
  assert.deepEqual(changedSnapshot(snapshot, [{ kind: 'delete', object: { kind: 'NodePool', name: 'x' } }]), {
    problem: 'there is no NodePool x',
    missing: { kind: 'NodePool', name: 'x' },
  })
  assert.deepEqual(
    changedSnapshot(snapshot, [
      { kind: 'scale', object: { kind: 'Deployment', namespace: 'shop', name: 'web' }, replicas: 3 },
    ]),
    { problem: 'Deployment shop/web has no pods to copy; give its manifest with -f' },
  )
})

test('PGE-1 the price before a change is that of what is there, not of what pending pods will get', async () => {
  const now = aSnapshot(
    [pool, ...aClaimedNode('n1', pool, small), aPending('web', { cpu: '8' })],
    [small, large],
  )
  const { nodes, priceAfter, priceBefore } = await simulate(now, now)
  assert.equal(nodes.addedAnyway[0]?.count, 1)
  assert.deepEqual([priceBefore.pricePerHour, priceAfter.pricePerHour], [0.1, 0.5])
})
