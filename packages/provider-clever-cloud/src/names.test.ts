import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstNodeOf, nodeGroupIn, providerIdOf } from './names.ts'

test('a provider ID names a NodeGroup, and nothing else does', () => {
  assert.equal(nodeGroupIn(providerIdOf('default-x7k2p')), 'default-x7k2p')
  for (const other of ['', 'clevercloud://', 'aws:///x', 'default-x7k2p', 'CLEVERCLOUD://x'])
    assert.equal(nodeGroupIn(other), undefined, other)
})

test('the only node of a NodeGroup is its node 0', () => {
  assert.equal(firstNodeOf('default-x7k2p'), 'default-x7k2p-node0')
})
