/** Snapshots of clusters with gangs and ProvisioningRequests (ask.md 4). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type KubeObject, podGroupKinds, type ResourceType } from '@tenon/api'
import { redacted } from '@tenon/ask'
import { consumers, openRequests, requested } from '../gangs/request-stage.test-support.ts'
import { snapshotOf } from '../testing/snapshot.test-support.ts'

test('EXP-11 a snapshot has ProvisioningRequests, their PodTemplates and whose room pods take', async (t) => {
  const stage = await openRequests(t)
  requested(stage, 'training', '2', { count: 2 })
  consumers(stage, 'training', 1)
  await stage.pass(5000)
  const snapshot = await snapshotOf(stage)
  const named = (kind: string) => snapshot.objects.filter((object) => object.kind === kind)
  const [request] = named('ProvisioningRequest')
  assert.equal(request?.metadata.name, 'training')
  assert.equal(request.apiVersion, 'autoscaling.x-k8s.io/v1')
  const [template, ...others] = named('PodTemplate')
  assert.deepEqual([template?.metadata.name, others.length], ['training', 0])
  assert.match(JSON.stringify(template), /"containers":\[\{/)
  const pod = named('Pod').find(({ metadata }) => metadata.name === 'training-pod-0')
  assert.equal(pod?.metadata.annotations?.['autoscaling.x-k8s.io/consume-provisioning-request'], 'training')

  const hidden = redacted(snapshot, 'key')
  assert.ok(!JSON.stringify(hidden.objects).includes('training'))
  const kept = hidden.objects.find(({ kind }) => kind === 'ProvisioningRequest')
  assert.match(
    JSON.stringify(kept),
    /"provisioningClassName":"best-effort-atomic-scale-up\.autoscaling\.x-k8s\.io"/,
  )
})

test('EXP-11 a snapshot has the PodGroups of gangs', async (t) => {
  const stage = await openRequests(t)
  const kind = podGroupKinds.kubernetes.find(({ version }) => version === 'v1alpha2') as ResourceType
  stage.world.create(kind, {
    apiVersion: 'scheduling.k8s.io/v1alpha2',
    kind: 'PodGroup',
    metadata: { name: 'gang', namespace: 'default' },
    spec: { schedulingPolicy: { gang: { minCount: 2 } } },
  } as KubeObject)
  await stage.pass(65_000)
  const { objects } = await snapshotOf(stage)
  assert.deepEqual(
    objects.flatMap(({ kind: each, metadata }) => (each === 'PodGroup' ? [metadata.name] : [])),
    ['gang'],
  )
})
