import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type FieldSet, intersection, leaf, sortedSet, subtract, union } from './field-set.ts'

const element = fc.constantFrom('f:a', 'f:b', 'f:c', 'k:{"name":"x"}', 'v:"y"')

function branch(children: fc.Arbitrary<FieldSet>): fc.Arbitrary<Record<string, FieldSet>> {
  return fc.dictionary(element, children, { minKeys: 1, maxKeys: 4 })
}

/** A node below the root: a leaf, or a branch that may be a member itself. */
function below(depth: number): fc.Arbitrary<FieldSet> {
  if (depth === 0) return fc.constant(leaf)
  const inner = fc.tuple(branch(below(depth - 1)), fc.boolean())
  return fc.oneof(
    fc.constant(leaf),
    inner.map(([children, isMember]) => (isMember ? { '.': leaf, ...children } : children)),
  )
}

const fieldSet: fc.Arbitrary<FieldSet> = branch(below(2))

/** The members as plain texts, found without the code under test. */
function members(set: FieldSet | undefined, path = ''): ReadonlySet<string> {
  const found = new Set<string>()
  for (const [key, child] of Object.entries(set ?? {})) {
    if (key === '.') continue
    const at = `${path}/${key}`
    if (Object.keys(child).length === 0 || '.' in child) found.add(at)
    for (const member of members(child, at)) found.add(member)
  }
  return found
}

type Operation = (a: FieldSet, b: FieldSet) => FieldSet | undefined
type Expected = (a: ReadonlySet<string>, b: ReadonlySet<string>) => ReadonlySet<string>

function holds(operation: Operation, expected: Expected): void {
  fc.assert(
    fc.property(fieldSet, fieldSet, (a, b) => {
      const before = JSON.stringify([a, b])
      assert.deepEqual(members(operation(a, b)), expected(members(a), members(b)))
      assert.equal(JSON.stringify([a, b]), before)
    }),
  )
}

test('the union has what either set has', () => {
  holds(union, (a, b) => a.union(b))
})

test('the intersection has what both sets have', () => {
  holds(intersection, (a, b) => a.intersection(b))
})

test('subtraction leaves what only the first set has', () => {
  holds(subtract, (a, b) => a.difference(b))
})

test('sorting keeps the members and depends on nothing but them', () => {
  holds(sortedSet, (a) => a)
  const reversed = (set: FieldSet): FieldSet =>
    Object.fromEntries(
      Object.entries(set)
        .toReversed()
        .map(([key, child]) => [key, reversed(child)]),
    )
  fc.assert(
    fc.property(fieldSet, (set) => {
      assert.equal(JSON.stringify(sortedSet(set)), JSON.stringify(sortedSet(reversed(set))))
    }),
  )
})
