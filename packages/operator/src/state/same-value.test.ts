import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSameValue, reusing } from './same-value.ts'

test('values are the same when they say the same, in whatever order their fields are', () => {
  assert.ok(isSameValue({ a: 1, b: [{ c: null }] }, { b: [{ c: null }], a: 1 }))
  assert.ok(isSameValue({ a: 1, b: undefined }, { a: 1 }))
  const others: readonly (readonly [unknown, unknown])[] = [
    [{ a: 1 }, { a: 2 }],
    [{ a: 1 }, { a: 1, b: 1 }],
    [{ a: 1, b: 1 }, { a: 1 }],
    [
      { a: undefined, b: 1 },
      { a: 1, b: undefined },
    ],
    [[1, 2], [1]],
    [[1], [1, 2]],
    [[], {}],
    [{}, []],
    [null, {}],
    [{}, null],
    ['1', 1],
    [undefined, null],
  ]
  for (const [a, b] of others) assert.ok(!isSameValue(a, b), `${JSON.stringify(a)} ${JSON.stringify(b)}`)
})

test('what stayed as it was stays one object, and what changed is as it is now', () => {
  const held = { labels: { a: 'b' }, list: [{ x: 1 }, { y: 2 }], count: 1 }
  assert.equal(reusing(structuredClone(held), held), held)
  const next = { labels: { a: 'b' }, list: [{ x: 1 }, { y: 3 }], count: 2 }
  const mixed = reusing(next, held)
  assert.deepEqual(mixed, next)
  assert.deepEqual([mixed.labels === held.labels, mixed.list[0] === held.list[0]], [true, true])
})

test('nothing of the earlier value is left that the present one has not', () => {
  const held = { a: { b: 1, c: 2 }, d: [1, 2, 3], e: null }
  for (const next of [
    {},
    { a: {} },
    { a: { b: 1 }, d: [1, 2] },
    { a: [], d: {}, e: {} },
    { a: null, d: 'x' },
  ])
    assert.deepEqual(reusing<unknown>(next, held), next)
  assert.deepEqual(reusing<unknown>([1], [1, 2]), [1])
  assert.equal(reusing<unknown>('x', { a: 1 }), 'x')
})
