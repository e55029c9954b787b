import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { deletionCosts } from './deletion-costs.ts'

const names = (count: number) => Array.from({ length: count }, (_, at) => `node-${at}`)

test('costs rise in the order in which nodes go, and stay below 0', () => {
  const order = fc.shuffledSubarray(names(40))
  const present = fc.array(fc.tuple(fc.constantFrom(...names(40)), fc.integer({ min: -200_000, max: 10 })))
  fc.assert(
    fc.property(order, present, (nodes, costs) => {
      const found = nodes.map((node) => deletionCosts(nodes, new Map(costs)).get(node) ?? Number.NaN)
      for (const [at, cost] of found.entries()) {
        assert.ok(Number.isInteger(cost) && cost < 0 && cost >= -100_000)
        assert.ok(at === 0 || (found[at - 1] ?? 0) < cost)
      }
    }),
  )
})

test('WNT-36 a node that changes its place leaves the costs of all others as they are', () => {
  fc.assert(
    fc.property(fc.shuffledSubarray(names(500), { minLength: 1 }), fc.nat(), fc.nat(), (nodes, from, to) => {
      const before = deletionCosts(nodes, new Map())
      const moved = nodes[from % nodes.length] ?? ''
      const others = nodes.filter((node) => node !== moved)
      const after = deletionCosts(others.toSpliced(to % nodes.length, 0, moved), before)
      // Of neighbours that change places it may be the other one.
      assert.ok(nodes.filter((node) => after.get(node) !== before.get(node)).length <= 1)
    }),
    { numRuns: 50 },
  )
})

test('costs are numbered anew where there is no room between two, or below all', () => {
  const tight = new Map([
    ['a', -3],
    ['c', -2],
  ])
  assert.deepEqual([...deletionCosts(['a', 'b', 'c'], tight).values()], [-300, -200, -100])
  const low = new Map([['b', -100_000]])
  assert.deepEqual([...deletionCosts(['a', 'b'], low).values()], [-200, -100])
})
