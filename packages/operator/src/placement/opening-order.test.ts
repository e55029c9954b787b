import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type Node, type NodeClaim, type Pod, type PodSpec } from '@tenon/api'
import { openingOrder } from './opening-order.ts'

interface Waiting {
  readonly app: string
  readonly cpu: string
  readonly spec?: Partial<PodSpec>
}

/** Claims of a batch with the CPU of their nodes and the pods that wait for each. */
type Batch = Readonly<Record<string, readonly [cpu: string, ...pods: readonly Waiting[]]>>

/** @param queue names of claims, in the order in which the first pod of each came. */
function orderOf(batch: Batch, queue: readonly string[] = Object.keys(batch)) {
  const claims = new Map(
    Object.keys(batch).map((name): [string, NodeClaim] => [
      name,
      {
        apiVersion: 'karpenter.sh/v1',
        kind: 'NodeClaim',
        metadata: { name },
        spec: { requirements: [], nodeClassRef: { group: 'g', kind: 'K', name: 'n' } },
      },
    ]),
  )
  const pods = queue.flatMap((claim): readonly Pod[] => {
    const [, ...waiting] = batch[claim] ?? ['0']
    return waiting.map(({ app, cpu, spec }, at) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `${app}-${at}`, namespace: 'default', uid: `${claim}/${at}`, labels: { app } },
      spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }], ...spec },
    }))
  })
  const uids = pods.map(({ metadata }) => metadata.uid ?? '')
  const { first, rank } = openingOrder(
    {
      plans: { podsOf: ({ name }) => uids.filter((uid) => uid.startsWith(`${name}/`)) },
      pods: {
        unplaced: (uid) => pods.find(({ metadata }) => metadata.uid === uid),
        allUnplaced: () => pods,
      },
      nodeOf: ({ metadata: { name } }): Node => ({
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name },
        status: { allocatable: { cpu: batch[name]?.[0] ?? '0', pods: '110' } },
      }),
    },
    { nodeClaims: { get: ({ name }) => claims.get(name) } },
    new Set(Object.keys(batch)),
  )
  return { first: [...first], rank: Object.fromEntries(rank) }
}

const near = (app: string, topologyKey: string = labels.hostname): Partial<PodSpec> => ({
  affinity: {
    podAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey, labelSelector: { matchLabels: { app } } },
      ],
    },
  },
})
const spread: Partial<PodSpec> = {
  topologySpreadConstraints: [{ maxSkew: 1, topologyKey: labels.zone, whenUnsatisfiable: 'DoNotSchedule' }],
}
const group: Waiting = { app: 'group', cpu: '2', spec: near('group') }
const plain: Waiting = { app: 'plain', cpu: '1' }

test('a node whose pods must share it opens before the others', () => {
  assert.deepEqual(orderOf({ other: ['4', plain], shared: ['5', group, group, plain] }).first, ['shared'])
})

test('so does that of a pod which others follow, and not those of its followers', () => {
  const leader: Waiting = { app: 'leader', cpu: '1' }
  const follower: Waiting = { app: 'follower', cpu: '2', spec: near('leader', labels.zone) }
  assert.deepEqual(orderOf({ behind: ['4', follower, follower], ahead: ['1', leader] }).first, ['ahead'])
})

test('a node that also holds pods which must wait for pods elsewhere opens with the others', () => {
  const waiting: Waiting = { app: 'spread', cpu: '1', spec: spread }
  assert.deepEqual(orderOf({ other: ['4', plain], shared: ['5', group, group, waiting] }).first, [])
})

test('so does one where a pod would fit whose place matters to others', () => {
  const small: Waiting = { app: 'spread', cpu: '1', spec: spread }
  assert.deepEqual(orderOf({ other: ['4', small], shared: ['5', group, group] }).first, [])
  assert.deepEqual(orderOf({ other: ['4', plain], shared: ['5', group, group] }).first, ['shared'])
})

test('nodes that open together do so in the order of the pods that the scheduler tries first', () => {
  const batch: Batch = { one: ['4', plain], two: ['4', plain, plain], three: ['4', plain] }
  assert.deepEqual(orderOf(batch, ['three', 'one', 'two']).rank, { three: 0, one: 1, two: 2 })
})
