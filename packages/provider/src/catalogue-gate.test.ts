import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { CatalogueGate } from './catalogue-gate.ts'

const minute = 60_000
const names = ['a', 'b', 'c', 'd', 'e', 'f']

async function kindsOf(
  gate: CatalogueGate,
  clock: VirtualClock,
  lists: readonly (readonly [afterMinutes: number, names: readonly string[]])[],
): Promise<readonly string[]> {
  const kinds: string[] = []
  for (const [afterMinutes, told] of lists) {
    await clock.advance(afterMinutes * minute)
    kinds.push(gate.judge(told).kind)
  }
  return kinds
}

test('RPT-38 a list that is empty, or lacks half of the one before, is kept out until ten minutes have said the same', async () => {
  for (const smaller of [[], ['a'], ['a', 'b', 'c'], ['x', 'y', 'z', 'u', 'v', 'w']]) {
    const clock = new VirtualClock()
    const kinds = await kindsOf(new CatalogueGate(clock), clock, [
      [0, names],
      [1, smaller],
      [9, smaller],
      [1, smaller],
    ])
    assert.deepEqual(kinds, ['taken', 'keptOut', 'keptOut', 'taken'], JSON.stringify(smaller))
  }
})

test('RPT-38 a whole list between two smaller ones starts the ten minutes again', async () => {
  const clock = new VirtualClock()
  const kinds = await kindsOf(new CatalogueGate(clock), clock, [
    [0, names],
    [1, []],
    [9, names],
    [1, []],
    [9, []],
    [1, []],
  ])
  assert.deepEqual(kinds, ['taken', 'keptOut', 'taken', 'keptOut', 'keptOut', 'taken'])
})

test('RPT-38 a list that is a little smaller, larger, or the first one is taken', async () => {
  const clock = new VirtualClock()
  const kinds = await kindsOf(new CatalogueGate(clock), clock, [
    [0, names],
    [1, names.slice(1)],
    [1, [...names, 'g']],
  ])
  assert.deepEqual(kinds, ['taken', 'taken', 'taken'])
})

test('RPT-38 after a start the types of the instances that exist are what a list is held against', async () => {
  const clock = new VirtualClock()
  const gate = new CatalogueGate(clock, () => ['a', 'b', 'c'])
  assert.deepEqual(
    await kindsOf(gate, clock, [
      [0, ['c', 'd', 'e']],
      [1, names],
    ]),
    ['keptOut', 'taken'],
  )
  assert.equal(new CatalogueGate(clock).judge([]).kind, 'keptOut')
})
