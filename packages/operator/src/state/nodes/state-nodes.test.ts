import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type Node, type NodeClaim } from '@tenon/api'
import { integerBetween, SeededRandom } from '@tenon/runtime'
import { StateNodes } from './state-nodes.ts'
import { nodeClassKind, ObservedCluster } from '../observed-cluster.test-support.ts'

const ids = ['', 'p://a', 'p://b', 'p://c', 'node-1']

function aNode(name: string, providerID: string, tags: Readonly<Record<string, string>>): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, uid: name, labels: tags },
    ...(providerID !== '' && { spec: { providerID } }),
  }
}

function aClaim(name: string, providerID: string, kind: string): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name, uid: name },
    spec: { nodeClassRef: { group: nodeClassKind.group, kind, name: 'x' }, requirements: [] },
    ...(providerID !== '' && { status: { providerID } }),
  }
}

test('whatever changes, the instances are those that all objects together make', () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = new SeededRandom(seed)
    const one = <T>(of: readonly T[]): T => of[integerBetween(random, 0, of.length - 1)] as T
    const cluster = new ObservedCluster()
    const { caches, state } = cluster
    const marked = new Set<string>()
    for (let step = 0; step < 60; step++) {
      const id = one(ids)
      const nodes = caches.nodes.list()
      const claims = caches.nodeClaims.list()
      const act = integerBetween(random, 0, 9)
      if (act === 0 && nodes.length > 0) cluster.miss(one(nodes))
      else if (act === 1 && claims.length > 0) {
        const gone = one(claims)
        cluster.miss(gone)
        // Its mark goes with it.
        marked.delete(gone.status?.providerID ?? '')
      } else if (act === 2) {
        state.mark(id)
        marked.add(id)
      } else if (act === 3) {
        state.unmark(id)
        marked.delete(id)
      } else if (act < 7) {
        const tags = one([{}, { [labels.nodePool]: 'g' }, { [labels.registered]: 'true' }])
        cluster.see(aNode(one(['node-1', 'node-2', 'node-3']), id, tags))
      } else
        cluster.see(aClaim(one(['a', 'b', 'c']), id, one([nodeClassKind.kind, nodeClassKind.kind, 'Other'])))
      const isMarked = (providerID: string) => marked.has(providerID)
      const afresh = new StateNodes(caches, { isManaged: (claim) => state.isManaged(claim), isMarked })
      assert.deepEqual(state.stateNodes(), afresh.all(), `seed ${seed}, step ${step}`)
    }
  }
})

test('a change of one instance leaves the others the objects that they are', () => {
  const cluster = new ObservedCluster()
  const { state } = cluster
  cluster.see(aNode('node-1', 'p://a', {}), aNode('node-2', 'p://b', {}), aNode('node-3', 'p://c', {}))
  const before = state.stateNodes()
  assert.equal(state.stateNodes(), before)
  cluster.see(aNode('node-2', 'p://b', { changed: 'yes' }))
  const after = state.stateNodes()
  assert.deepEqual(
    [after[0] === before[0], after[1] === before[1], after[2] === before[2]],
    [true, false, true],
  )
  assert.equal(after[1]?.node?.metadata.labels?.['changed'], 'yes')
  state.mark('p://c')
  assert.deepEqual(
    state.stateNodes().map(({ isMarkedForDeletion }) => isMarkedForDeletion),
    [false, false, true],
  )
})
