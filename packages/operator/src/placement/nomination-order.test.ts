import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodSpec } from '@tenon/api'
import { nominationOrder } from './nomination-order.ts'

function aPod(name: string, cpu: string, memory: string, spec: Partial<PodSpec> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, uid: name },
    spec: { containers: [{ name: 'app', resources: { requests: { cpu, memory } } }], ...spec },
  }
}

const inTurn = (pods: readonly Pod[]): readonly string[] => {
  const result = { placements: [], claims: [{ pods }] }
  const steps = nominationOrder(result)
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return [...step.value].toSorted(([, a], [, b]) => a - b).map(([uid]) => uid)
}

test('the largest come first, by what they ask for most', () => {
  const pods = [
    aPod('small', '100m', '128Mi'),
    aPod('wide', '4', '1Gi'),
    aPod('middle', '1', '1Gi'),
    aPod('deep', '250m', '32Gi'),
  ]
  assert.deepEqual(inTurn(pods), ['deep', 'wide', 'middle', 'small'])
})

test('pods with rules of their own come before any that only ask for amounts', () => {
  const spread = aPod('spread', '100m', '128Mi', {
    topologySpreadConstraints: [
      { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule' },
    ],
  })
  const stored = aPod('stored', '100m', '128Mi', {
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
  })
  assert.deepEqual(inTurn([aPod('large', '8', '8Gi'), spread, stored]), ['spread', 'stored', 'large'])
})

test('pods that have a node still have no turn', () => {
  assert.deepEqual(inTurn([aPod('leaving', '1', '1Gi', { nodeName: 'old' }), aPod('new', '1', '1Gi')]), [
    'new',
  ])
})

test('of many small pods that are alike the scheduler is not told', () => {
  const many = (count: number, name: string, cpu: string, spec: Partial<PodSpec> = {}) =>
    Array.from({ length: count }, (_, index) => aPod(`${name}-${index}`, cpu, '1Gi', spec))
  const toldOf = (pods: readonly Pod[]) => new Set(inTurn(pods).map((uid) => uid.split('-')[0]))
  const large = many(200, 'large', '4')
  const only = new Set(['large'])
  const all = new Set(['large', 'small'])

  assert.deepEqual(toldOf([...large, ...many(100, 'small', '1')]), only)
  assert.deepEqual(toldOf([...large, ...many(99, 'small', '1')]), all, 'too few')
  assert.deepEqual(
    toldOf([...large, ...many(1, 'large', '4'), ...many(100, 'small', '1')]),
    all,
    'not a third',
  )
  const unlike = many(1, 'small', '1', { nodeSelector: { disk: 'fast' } })
  assert.deepEqual(toldOf([...large, ...many(100, 'small', '1'), ...unlike]), all, 'not all alike')
  assert.deepEqual(
    toldOf([...large, ...many(100, 'small', '1', { priority: 7 })]),
    all,
    'no room is kept from them',
  )
  assert.deepEqual(toldOf([...many(200, 'large', '4', { priority: 7 }), ...many(100, 'small', '1')]), only)
  const ruled = many(1, 'large', '4', { affinity: { podAffinity: {} } })
  assert.deepEqual(toldOf([...large, ...ruled, ...many(100, 'small', '1')]), all, 'more than room matters')
  assert.deepEqual(toldOf(many(100, 'small', '1')), new Set(['small']), 'nobody would be left')
})
