import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Deployment, PersistentVolumeClaim, Pod, PodDisruptionBudget } from '@tenon/api'
import { SurgingPods } from './surging-pods.ts'

const labels = { app: 'web', 'pod-template-hash': 'abc' }
const deployment: Deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'shop', uid: 'd', generation: 2 },
  spec: { selector: { matchLabels: { app: 'web' } }, template: {} },
  status: { observedGeneration: 2 },
}
const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-abc', uid: 'r', controller: true }

function aPod(volumes: Pod['spec']['volumes'] = []): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web-abc-1', namespace: 'shop', labels, ownerReferences: [owner] },
    spec: { containers: [], volumes },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  }
}

function surging(found: Deployment, accessModes?: readonly string[]): SurgingPods {
  const claim: PersistentVolumeClaim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data' },
    spec: { accessModes: accessModes ?? [] },
  }
  const deployments = { get: () => found, onChange: () => () => undefined }
  const persistentVolumeClaims = { get: () => (accessModes === undefined ? undefined : claim) }
  return new SurgingPods({ deployments, persistentVolumeClaims }, 'all')
}

test('WNT-22 a pod does not surge with a volume that one node can attach, or that is not known', () => {
  const withClaim = aPod([{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }])
  assert.equal(surging(deployment).surges(aPod(), []), true)
  assert.equal(surging(deployment, ['ReadWriteMany']).surges(withClaim, []), true)
  assert.equal(surging(deployment, ['ReadWriteOnce']).surges(withClaim, []), false)
  assert.equal(surging(deployment, ['ReadWriteOncePod']).surges(withClaim, []), false)
  assert.equal(surging(deployment).surges(withClaim, []), false)
})

test('a Deployment whose restart was refused does not surge until it is changed', () => {
  const pods = surging(deployment)
  pods.refuse(deployment)
  assert.equal(pods.surges(aPod(), []), false)
  assert.equal(pods.isRefused({ ...deployment, metadata: { ...deployment.metadata, generation: 3 } }), false)
})

test('a PDB whose status is about a former spec allows no pod to be missing in a rollout', () => {
  const rolling: Deployment = {
    ...deployment,
    spec: { ...deployment.spec, replicas: 4, strategy: { rollingUpdate: { maxUnavailable: 1 } } },
  }
  const budget = (observedGeneration: number): PodDisruptionBudget => ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'shop', generation: 2 },
    spec: { minAvailable: 4 },
    status: {
      observedGeneration,
      desiredHealthy: 2,
      expectedPods: 4,
      currentHealthy: 4,
      disruptionsAllowed: 2,
    },
  })
  assert.equal(surging(rolling).surges(aPod(), [budget(2)]), true)
  assert.equal(surging(rolling).surges(aPod(), [budget(1)]), false)
})
