import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod } from '@tenon/api'
import { array, assert as check, boolean, integer, property, record } from 'fast-check'
import { annotations } from '../../names.ts'
import type { ScaleDownOptions } from '../../options/options.ts'
import type { UnneededNode } from '../planning/planner.ts'
import {
  aGroup,
  aNode,
  aPod,
  anyTaint,
  minute,
  second,
  someOptions,
  startMs,
} from '../scale-down.test-support.ts'
import { type Choice, type ChoiceInput, chooseNodes } from './choose.ts'

interface Traits {
  readonly forMs?: number
  readonly isReady?: boolean
  readonly pods?: readonly Pod[]
  readonly awaited?: readonly Pod[]
  readonly isRisky?: boolean
  readonly groupId?: string
}

function unneeded(node: Node, traits: Traits = {}): UnneededNode {
  const { pods: toMove = [], awaited = [], isRisky = false, isReady = true, groupId = 'g' } = traits
  return {
    node,
    groupId,
    isReady,
    isRisky,
    sinceMs: startMs - (traits.forMs ?? 60 * minute),
    utilization: { kind: 'cpuMemory', cpu: 0, memory: 0, ratio: 0 },
    drain: { kind: 'drain', toMove, ofDaemonSets: [], awaited },
  }
}

type Input = Partial<Omit<ChoiceInput, 'options'>> & { readonly options?: Partial<ScaleDownOptions> }

function choose(nodes: readonly UnneededNode[], { options, ...input }: Input = {}): Choice {
  return chooseNodes({
    nowMs: startMs,
    unneeded: nodes,
    nodes: nodes.map(({ node }) => node),
    groups: new Map([['g', aGroup('g', 100, 0)]]),
    groupOptions: new Map(),
    gpuLabel: undefined,
    inProgress: new Map(),
    draining: 0,
    options: someOptions(options),
    ...input,
  })
}

const names = (nodes: readonly UnneededNode[]) => nodes.map(({ node }) => node.metadata.name)
const reasons = ({ refused }: Choice) => refused.map(({ nodeName, reason }) => [nodeName, reason.kind])
const pods = [aPod('p')]

test('CAS-69 a node goes once its unneeded time is over, not when it is just reached', () => {
  const after = (forMs: number, isReady = true) => choose([unneeded(aNode('n'), { forMs, isReady })])
  assert.deepEqual(reasons(after(10 * minute)), [['n', 'NotUnneededLongEnough']])
  assert.deepEqual(names(after(10 * minute + 1).empty), ['n'])
  assert.deepEqual(reasons(after(20 * minute, false)), [['n', 'NotUnreadyLongEnough']])
  assert.deepEqual(names(after(20 * minute + 1, false).empty), ['n'])
})

test('an unneeded time of 0 removes a node at once', () => {
  const node = unneeded(aNode('n'), { forMs: 0 })
  assert.deepEqual(names(choose([node], { options: { unneededTimeMs: 0 } }).empty), ['n'])
})

test('CAS-70 empty nodes come first, and nodes with pods have a limit of their own', () => {
  const counts = (empty: number, drain: number, inProgress: number, limit = 5) => {
    const chosen = choose(
      [
        ...Array.from({ length: empty }, (_, index) => unneeded(aNode(`e${index}`))),
        ...Array.from({ length: drain }, (_, index) => unneeded(aNode(`d${index}`), { pods })),
      ],
      { inProgress: new Map([['other', inProgress]]), options: { maxDrainParallelism: limit } },
    )
    return [chosen.empty.length, chosen.drain.length]
  }
  assert.deepEqual(counts(11, 0, 0), [10, 0])
  assert.deepEqual(counts(8, 0, 2), [8, 0])
  assert.deepEqual(counts(8, 8, 0), [8, 2])
  assert.deepEqual(counts(2, 8, 0), [2, 5])
  assert.deepEqual(counts(3, 3, 12), [0, 0])
})

test('CAS-71 by default one node is drained at a time', () => {
  const nodes = ['a', 'b'].map((name) => unneeded(aNode(name), { pods }))
  assert.deepEqual(names(choose(nodes).drain), ['a'])
  assert.deepEqual(names(choose(nodes, { draining: 1 }).drain), [])
})

test('CAS-72 a group does not fall below its minimum, deletions in progress counted', () => {
  const nodes = ['a', 'b'].map((name) => unneeded(aNode(name)))
  const groups = new Map([['g', aGroup('g', 3, 2)]])
  const first = choose(nodes, { groups })
  assert.deepEqual(names(first.empty), ['a'])
  assert.deepEqual(reasons(first), [['b', 'NodeGroupMinSizeReached']])
  assert.deepEqual(names(choose(nodes, { groups, inProgress: new Map([['g', 1]]) }).empty), [])
})

test('CAS-79 a node does not go while a pod on it is waited for, and takes no place of another one', () => {
  const awaited = [aPod('c', { annotations: { [annotations.safeToEvict]: 'on-completion' } })]
  const nodes = [unneeded(aNode('a'), { awaited }), unneeded(aNode('b'))]
  const choice = choose(nodes, { groups: new Map([['g', aGroup('g', 2, 1)]]) })
  assert.deepEqual(names(choice.empty), ['b'])
  assert.deepEqual(reasons(choice), [['a', 'BlockedByOnCompletionPod']])
})

