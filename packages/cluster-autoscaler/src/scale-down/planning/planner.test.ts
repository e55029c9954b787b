import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TopologySpreadConstraint } from '@tenon/api'
import { annotations, deletionCandidateTaint } from '../../names.ts'
import {
  aBudget,
  aNode,
  aPod,
  aRoom,
  aView,
  type ClusterFacts,
  minute,
  onePlan,
  planOf,
  reasonOf,
  second,
  someOptions,
  startMs,
  unneededNames,
} from '../scale-down.test-support.ts'
import { removableLimit } from './limits.ts'
import { Planner } from './planner.ts'

const small = { cpu: '300m' }

test('CAS-82 a node whose pods have no other place stays, and is not simulated again for 5 minutes', () => {
  const planner = new Planner(someOptions())
  const alone: ClusterFacts = { nodes: [aNode('n')], pods: [aPod('p', { node: 'n', ...small })] }
  assert.equal(reasonOf(planOf(planner, alone), 'n'), 'NoPlaceToMovePods')
  const withRoom = (afterMs: number): ClusterFacts => ({
    ...alone,
    nodes: [aNode('n'), aRoom()],
    atMs: startMs + afterMs,
  })
  const later = planOf(planner, withRoom(5 * minute - 1))
  assert.equal(reasonOf(later, 'n'), 'RecentlyUnremovable')
  assert.ok(unneededNames(planOf(planner, withRoom(5 * minute))).includes('n'))
})

test('a node that is created again under the name of one that could not be removed is looked at', () => {
  const planner = new Planner(someOptions())
  const pods = [aPod('p', { node: 'n', ...small })]
  planOf(planner, { nodes: [aNode('n')], pods })
  const again = planOf(planner, {
    nodes: [aNode('n', { uid: 'new' }), aRoom()],
    pods,
    atMs: startMs + second,
  })
  assert.ok(unneededNames(again).includes('n'))
})

test('CAS-83 of two nodes whose pods fit on the same third one only the first is removable', () => {
  const plan = onePlan({
    nodes: [aNode('a'), aNode('b'), aNode('x')],
    pods: [
      aPod('pa', { node: 'a', cpu: '450m' }),
      aPod('pb', { node: 'b', cpu: '450m' }),
      aPod('px', { node: 'x', cpu: '510m' }),
    ],
  })
  assert.deepEqual(unneededNames(plan), ['a'])
  assert.equal(reasonOf(plan, 'b'), 'NoPlaceToMovePods')
  assert.equal(reasonOf(plan, 'x'), 'NotUnderutilized')
})

test('CAS-84 a removed node still counts as a domain of hostname spread', () => {
  const spread: TopologySpreadConstraint = {
    maxSkew: 1,
    topologyKey: 'kubernetes.io/hostname',
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchLabels: { app: 'a' } },
  }
  const pod = (name: string, node: string) =>
    aPod(name, { node, cpu: '10m', labels: { app: 'a' }, spec: { topologySpreadConstraints: [spread] } })
  const facts: ClusterFacts = {
    nodes: [aNode('a'), aNode('b')],
    pods: [pod('p1', 'a'), pod('p2', 'b')],
  }
  // Were the node gone with its domain, both pods could be on the other one: two there, and no other domain.
  assert.equal(reasonOf(onePlan(facts), 'a'), 'NoPlaceToMovePods')
})

test('CAS-85 of two nodes that share a PDB with one disruption left the second is blocked', () => {
  const labels = { app: 'a' }
  const plan = onePlan({
    nodes: [aNode('a'), aNode('b'), aRoom()],
    pods: [aPod('pa', { node: 'a', labels, ...small }), aPod('pb', { node: 'b', labels, ...small })],
    budgets: [aBudget('budget', labels, 1)],
  })
  assert.deepEqual(unneededNames(plan), ['a'])
  assert.equal(reasonOf(plan, 'b'), 'BlockedByPod')
})

test('CAS-85 a node whose own pods exceed the PDB is removable, and risky', () => {
  const labels = { app: 'a' }
  const plan = onePlan({
    nodes: [aNode('a'), aRoom()],
    pods: [aPod('p1', { node: 'a', labels, cpu: '100m' }), aPod('p2', { node: 'a', labels, cpu: '100m' })],
    budgets: [aBudget('budget', labels, 1)],
  })
  assert.deepEqual(
    plan.unneeded.map(({ node, isRisky }) => [node.metadata.name, isRisky]),
    [['a', true]],
  )
})

test('CAS-81 pods that never move need no place', () => {
  const facts: ClusterFacts = {
    nodes: [aNode('n')],
    pods: [
      aPod('mirror', { node: 'n', owner: 'none', cpu: '100m', annotations: { [annotations.mirror]: 'x' } }),
      aPod('ds', { node: 'n', owner: 'DaemonSet', cpu: '100m' }),
    ],
  }
  assert.deepEqual(unneededNames(onePlan(facts)), ['n'])
})

test('CAS-79 a pod that is waited for neither moves nor blocks', () => {
  const awaited = aPod('c', {
    node: 'n',
    ...small,
    annotations: { [annotations.safeToEvict]: 'on-completion' },
  })
  const plan = onePlan({ nodes: [aNode('n')], pods: [awaited] })
  assert.deepEqual(plan.unneeded[0]?.drain.awaited, [awaited])
})

