import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodSpec } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
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
  const result = { placements: [], claims: [{ pods } as unknown as NewClaim] }
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
