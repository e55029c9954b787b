import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations } from '../../names.ts'
import {
  aGroup,
  aNode,
  anyTaint,
  aPod,
  aRoom,
  type ClusterFacts,
  minute,
  onePlan,
  planOf,
  reasonOf,
  someOptions,
  startMs,
  unneededNames,
} from '../scale-down.test-support.ts'
import { Planner } from './planner.ts'

/** One node `n` with pods, beside an idle node that takes them. */
function busy(pods: ClusterFacts['pods'], node = aNode('n')): ClusterFacts {
  return { nodes: [node, aRoom()], pods: pods ?? [] }
}

test('CAS-66 a node at the threshold is a candidate, above it is not', () => {
  assert.ok(unneededNames(onePlan(busy([aPod('p', { node: 'n', cpu: '500m' })]))).includes('n'))
  const plan = onePlan(busy([aPod('p', { node: 'n', cpu: '501m' })]))
  assert.equal(reasonOf(plan, 'n'), 'NotUnderutilized')
})

test('the larger of CPU and memory counts', () => {
  const plan = onePlan(busy([aPod('p', { node: 'n', cpu: '100m', memory: '3Gi' })]))
  assert.equal(reasonOf(plan, 'n'), 'NotUnderutilized')
})

test('CAS-67 pods of DaemonSets leave both sides of the fraction when they are ignored', () => {
  const pods = [
    aPod('ds', { node: 'n', owner: 'DaemonSet', cpu: '200m' }),
    aPod('p', { node: 'n', cpu: '400m' }),
  ]
  assert.equal(reasonOf(onePlan(busy(pods)), 'n'), 'NotUnderutilized')
  const plan = onePlan(busy(pods), { ignoreDaemonSetsUtilization: true })
  const found = plan.unneeded.find(({ node }) => node.metadata.name === 'n')
  assert.deepEqual(found?.utilization, { kind: 'cpuMemory', cpu: 0.5, memory: 0, ratio: 0.5 })
})

test('mirror pods leave both sides of the fraction when they are ignored', () => {
  const mirror = aPod('m', { node: 'n', cpu: '800m', annotations: { [annotations.mirror]: 'x' } })
  const pods = [mirror, aPod('p', { node: 'n', cpu: '101m' })]
  assert.equal(reasonOf(onePlan(busy(pods), { ignoreMirrorPodsUtilization: true }), 'n'), 'NotUnderutilized')
  const small = [mirror, aPod('p', { node: 'n', cpu: '100m' })]
  assert.ok(unneededNames(onePlan(busy(small), { ignoreMirrorPodsUtilization: true })).includes('n'))
})

test('a node with devices of drivers is judged by those in use alone', () => {
  const full = [aPod('p', { node: 'n', cpu: '1' })]
  const using = (ratio: number) =>
    onePlan({ ...busy(full), deviceUse: new Map([['n', { driver: 'gpu.example.com', pool: 'n', ratio }]]) })
  const found = using(0.5).unneeded.find(({ node }) => node.metadata.name === 'n')
  assert.equal(found?.utilization.kind, 'devices')
  assert.equal(reasonOf(using(0.51), 'n'), 'NotUnderutilized')
  assert.equal(reasonOf(onePlan(busy(full)), 'n'), 'NotUnderutilized')
})

test('CAS-68 a node with graphics processors that nobody requests is at 0, however full its CPU is', () => {
  const gpu = aNode('n', { extra: { 'nvidia.com/gpu': '2' } })
  const plan = onePlan(busy([aPod('p', { node: 'n', cpu: '1' })], gpu))
  const found = plan.unneeded.find(({ node }) => node.metadata.name === 'n')
  assert.deepEqual(found?.utilization, { kind: 'gpu', resource: 'nvidia.com/gpu', ratio: 0 })
  const used = aPod('p', { node: 'n', extra: { 'nvidia.com/gpu': '2' } })
  assert.equal(reasonOf(onePlan(busy([used], gpu)), 'n'), 'NotUnderutilized')
})

