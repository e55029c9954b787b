import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { hashOf } from './hash.ts'

type Labels = Readonly<Record<string, string>>

const vectors: readonly (readonly [labels: Labels | undefined, hash: string])[] = [
  [undefined, '7038317156814165261'],
  [{}, '14514438007709706818'],
  [{ team: 'platform' }, '6087620287897034290'],
  [{ team: 'data' }, '3789529822245891689'],
  [{ team: 'data', env: 'prod' }, '17528964774029852381'],
  [{ environment: 'production' }, '4476619082281928365'],
  [{ 'cost-center': 'platform-eng' }, '9163416918814906934'],
]

test('CLV-47 the vectors of the sheet', () => {
  for (const [labels, hash] of vectors)
    assert.equal(hashOf(labels === undefined ? {} : { labels }), hash, JSON.stringify(labels))
})

test('CLV-47 a class without spec, or whose labels are null, has no labels', () => {
  assert.equal(hashOf(undefined), hashOf({}))
  assert.equal(hashOf(JSON.parse('{"labels":null}')), hashOf({}))
})

const anyLabels = fc.uniqueArray(fc.tuple(fc.string(), fc.string()), {
  selector: ([key]) => key,
  maxLength: 8,
})

test('CLV-46 the order of labels does not matter', () => {
  fc.assert(
    fc.property(
      anyLabels.chain((entries) => fc.tuple(fc.constant(entries), shuffled(entries))),
      ([entries, others]) => {
        assert.equal(hashOf(ofEntries(others)), hashOf(ofEntries(entries)))
      },
    ),
  )
})

test('CLV-46 another value, another key, one label more or fewer give another hash', () => {
  fc.assert(
    fc.property(anyLabels, fc.string(), fc.string(), (entries, key, value) => {
      const rest = entries.filter(([each]) => each !== key)
      const labels = ofEntries([...rest, [key, value]])
      for (const other of [
        ofEntries(rest),
        ofEntries([...rest, [key, `${value}.`]]),
        ...(rest.some(([each]) => each === `${key}.`) ? [] : [ofEntries([...rest, [`${key}.`, value]])]),
      ])
        assert.notEqual(hashOf(other), hashOf(labels))
    }),
  )
})

/** Integers that begin a key come first in an object; those entries keep their order. */
function shuffled<T>(items: readonly T[]): fc.Arbitrary<T[]> {
  return fc.shuffledSubarray([...items], { minLength: items.length })
}

function ofEntries(entries: readonly (readonly [string, string])[]): { readonly labels: Labels } {
  return { labels: Object.fromEntries(entries) }
}
