import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type NodePool, type Pod } from '@tenon/api'
import { canonicalPod, canonicalPool } from './canonical-keys.ts'

const alias = 'topology.csi.example.com/zone'
const aliases = { [alias]: labels.zone }
const zones = (key: string) => ({ key, operator: 'In' as const, values: ['zone-1'] })

function aPod(spec: Partial<Pod['spec']>): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'pod', namespace: 'default' },
    spec: { containers: [], ...spec },
  }
}

/** A pod that names the zone in every place where a pod chooses nodes by a label. */
function zonal(key: string): Pod {
  const term = { matchExpressions: [zones(key), zones('example.com/own')] }
  return aPod({
    nodeSelector: { [key]: 'zone-1', 'example.com/own': 'x' },
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] },
        preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: term }],
      },
    },
  })
}

test("a pod that uses the provider's name of a label is read as if it used the usual one", () => {
  assert.deepEqual(canonicalPod(zonal(alias), aliases), zonal(labels.zone))
})

test('a pod without such names stays the same object', () => {
  const pod = zonal(labels.zone)
  assert.equal(canonicalPod(pod, aliases), pod)
  assert.equal(canonicalPod(pod, undefined), pod)
  const plain = aPod({})
  assert.equal(canonicalPod(plain, aliases), plain)
})

test("so are a NodePool's requirements, and nothing else of it", () => {
  const aPool = (key: string): NodePool => ({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'pool' },
    spec: {
      template: {
        spec: {
          nodeClassRef: { group: 'g', kind: 'K', name: 'n' },
          requirements: [{ ...zones(key), minValues: 1 }],
        },
      },
    },
  })
  assert.deepEqual(canonicalPool(aPool(alias), aliases), aPool(labels.zone))
  const pool = aPool(labels.zone)
  assert.equal(canonicalPool(pool, aliases), pool)
})