test('pods that should be gone do not count', () => {
  const gone = aPod('p', { node: 'n', cpu: '1', deletionTimestamp: '2025-12-31T23:00:00Z' })
  assert.ok(unneededNames(onePlan(busy([gone]))).includes('n'))
})

test('CAS-75 the annotation keeps a node only with the value "true"', () => {
  const kept = { [annotations.scaleDownDisabled]: 'true' }
  assert.equal(
    reasonOf(onePlan(busy([], aNode('n', { annotations: kept }))), 'n'),
    'ScaleDownDisabledAnnotation',
  )
  const notKept = { [annotations.scaleDownDisabled]: '1' }
  assert.ok(unneededNames(onePlan(busy([], aNode('n', { annotations: notKept })))).includes('n'))
})

test('a deletion mark counts for 5 minutes, and not when its value is no time', () => {
  const marked = (value: string) => busy([], aNode('n', { taints: [anyTaint(value)] }))
  const seconds = (ms: number) => String((startMs - ms) / 1000)
  assert.equal(reasonOf(onePlan(marked(seconds(5 * minute - 1000))), 'n'), 'CurrentlyBeingDeleted')
  assert.ok(unneededNames(onePlan(marked(seconds(5 * minute)))).includes('n'))
  assert.ok(unneededNames(onePlan(marked('yes'))).includes('n'))
})

test('nodes that are not ready are left alone when that is asked for', () => {
  const unready = busy([], aNode('n', { isReady: false }))
  assert.equal(reasonOf(onePlan(unready, { unreadyEnabled: false }), 'n'), 'ScaleDownUnreadyDisabled')
  assert.ok(unneededNames(onePlan(unready)).includes('n'))
})

test('a node that does not say what it has is not judged by it', () => {
  const { status, ...rest } = aNode('n')
  const silent = { ...rest, status: { ...status, allocatable: { pods: '110' } } }
  assert.equal(reasonOf(onePlan(busy([], silent)), 'n'), 'UnexpectedError')
})

test('nodes outside groups, of groups at their minimum, with a fault or not resolved are told apart; others go on', () => {
  const nodes = ['outside', 'least', 'faulty', 'unresolved', 'free'].map((name) => aNode(name))
  const plan = onePlan({
    nodes,
    groups: [aGroup('small', 1, 1), aGroup('broken', 5), aGroup('g', 5)],
    groupOf: new Map([
      ['least', 'small'],
      ['faulty', 'broken'],
      ['free', 'g'],
    ]),
    unresolved: new Map([['unresolved', 'the instance cannot be read']]),
    faults: new Map([['broken', 'GET /instance-pool answered 500']]),
  })
  assert.deepEqual(
    ['outside', 'least', 'faulty', 'unresolved'].map((name) => reasonOf(plan, name)),
    ['NotAutoscaled', 'NodeGroupMinSizeReached', 'UnexpectedError', 'UnexpectedError'],
  )
  assert.deepEqual(unneededNames(plan), ['free'])
})

test('nodes that are being deleted are neither candidates nor take pods', () => {
  const facts: ClusterFacts = {
    nodes: [aNode('n'), aNode('going')],
    pods: [aPod('p', { node: 'n', cpu: '100m' })],
  }
  const plan = planOf(new Planner(someOptions()), facts, { goingNodes: new Set(['going']) })
  assert.equal(reasonOf(plan, 'going'), 'CurrentlyBeingDeleted')
  assert.equal(reasonOf(plan, 'n'), 'NoPlaceToMovePods')
})

test('pods may move to nodes of a group that cannot be scaled, and to nodes outside groups', () => {
  for (const groupId of ['broken', '']) {
    const plan = onePlan({
      nodes: [aNode('n'), aNode('other')],
      pods: [aPod('p', { node: 'n', cpu: '100m' })],
      groups: [aGroup('g', 5), aGroup('broken', 5)],
      groupOf: new Map([
        ['n', 'g'],
        ['other', groupId],
      ]),
      faults: new Map([['broken', 'GET /instance-pool answered 500']]),
    })
    assert.deepEqual(unneededNames(plan), ['n'])
  }
})
