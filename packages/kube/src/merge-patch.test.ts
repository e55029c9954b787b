import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mergePatchOf } from './merge-patch.ts'

test('equal objects need no patch, whatever the order of their fields', () => {
  assert.equal(mergePatchOf({ a: 1, b: { c: [1, { d: 2 }] } }, { b: { c: [1, { d: 2 }] }, a: 1 }), undefined)
  assert.equal(mergePatchOf({ a: undefined }, {}), undefined)
  assert.equal(mergePatchOf({}, { a: null }), undefined)
})

test('a patch names only what differs', () => {
  const before = { metadata: { labels: { a: '1', b: '2' } }, spec: { taints: [{ key: 'x' }], paused: false } }
  const after = { metadata: { labels: { a: '1', c: '3' } }, spec: { taints: [{ key: 'x' }], paused: true } }
  assert.deepEqual(mergePatchOf(before, after), {
    metadata: { labels: { b: null, c: '3' } },
    spec: { paused: true },
  })
})

test('arrays are replaced whole and removed fields become null', () => {
  assert.deepEqual(mergePatchOf({ list: [1, 2], gone: { deep: 1 } }, { list: [1, 2, 3] }), {
    list: [1, 2, 3],
    gone: null,
  })
})

test('an object that replaces another kind of value is written whole', () => {
  assert.deepEqual(mergePatchOf({ a: 'text' }, { a: { b: 1, c: undefined } }), { a: { b: 1 } })
  assert.deepEqual(mergePatchOf({ a: { b: 1 } }, { a: 'text' }), { a: 'text' })
})
