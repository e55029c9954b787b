/** What loops ask for again and again costs nothing while nothing changes. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { aClaim, aNode, aPod } from './nodes/nodes.test-support.ts'
import { ObservedCluster } from './observed-cluster.test-support.ts'

const node = aNode('node', { providerID: 'p://1', pool: 'default' })
const claim = aClaim('claim', { providerID: 'p://1' })

function cluster(): ObservedCluster {
  const observed = new ObservedCluster()
  observed.see(node, claim)
  return observed
}

describe('at rest', () => {
  test('instances are joined once, whatever becomes of pods', () => {
    const observed = cluster()
    const before = observed.state.stateNodes()
    observed.see(aPod('pod', 'node'))
    assert.equal(observed.state.stateNodes(), before)
  })

  test('instances are joined anew after each change of a Node, a claim or a mark', () => {
    const observed = cluster()
    const { state } = observed
    const isMarked = () => state.stateNodes().map(({ isMarkedForDeletion }) => isMarkedForDeletion)
    assert.deepEqual(isMarked(), [false])
    state.mark('p://1')
    assert.deepEqual(isMarked(), [true])
    state.unmark('p://1')
    assert.deepEqual(isMarked(), [false])
    observed.see({ ...claim, metadata: { ...claim.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } })
    assert.deepEqual(isMarked(), [true])
    observed.miss(claim)
    assert.deepEqual(isMarked(), [false])
    observed.miss(node)
    assert.deepEqual(isMarked(), [])
  })

  test('a mark goes with its claim, and so does what it made of the instance', () => {
    const observed = cluster()
    observed.state.mark('p://1')
    assert.equal(observed.state.stateNodes()[0]?.isMarkedForDeletion, true)
    observed.miss(claim)
    assert.equal(observed.state.stateNodes()[0]?.isMarkedForDeletion, false)
  })

  test('RPB-42 an instance counts as going once the deletion of its claim is accepted, however late the cache is', () => {
    const observed = cluster()
    const isGoing = () => observed.state.stateNodes()[0]?.isMarkedForDeletion
    assert.ok(observed.state.noteDeletion(claim))
    assert.equal(isGoing(), true)
    assert.equal(observed.state.noteDeletion(claim), false)
    observed.miss(claim)
    assert.equal(isGoing(), false)
    assert.ok(observed.state.noteDeletion(claim), 'one that is gone is not found again')
    assert.equal(isGoing(), false)
  })

  test('whoever hears of a change of an instance is answered from after it', () => {
    const observed = cluster()
    const { state, caches } = observed
    const seen: (readonly string[])[] = []
    const note = () => {
      seen.push(state.stateNodes().map(({ name }) => name))
    }
    caches.nodes.onChange(note)
    caches.nodeClaims.onChange(note)
    seen.length = 0
    observed.see(aNode('another', { providerID: 'p://2', pool: 'default' }))
    observed.see(aClaim('other-claim', { providerID: 'p://2' }))
    assert.deepEqual(seen, [
      ['another', 'node'],
      ['another', 'node'],
    ])
  })

  test('a claim counts as unlaunched until it has a provider ID, goes away or is gone', () => {
    const observed = new ObservedCluster()
    const names = () => observed.state.unlaunched().map(({ metadata }) => metadata.name)
    const fresh = ['launched', 'deleting', 'gone', 'waiting'].map((name) => aClaim(name))
    observed.see(...fresh)
    assert.deepEqual(names(), ['launched', 'deleting', 'gone', 'waiting'])
    observed.see(aClaim('launched', { providerID: 'p://1' }))
    observed.see(aClaim('deleting', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }))
    observed.miss(aClaim('gone'))
    assert.deepEqual(names(), ['waiting'])
    assert.equal(observed.state.synced(), false)
    observed.see(aClaim('waiting', { providerID: 'p://4' }))
    assert.equal(observed.state.synced(), true)
  })
})
