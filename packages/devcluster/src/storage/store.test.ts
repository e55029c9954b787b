import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom, VirtualClock } from '@tenon/runtime'
import type { StoredObject } from '../contract.ts'
import { keyOf, namespacePrefix } from './collection.ts'
import { SortedKeys } from './sorted-keys.ts'
import { Store } from './store.ts'

function anObject(namespace: string, name: string): StoredObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } }
}

function names(store: Store, options: { prefix?: string; after?: string; revision?: number } = {}): string[] {
  const found: string[] = []
  store
    .collection('configmaps')
    .scan(options, ({ metadata }) => found.push(`${metadata.namespace}/${metadata.name}`) > 0)
  return found
}

test('keys come in order whatever the order of insertions and removals', () => {
  const random = new SeededRandom(7)
  const keys = new SortedKeys()
  const expected = new Set<string>()
  for (let step = 0; step < 20_000; step++) {
    const key = `key-${random.uint32() % 3000}`
    if (random.uint32() % 3 === 0) {
      keys.delete(key)
      expected.delete(key)
    } else {
      keys.add(key)
      expected.add(key)
    }
  }
  const visited: string[] = []
  keys.visitFrom('', (key) => visited.push(key) > 0)
  assert.deepEqual(visited, [...expected].sort())
  assert.equal(keys.size, expected.size)
  const start = 'key-15'
  const tail: string[] = []
  keys.visitFrom(start, (key) => tail.push(key) > 0)
  assert.deepEqual(
    tail,
    visited.filter((key) => key >= start),
  )
})

test('objects are listed by namespace and then by name', () => {
  const store = new Store({ clock: new VirtualClock() })
  for (const [namespace, name] of [
    ['b', 'x'],
    ['a-b', 'x'],
    ['a', 'z'],
    ['a', 'y'],
  ] as const)
    store.put(store.collection('configmaps'), keyOf(namespace, name), anObject(namespace, name))
  assert.deepEqual(names(store), ['a/y', 'a/z', 'a-b/x', 'b/x'])
  assert.deepEqual(names(store, { prefix: namespacePrefix('a') }), ['a/y', 'a/z'])
})

test('a past revision shows what was there then, also of removed and later objects', () => {
  const store = new Store({ clock: new VirtualClock() })
  const collection = store.collection('configmaps')
  for (const name of ['a', 'c', 'e']) store.put(collection, keyOf('n', name), anObject('n', name))
  const { revision } = store
  store.remove(collection, keyOf('n', 'a'))
  store.remove(collection, keyOf('n', 'e'))
  store.put(collection, keyOf('n', 'b'), anObject('n', 'b'))
  assert.deepEqual(names(store), ['n/b', 'n/c'])
  assert.deepEqual(names(store, { revision }), ['n/a', 'n/c', 'n/e'])
  assert.deepEqual(names(store, { revision, after: keyOf('n', 'a') }), ['n/c', 'n/e'])
})

test('history is bounded by count and by age', async () => {
  const clock = new VirtualClock()
  const store = new Store({ clock, retention: { maxChanges: 3, maxAgeMs: 1000 } })
  const collection = store.collection('configmaps')
  for (const name of ['a', 'b', 'c', 'd', 'e']) store.put(collection, keyOf('n', name), anObject('n', name))
  assert.equal(collection.changesAfter(1), undefined)
  assert.deepEqual(
    collection.changesAfter(2)?.map(({ revision }) => revision),
    [3, 4, 5],
  )
  await clock.advance(2000)
  store.put(collection, keyOf('n', 'f'), anObject('n', 'f'))
  assert.equal(collection.changesAfter(4), undefined)
  assert.deepEqual(
    collection.changesAfter(5)?.map(({ revision }) => revision),
    [6],
  )
})