test('CAS-69 the timer starts with the first loop in which a node is removable, and a loop without restarts it', () => {
  const planner = new Planner(someOptions())
  const at = (afterMs: number, cpu?: string) =>
    planOf(planner, {
      nodes: [aNode('n'), aRoom()],
      pods: cpu === undefined ? [] : [aPod('p', { node: 'n', cpu })],
      atMs: startMs + afterMs,
    }).unneeded.find(({ node }) => node.metadata.name === 'n')?.sinceMs
  assert.equal(at(0), startMs)
  assert.equal(at(minute, '100m'), startMs)
  assert.equal(at(2 * minute, '900m'), undefined)
  assert.equal(at(3 * minute), startMs + 3 * minute)
})

test('timers go on from soft taints that are younger than the TTL', () => {
  const marked = (name: string, ageMs: number) =>
    aNode(name, {
      taints: [
        { key: deletionCandidateTaint, value: String((startMs - ageMs) / 1000), effect: 'PreferNoSchedule' },
      ],
    })
  const nodes = [marked('young', 4 * minute), marked('old', 30 * minute)]
  const since = (ttlMs: number) => {
    const planner = new Planner(someOptions({ nodeDeletionCandidateTtlMs: ttlMs }))
    planner.restore(nodes, startMs)
    return planOf(planner, { nodes }).unneeded.map(({ node, sinceMs }) => [
      node.metadata.name,
      startMs - sinceMs,
    ])
  }
  assert.deepEqual(since(5 * minute), [
    ['old', 0],
    ['young', 4 * minute],
  ])
  assert.deepEqual(since(0), [
    ['old', 0],
    ['young', 0],
  ])
})

test('empty nodes come first, then those that only wait, then those of the last loop', () => {
  const planner = new Planner(someOptions())
  const waits = { annotations: { [annotations.safeToEvict]: 'on-completion' } }
  const nodes = ['a', 'b', 'c', 'd'].map((name) => aNode(name))
  const occupied = [aPod('pa', { node: 'a', cpu: '10m' }), aPod('pb', { node: 'b', cpu: '10m' })]
  // In the first loop `a` is above the threshold, so that only `b` is known in the second.
  planOf(planner, { nodes, pods: [...occupied, aPod('much', { node: 'a', cpu: '900m' })] })
  const pods = [
    ...occupied,
    aPod('pc', { node: 'c', ...waits }),
    aPod('pd', { node: 'd', owner: 'DaemonSet' }),
  ]
  const plan = planOf(planner, { nodes: [...nodes, aRoom()], pods, atMs: startMs + second })
  assert.deepEqual(unneededNames(plan), ['d', 'c', 'b', 'a'])
})

test('CAS-99 how many removable nodes are looked for', () => {
  const limit = (unneededCount: number) =>
    removableLimit({
      unneededCount,
      parallelism: 10,
      unneededTimeMs: minute,
      shortestIntervalMs: 10 * second,
    })
  assert.deepEqual([0, 3, 70, 500].map(limit), [20, 23, 70, 70])
})

test('CAS-99 the shortest time between two loops counts', () => {
  const planner = new Planner(someOptions({ unneededTimeMs: minute }))
  const nodes = Array.from({ length: 100 }, (_, index) => aNode(`n${index}`))
  const counts = [0, 30, 40, 50, 60, 70].map((afterSeconds) => {
    const plan = planOf(planner, { nodes, atMs: startMs + afterSeconds * second })
    return [plan.unneeded.length, plan.isCut]
  })
  assert.deepEqual(counts, [
    [20, true],
    [30, true],
    [50, true],
    [70, true],
    [70, true],
    [70, true],
  ])
})

test('a simulation that runs out of time keeps what it has found', () => {
  let asked = 0
  const nodes = Array.from({ length: 10 }, (_, index) => aNode(`n${index}`))
  const plan = planOf(new Planner(someOptions()), { nodes }, { shouldStop: () => ++asked > 3 })
  assert.deepEqual([plan.unneeded.length, plan.isCut], [3, true])
})

test('candidates that are not looked at in loop after loop are told by how long', () => {
  const planner = new Planner(someOptions())
  const nodes = Array.from({ length: 3 }, (_, index) => aNode(`n${index}`))
  const skipped = (afterMs: number, looks: number) => {
    let asked = 0
    const shouldStop = () => ++asked > looks
    return planOf(planner, { nodes, atMs: startMs + afterMs }, { shouldStop }).longestSkipMs
  }
  assert.equal(skipped(0, 3), 0)
  assert.equal(skipped(minute, 1), 0)
  assert.equal(skipped(2 * minute, 2), minute)
  assert.equal(skipped(4 * minute, 1), 3 * minute)
  assert.equal(skipped(5 * minute, 3), 0)
})

test('the snapshot is as before, however the steps end', () => {
  const facts: ClusterFacts = {
    nodes: [aNode('a'), aNode('b'), aRoom()],
    pods: [aPod('pa', { node: 'a', ...small }), aPod('pb', { node: 'b', ...small })],
  }
  const view = aView(facts)
  const seen = () =>
    view.snapshot.nodes.map(({ name, pods, hardTaints }) => [name, [...pods.keys()], hardTaints.length])
  const before = seen()
  for (const count of [1, 5, 8, 9, 10, 100]) {
    const steps = new Planner(someOptions()).update({
      view,
      nodes: facts.nodes,
      goingNodes: new Set(),
      delayedUntilMs: new Map(),
      shouldStop: () => false,
    })
    for (let step = 0; step < count && steps.next().done !== true; step++);
    steps.return({ unneeded: [], unremovable: [], isCut: true, longestSkipMs: 0 })
    assert.deepEqual(seen(), before)
  }
})