test('CAS-85 nodes that exceed a PDB are tried after the others', () => {
  const nodes = [
    unneeded(aNode('a'), { pods, isRisky: true, forMs: 90 * minute }),
    unneeded(aNode('b'), { pods }),
  ]
  const choice = choose(nodes, { options: { maxDrainParallelism: 2 } })
  assert.deepEqual(names(choice.drain), ['b', 'a'])
})

test('CAS-98 the cluster keeps its minimum of memory', () => {
  const gibibyte = 2 ** 30
  const nodes = ['a', 'b'].map((name) => unneeded(aNode(name, { memory: '8Gi' })))
  const all = [...nodes.map(({ node }) => node), aNode('outside', { memory: '4Gi' })]
  const floor = (gib: number) => ({ memory: { min: gib * gibibyte, max: 100 * gibibyte } })
  const refused = choose(nodes, { nodes: all, options: floor(16) })
  assert.deepEqual(names(refused.empty), [])
  assert.deepEqual(reasons(refused), [
    ['a', 'MinimalResourceLimitExceeded'],
    ['b', 'MinimalResourceLimitExceeded'],
  ])
  assert.deepEqual(names(choose(nodes, { nodes: all, options: floor(12) }).empty), ['a'])
})

test('nodes that are being deleted and virtual ones do not count for the minimum of cores', () => {
  const node = aNode('a', { cpu: '4' })
  const options = { cores: { min: 4, max: 100 } }
  const beside = (other: Node) => names(choose([unneeded(node)], { nodes: [node, other], options }).empty)
  assert.deepEqual(beside(aNode('b', { cpu: '4' })), ['a'])
  assert.deepEqual(beside(aNode('b', { cpu: '4', taints: [anyTaint('1')] })), [])
  assert.deepEqual(beside(aNode('b', { cpu: '4', labels: { type: 'virtual-kubelet' } })), [])
})

test('the annotation that keeps a node counts here as well', () => {
  const node = aNode('a', { annotations: { [annotations.scaleDownDisabled]: 'true' } })
  assert.deepEqual(reasons(choose([unneeded(node)])), [['a', 'ScaleDownDisabledAnnotation']])
})

test('whatever is chosen is within every limit, and no group gets below its minimum', () => {
  const drawn = record({
    group: integer({ min: 0, max: 2 }),
    isEmpty: boolean(),
    isRisky: boolean(),
    forMinutes: integer({ min: 5, max: 15 }),
  })
  const numbers = record({
    sizes: array(integer({ min: 1, max: 8 }), { minLength: 3, maxLength: 3 }),
    least: array(integer({ min: 0, max: 4 }), { minLength: 3, maxLength: 3 }),
    busy: array(integer({ min: 0, max: 3 }), { minLength: 3, maxLength: 3 }),
    draining: integer({ min: 0, max: 2 }),
    total: integer({ min: 1, max: 8 }),
    drain: integer({ min: 1, max: 4 }),
  })
  check(
    property(array(drawn, { maxLength: 20 }), numbers, (nodes, n) => {
      const choice = choose(
        nodes.map(({ group, isEmpty, isRisky, forMinutes }, index) =>
          unneeded(aNode(`n${index}`), {
            isRisky,
            groupId: `g${group}`,
            forMs: forMinutes * minute,
            pods: isEmpty ? [] : pods,
          }),
        ),
        {
          groups: new Map(n.sizes.map((size, at) => [`g${at}`, aGroup(`g${at}`, size, n.least[at] ?? 0)])),
          inProgress: new Map(n.busy.map((count, at) => [`g${at}`, count])),
          draining: n.draining,
          options: { maxParallelism: n.total, maxDrainParallelism: n.drain },
        },
      )
      const busy = n.busy.reduce((sum, count) => sum + count, 0)
      const { empty, drain } = choice
      assert.ok(empty.length + drain.length <= Math.max(0, n.total - busy))
      assert.ok(drain.length <= Math.max(0, n.drain - n.draining))
      for (const [at, size] of n.sizes.entries()) {
        const going = [...empty, ...drain].filter(({ groupId }) => groupId === `g${at}`).length
        assert.ok(going === 0 || size - (n.busy[at] ?? 0) - going >= (n.least[at] ?? 0))
      }
      assert.ok([...empty, ...drain].every(({ sinceMs }) => startMs - sinceMs > 10 * minute))
      // Nothing is held back without need: an accepted node is left out only when its limit is used up.
      const accepted = nodes.length - choice.refused.length
      const room = Math.max(0, n.total - busy)
      const emptyAccepted = nodes.filter(
        ({ isEmpty }, index) => isEmpty && !choice.refused.some(({ nodeName }) => nodeName === `n${index}`),
      ).length
      assert.equal(empty.length, Math.min(room, emptyAccepted))
      const drainRoom = Math.max(0, Math.min(room - empty.length, n.drain - n.draining))
      assert.equal(drain.length, Math.min(drainRoom, accepted - emptyAccepted))
    }),
    { numRuns: 500 },
  )
})

test('the order of what is given does not matter', () => {
  const nodes = ['c', 'a', 'b'].map((name, index) =>
    unneeded(aNode(name), { pods, forMs: 60 * minute + index * second }),
  )
  const options = { maxDrainParallelism: 3 }
  assert.deepEqual(
    names(choose(nodes, { options }).drain),
    names(choose(nodes.toReversed(), { options }).drain),
  )
})
