import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Pod } from '@tenon/api'
import { podGroupKind } from '../../pod-group-kind.ts'
import { startWorld } from '../world.test-support.ts'

test('GNG section 5.2: a deleted group stays while a pod of it has not finished, and goes then', async () => {
  const world = startWorld()
  world.api.create(podGroupKind, {
    apiVersion: 'scheduling.k8s.io/v1alpha2',
    kind: 'PodGroup',
    metadata: { name: 'train', namespace: 'default' },
    spec: { schedulingPolicy: { gang: { minCount: 2 } } },
  })
  for (const name of ['a', 'b']) {
    const pod: Pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: {
        containers: [{ name: 'app', image: 'i' }],
        schedulingGroup: { podGroupName: 'train' },
        schedulingGates: [{ name: 'example.com/gate' }],
      },
    }
    world.api.create(kinds.pod, pod)
  }
  const group = () => world.api.get(podGroupKind, 'default', 'train')
  world.api.delete(podGroupKind, 'default', 'train')
  await world.settle()
  assert.notEqual(group()?.metadata.deletionTimestamp, undefined)
  world.api.delete(kinds.pod, 'default', 'a', { gracePeriodSeconds: 0 })
  await world.settle()
  assert.notEqual(group(), undefined)
  world.api.patch(kinds.pod, 'default', 'b', { status: { phase: 'Succeeded' } }, 'status')
  await world.settle()
  assert.equal(group(), undefined)
  world.stop()
})
