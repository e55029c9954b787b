import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aPod, aType } from '../testing/builders.test-support.ts'
import { consolidate, moves, type Story } from './consolidation.test-support.ts'

const type = aType('only', 8, 32)

test('DIS-33 of two nodes for the same price the one with fewer pods goes first', () => {
  const instances = {
    crowded: { type, pods: [aPod(), aPod()] },
    quiet: { type, pods: [aPod()] },
    roomy: { type, stays: true },
  }
  const nodes = (names: readonly (keyof typeof instances)[]): Story => ({
    instances: Object.fromEntries(names.map((name) => [name, instances[name]])),
  })
  assert.deepEqual(moves(consolidate('single', nodes(['crowded', 'quiet', 'roomy']))), [[['quiet']]])
  assert.deepEqual(moves(consolidate('single', nodes(['quiet', 'crowded', 'roomy']))), [[['quiet']]])
})

test('DIS-34 the more money a node costs for its disruption the earlier it goes', () => {
  const node = (pricePerHour: number, disruptionCost: number) => ({
    type,
    pods: [aPod()],
    pricePerHour,
    disruptionCost,
  })
  // 0.13, 4 and 1.45 for each unit of disruption.
  const instances = {
    low: node(0.26, 2),
    high: node(4, 1),
    middle: node(4.35, 3),
    roomy: { type, stays: true },
  }
  const within = (search: 'multi' | 'single', budget: number) =>
    moves(consolidate(search, { instances, budgets: { default: budget } }))
  assert.deepEqual(within('single', 1), [[['high']]])
  assert.deepEqual(within('multi', 2), [[['high', 'middle']]])
  assert.deepEqual(within('multi', 3), [[['high', 'low', 'middle']]])
})
