import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Node, Pod } from '@tenon/api'
import { FakeCluster } from '../testing/fake-cluster.test-support.ts'
import { aGroup } from '../testing/fake-groups.test-support.ts'
import { aNode, aPod, startMs } from '../testing/objects.test-support.ts'
import { plannedNodes, PodPlans } from './pod-plans.ts'

const minute = 60_000

/** Plans of ten minutes for a large and a small pod on two new nodes of group `g`. */
function plansForTwo(): { readonly plans: PodPlans; readonly pods: readonly [Pod, Pod] } {
  const pods = [aPod('large', { cpu: '3' }), aPod('small', { cpu: '1' })] as const
  const plans = new PodPlans(() => 10 * minute)
  const nodes = pods.map((pod) => ({ groupId: 'g', pods: [pod] }))
  plans.add(nodes, new Set(['old']), startMs)
  return { plans, pods }
}

/** @param nodes that are there, all of group `g`. */
function look(plans: PodPlans, nodes: readonly string[], waiting: readonly Pod[], nowMs = startMs): void {
  plans.update({
    nodes: nodes.map((name): Node => aNode(name)),
    groupOf: new Map(nodes.map((name) => [name, 'g'])),
    waiting: new Set(waiting.map(({ metadata }) => metadata.uid ?? '')),
    nowMs,
  })
}

const place = (plans: PodPlans, open: readonly string[] = []) =>
  Object.fromEntries(
    plans.places(
      (groupId, index) => `${groupId}+${index}`,
      (node) => open.includes(node),
    ),
  )

describe('plans for pods', () => {
  test('pods go to the new nodes of their group, one after the other', () => {
    const { plans, pods } = plansForTwo()
    look(plans, ['old'], pods)
    assert.deepEqual(place(plans), { 'uid-large': 'g+0', 'uid-small': 'g+1' })
    assert.deepEqual(plans.wishes, [])
    look(plans, ['old', 'n1'], pods)
    assert.deepEqual(plans.wishes, [{ uid: 'uid-large', node: 'n1' }])
    assert.deepEqual(place(plans), { 'uid-large': 'g+0', 'uid-small': 'g+1' }, 'n1 is not open yet')
    assert.deepEqual(place(plans, ['n1']), { 'uid-large': 'n1', 'uid-small': 'g+0' })
  })

  test('a plan ends with its pod, with its node, and with its time', () => {
    const { plans, pods } = plansForTwo()
    look(plans, ['old', 'n1', 'n2'], pods)
    assert.equal(plans.awaitsNodes, false)
    look(plans, ['old', 'n1', 'n2'], [pods[1]])
    assert.deepEqual(plans.wishes, [{ uid: 'uid-small', node: 'n2' }])
    look(plans, ['old', 'n1'], [pods[1]])
    assert.deepEqual(plans.wishes, [])
    const late = plansForTwo()
    look(late.plans, ['old'], late.pods, startMs + 10 * minute - 1)
    assert.equal(late.plans.awaitsNodes, true)
    look(late.plans, ['old'], late.pods, startMs + 10 * minute)
    assert.equal(late.plans.awaitsNodes, false)
  })

  test('a node whose pods have all come is no place for others', () => {
    const { plans, pods } = plansForTwo()
    look(plans, ['old', 'n1'], pods)
    look(plans, ['old', 'n1'], [pods[1]])
    assert.deepEqual(plans.wishes, [])
    look(plans, ['old', 'n1', 'n2'], [pods[1]])
    assert.deepEqual(plans.wishes, [{ uid: 'uid-small', node: 'n2' }])
  })

  test('the latest plan of a pod counts', () => {
    const { plans, pods } = plansForTwo()
    plans.add([{ groupId: 'h', pods: [pods[0]] }], new Set(), startMs)
    look(plans, [], pods)
    assert.deepEqual(place(plans), { 'uid-small': 'g+0', 'uid-large': 'h+0' })
  })

  test('it does not matter where pods alike go, or pods of one node', () => {
    for (const nodes of [
      [[aPod('a', { owner: 'x', labels: { app: 'x' } })], [aPod('b', { owner: 'x', labels: { app: 'x' } })]],
      [[aPod('a', { cpu: '1' }), aPod('b', { cpu: '2' })]],
    ]) {
      const plans = new PodPlans(() => minute)
      plans.add(
        nodes.map((pods) => ({ groupId: 'g', pods })),
        new Set(),
        startMs,
      )
      look(plans, ['n1', 'n2'], nodes.flat())
      assert.deepEqual(plans.wishes, [])
    }
  })

  test('groups that grow together share the nodes; what no group grows for is not planned', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((name) => [aPod(name)]) as [Pod[], Pod[], Pod[]]
    const increases = [
      { groupId: 'g', delta: 1 },
      { groupId: 'h', delta: 1 },
    ]
    assert.deepEqual(plannedNodes([a, b, c], increases), [
      { groupId: 'g', pods: a },
      { groupId: 'h', pods: b },
    ])
  })
})

/** Of these, nodes of 4 CPUs hold all when packed as planned; one after the other they take a third node. */
const mixed = () => [
  aPod('small', { cpu: '1' }),
  aPod('middle-0', { cpu: '2', owner: 'middle' }),
  aPod('middle-1', { cpu: '2', owner: 'middle' }),
  aPod('large', { cpu: '3' }),
]

function grownOnce(fields: { readonly pods?: readonly Pod[] } = {}): FakeCluster {
  return new FakeCluster({
    groups: [aGroup('g')],
    nodes: { g: [aNode('g0')] },
    pods: [aPod('keep', { cpu: '4', nodeName: 'g0', owner: 'keep' }), ...(fields.pods ?? mixed())],
  })
}

describe('later loops', () => {
  test('CAS-41 count on nodes as they were planned, and ask for no further one', async () => {
    const cluster = grownOnce()
    await cluster.loop()
    assert.equal(cluster.size('g'), 3)
    await cluster.loopFor(5 * minute)
    assert.equal(cluster.size('g'), 3)
  })

  test('a pod that comes meanwhile gets a node of its own, not the room of others', async () => {
    const cluster = grownOnce()
    await cluster.loop()
    cluster.pods.clear()
    cluster.addPod(aPod('keep', { cpu: '4', nodeName: 'g0', owner: 'keep' }))
    for (const pod of [aPod('newcomer', { cpu: '1' }), ...mixed()]) cluster.addPod(pod)
    await cluster.loop()
    assert.equal(cluster.size('g'), 4)
    assert.deepEqual(
      cluster.events.of('TriggeredScaleUp').filter((text) => text.includes('newcomer')).length,
      1,
    )
  })

  test('a plan does not keep room from pods of higher priority', async () => {
    const cluster = grownOnce({ pods: [aPod('low', { cpu: '4' })] })
    await cluster.loop()
    assert.equal(cluster.size('g'), 2)
    cluster.addPod(aPod('high', { cpu: '4', spec: { priority: 5 } }))
    await cluster.loop()
    assert.equal(cluster.size('g'), 3)
    assert.equal(cluster.events.of('TriggeredScaleUp').filter((text) => text.includes('low')).length, 2)
  })
})
