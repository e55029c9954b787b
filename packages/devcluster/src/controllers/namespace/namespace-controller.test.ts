import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ConfigMap, kinds, type KubeObject, type Namespace } from '@tenon/api'
import { findCondition } from '../objects/conditions.ts'
import { type WorkloadCondition, workloads } from '../objects/workloads.ts'
import { startWorld, template, type World } from '../world.test-support.ts'

type Spaced = Namespace & {
  readonly spec?: { readonly finalizers?: readonly string[] }
  readonly status?: { readonly conditions?: readonly WorkloadCondition[] }
}

function create(world: World, name: string): void {
  const namespace: Spaced = {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name },
    spec: { finalizers: ['kubernetes'] },
  }
  world.api.create(kinds.namespace, namespace)
}

const read = (world: World, name: string) => world.api.get<Spaced>(kinds.namespace, undefined, name)

test('a namespace gets its default service account and root certificate, and gets them back', async () => {
  const world = startWorld({ settings: { certificateAuthority: 'PEM' } })
  create(world, 'team')
  await world.settle()
  assert.ok(world.api.get(workloads.serviceAccount, 'team', 'default'))
  assert.equal(world.api.get(kinds.configMap, 'team', 'kube-root-ca.crt')?.data?.['ca.crt'], 'PEM')
  world.api.delete(workloads.serviceAccount, 'team', 'default')
  world.api.delete(kinds.configMap, 'team', 'kube-root-ca.crt')
  await world.settle()
  assert.ok(world.api.get(workloads.serviceAccount, 'team', 'default'))
  assert.ok(world.api.get(kinds.configMap, 'team', 'kube-root-ca.crt'))
  world.stop()
})

test('a deleted namespace is emptied, whatever runs in it, and goes', async () => {
  const world = startWorld()
  create(world, 'team')
  const spec = { replicas: 3, selector: { matchLabels: { app: 'web' } }, template: template('web') }
  const metadata = { name: 'web', namespace: 'team' }
  world.api.create(workloads.deployment, { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec })
  await world.settle()
  assert.equal(world.pods('team').length, 3)
  world.api.delete(kinds.namespace, undefined, 'team')
  await world.settle(10_000)
  assert.equal(read(world, 'team'), undefined)
  assert.equal(world.pods('team').length, 0)
  assert.equal(world.api.list<KubeObject>(workloads.replicaSet, { namespace: 'team' }).length, 0)
  world.stop()
})

test('content with finalizers holds the namespace up, and its conditions say so', async () => {
  const world = startWorld()
  create(world, 'team')
  world.api.create(kinds.configMap, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'held', namespace: 'team', finalizers: ['example.com/hold'] },
  })
  await world.settle()
  world.api.delete(kinds.namespace, undefined, 'team')
  await world.settle()
  const { conditions } = read(world, 'team')?.status ?? {}
  assert.equal(
    findCondition(conditions, 'NamespaceContentRemaining')?.message,
    'Some resources are remaining: configmaps. has 1 resource instances',
  )
  assert.equal(
    findCondition(conditions, 'NamespaceFinalizersRemaining')?.message,
    'Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
  )
  world.restart()
  const held = world.api.get(kinds.configMap, 'team', 'held') as ConfigMap
  world.api.update(kinds.configMap, { ...held, metadata: { ...held.metadata, finalizers: [] } })
  await world.settle()
  assert.equal(read(world, 'team'), undefined)
  world.stop()
})
