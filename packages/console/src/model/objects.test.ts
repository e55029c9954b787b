/** Relations of objects, and the search for them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '@tenon/api'
import { ConsoleModel } from './model.ts'
import { objectPath, objectRefOf } from './object-ref.ts'

const nodeClassRef = { group: 'clouds.example', kind: 'ExampleNodeClass', name: 'default' }
const ofPool = { 'karpenter.sh/nodepool': 'web' }

function owned(name: string, kind: string, owner: string, node?: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'shop',
      labels: { 'pod-template-hash': '5d4' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind, name: owner, uid: owner, controller: true }],
    },
    spec: { containers: [], ...(node !== undefined && { nodeName: node }) },
    status: { phase: 'Running' },
  } as KubeObject
}

function aModel(): ConsoleModel {
  const model = new ConsoleModel()
  const replace = (resource: 'nodeclaims' | 'nodepools' | 'nodes' | 'pods', objects: readonly object[]) =>
    model.apply({ kind: 'replaced', resource, objects: objects as readonly KubeObject[] })
  replace('nodepools', [
    { metadata: { name: 'web' }, spec: { template: { spec: { nodeClassRef, requirements: [] } } } },
  ])
  replace('nodeclaims', [
    { metadata: { name: 'web-1', labels: ofPool }, spec: { nodeClassRef }, status: { providerID: 'x://1' } },
  ])
  replace('nodes', [
    { metadata: { name: 'n1', labels: ofPool }, spec: { providerID: 'x://1' } },
    { metadata: { name: '__proto__' } },
  ])
  replace('pods', [
    owned('web-5d4-a', 'ReplicaSet', 'web-5d4', 'n1'),
    owned('web-5d4-b', 'ReplicaSet', 'web-5d4'),
    owned('web-9c1-a', 'ReplicaSet', 'web-9c1', 'n1'),
    owned('db-0', 'StatefulSet', 'db', 'n1'),
  ])
  return model
}

test('PGE-7 relations lead from the class to the pods and back', () => {
  const model = aModel()
  const [pool, claim, node] = [
    { kind: 'NodePool', name: 'web' },
    { kind: 'NodeClaim', name: 'web-1' },
    { kind: 'Node', name: 'n1' },
  ]
  const { group, ...rest } = nodeClassRef
  const nodeClass = { ...rest, group }
  assert.deepEqual(model.relationsOf(nodeClass), { nodePools: [pool] })
  assert.deepEqual(model.relationsOf({ ...nodeClass, kind: 'Other' }), { nodePools: [] })
  assert.deepEqual(model.relationsOf({ kind: 'NodePool', name: 'web' }), { nodeClass })
  assert.deepEqual(model.relationsOf({ kind: 'NodeClaim', name: 'web-1' }), {
    nodeClass,
    nodePool: pool,
    node,
  })
  assert.deepEqual(model.relationsOf({ kind: 'Node', name: 'n1' }), { nodePool: pool, nodeClaim: claim })
  assert.deepEqual(model.relationsOf({ kind: 'Pod', namespace: 'shop', name: 'web-5d4-a' }), {
    node,
    owners: [
      { kind: 'ReplicaSet', namespace: 'shop', name: 'web-5d4' },
      { kind: 'Deployment', namespace: 'shop', name: 'web' },
    ],
  })
  for (const kind of ['Node', 'NodeClaim', 'NodePool', 'Pod', 'Deployment', '__proto__'])
    assert.deepEqual(model.relationsOf({ kind, name: 'constructor' }), {})
})

test('PGE-7 the pods of a workload are those of all its ReplicaSets, and follow changes', () => {
  const model = aModel()
  const podsOf = (kind: string, name: string) =>
    model.podsOf({ kind, namespace: 'shop', name }).map((pod) => pod.name)
  // The hash of the label is not in the name of the other ReplicaSet: it is its own owner.
  assert.deepEqual(podsOf('Deployment', 'web'), ['web-5d4-a', 'web-5d4-b'])
  assert.deepEqual(podsOf('ReplicaSet', 'web-5d4'), ['web-5d4-a', 'web-5d4-b'])
  assert.deepEqual(podsOf('ReplicaSet', 'web-9c1'), ['web-9c1-a'])
  assert.deepEqual(podsOf('StatefulSet', 'db'), ['db-0'])
  model.apply({ kind: 'set', resource: 'pods', object: owned('db-0', 'StatefulSet', 'store', 'n1') })
  model.apply({ kind: 'removed', resource: 'pods', namespace: 'shop', name: 'web-5d4-a' })
  assert.deepEqual([podsOf('StatefulSet', 'db'), podsOf('StatefulSet', 'store')], [[], ['db-0']])
  assert.deepEqual(podsOf('Deployment', 'web'), ['web-5d4-b'])
  assert.deepEqual(
    model.podsOn('n1').map(({ name }) => name),
    ['db-0', 'web-9c1-a'],
  )
})

test('PGE-8 a search finds all kinds: the name itself, its beginning, a part of it', () => {
  const model = aModel()
  const found = (text: string) => {
    const { objects, total } = model.search(text)
    return [total, ...objects.map(({ kind, name }) => `${kind} ${name}`)]
  }
  assert.deepEqual(found('WEB'), [
    7,
    'NodePool web',
    'Deployment web',
    'NodeClaim web-1',
    'ReplicaSet web-9c1',
    'Pod web-5d4-a',
    'Pod web-5d4-b',
    'Pod web-9c1-a',
  ])
  assert.deepEqual(found('shop/db'), [2, 'StatefulSet db', 'Pod db-0'])
  assert.deepEqual(found('5d4-b shop'), [1, 'Pod web-5d4-b'])
  assert.deepEqual(found('fault'), [1, 'ExampleNodeClass default'])
  assert.deepEqual(found('__proto__'), [1, 'Node __proto__'])
  for (const text of ['', '  ', '.*', 'nothing']) assert.deepEqual(found(text), [0])
})

test('PGE-8 thousands of one kind hide no other', () => {
  const model = aModel()
  for (let at = 0; at < 3000; at++)
    model.apply({
      kind: 'set',
      resource: 'nodes',
      object: { apiVersion: 'v1', kind: 'Node', metadata: { name: `web-${at}` } },
    })
  const { objects, total } = model.search('web')
  assert.equal(total, 3007)
  assert.equal(objects.length, 50)
  for (const kind of ['NodePool', 'NodeClaim', 'Deployment', 'Pod'])
    assert.ok(
      objects.some((each) => each.kind === kind),
      kind,
    )
  assert.equal(objects.filter(({ kind }) => kind === 'Node').length > 30, true)
})

test('PGE-7 an address names any object, and nothing else', () => {
  for (const ref of [
    { kind: 'Node', name: 'ip-10-0-0-1.internal' },
    { kind: 'Pod', namespace: 'a/b?&', name: '<img>#%2e&name=x' },
    nodeClassRef,
  ])
    assert.deepEqual(objectRefOf(new URL(objectPath(ref), 'http://x').searchParams), ref)
  for (const query of ['', 'kind=Node', 'name=a', `kind=Node&name=${'a'.repeat(513)}`])
    assert.equal(objectRefOf(new URLSearchParams(query)), undefined)
})
