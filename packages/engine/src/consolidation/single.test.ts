import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aPod, aPool, aPoolInput, aType, times } from '../testing/builders.test-support.ts'
import { consolidate, type Instance, moves, refusals } from './consolidation.test-support.ts'

const type = aType('large', 4, 16)
const small = aType('small', 2, 8)
const full = { available: { cpu: 0, memory: 0, pods: 0 } }

/** A node of a pool that cannot be replaced by anything cheaper. */
const stuck = (pool: string): Instance => ({ type: small, pool, pods: [aPod()], node: full })
const poolsNamed = (...names: readonly string[]) =>
  names.map((name) => aPoolInput(aPool(name), [small, type]))

test('DIS-119 a search that ends before its first node names every pool, and the next one begins with those', () => {
  const story = {
    pools: poolsNamed('a', 'b', 'c'),
    instances: { one: stuck('a'), two: stuck('b'), three: stuck('c') },
  }
  const none = consolidate('single', { ...story, shouldStop: () => true })
  assert.equal(none.isTimedOut, true)
  assert.deepEqual(none.unseenPools, ['a', 'b', 'c'])
  assert.deepEqual([none.moves, none.findings], [[], []])
  let questions = 0
  const one = consolidate('single', {
    ...story,
    unseenPools: ['c'],
    shouldStop: () => ++questions > 1,
  })
  assert.deepEqual(refusals(one), { three: 'noCheaper' })
  assert.deepEqual(one.unseenPools, ['a', 'b'])
  const all = consolidate('single', { ...story, unseenPools: ['a', 'b'] })
  assert.deepEqual(Object.keys(refusals(all)).toSorted(), ['one', 'three', 'two'])
  assert.deepEqual([all.isTimedOut, all.unseenPools], [false, []])
})

test('DIS-171 a search that finds a move remembers the same pools as before', () => {
  const goes: Instance = { type, pool: 'a', pods: [aPod()], node: full }
  const result = consolidate('single', {
    pools: poolsNamed('a', 'b'),
    instances: { one: goes, two: stuck('b') },
    unseenPools: ['b', 'gone'],
  })
  assert.deepEqual(moves(result), [[['one'], ['small']]])
  assert.deepEqual(result.unseenPools, ['b', 'gone'])
})

test('a search that is stopped while it looks at its last node has timed out', () => {
  const pods = times(70, () => aPod({ cpu: '1m' }))
  let questions = 0
  const result = consolidate('single', {
    instances: { one: { type, pods, node: full } },
    types: [small, type],
    shouldStop: () => ++questions > 1,
  })
  assert.deepEqual([result.moves, result.isTimedOut], [[], true])
})

test('the nodes of all pools get their turn, the most money for the least disruption first', () => {
  const instance = (pool: string, disruptionCost: number): Instance => ({ ...stuck(pool), disruptionCost })
  const result = consolidate('single', {
    pools: poolsNamed('a', 'b'),
    instances: { a1: instance('a', 3), a2: instance('a', 2), b1: instance('b', 9), b2: instance('b', 8) },
  })
  assert.deepEqual(Object.keys(refusals(result)), ['a2', 'b2', 'a1', 'b1'])
})
