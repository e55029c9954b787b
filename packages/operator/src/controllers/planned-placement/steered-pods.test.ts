import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodSpec } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import { steeredPods } from './steered-pods.ts'

function aPod(name: string, cpu: string, memory: string, spec: Partial<PodSpec> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, uid: name },
    spec: { containers: [{ name: 'app', resources: { requests: { cpu, memory } } }], ...spec },
  }
}

const inTurn = (pods: readonly Pod[], most: number): readonly string[] => {
  const result = { placements: [], claims: [{ pods } as unknown as NewClaim] }
  const steps = steeredPods(result, most)
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return [...step.value].toSorted(([, a], [, b]) => a - b).map(([uid]) => uid)
}

test('all pods of a decision are told about when there are not too many, the largest first', () => {
  assert.deepEqual(inTurn([aPod('a', '1', '1Gi'), aPod('b', '2', '1Gi')], 2), ['b', 'a'])
})

test('of more than that, the largest by what they ask for most', () => {
  const pods = [
    aPod('small', '100m', '128Mi'),
    aPod('wide', '4', '1Gi'),
    aPod('middle', '1', '1Gi'),
    aPod('deep', '250m', '32Gi'),
  ]
  assert.deepEqual(inTurn(pods, 2), ['deep', 'wide'])
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
  assert.deepEqual(inTurn([aPod('large', '8', '8Gi'), spread, stored], 2), ['spread', 'stored'])
})
