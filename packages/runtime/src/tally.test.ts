import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from 'fast-check'
import { Tally } from './tally.ts'

interface Item {
  readonly name: string
  readonly amount: number
}

const items: readonly Item[] = Array.from({ length: 12 }, (_, at) => ({ name: `item-${at}`, amount: at }))
const lists = fc.array(fc.shuffledSubarray([...items]), { maxLength: 20 })

/** Sums by name, so that an item that is there counts even while its amount is 0. */
const sums = () =>
  new Tally<Item, Map<string, number>>({
    begin: () => new Map(),
    count: (value, { name, amount }, by) => {
      if (by === 1) value.set(name, (value.get(name) ?? 0) + amount)
      else value.delete(name)
    },
  })

describe('what follows a list', () => {
  test('is what the list alone would give, whatever lists came before', () => {
    fc.assert(
      fc.property(lists, (all) => {
        const tally = sums()
        for (const list of all)
          assert.deepEqual(tally.of(list), new Map(list.map(({ name, amount }) => [name, amount])))
      }),
      { numRuns: 500 },
    )
  })

  test('looks at nothing but what has come and gone', () => {
    const seen: string[] = []
    const tally = new Tally<Item, readonly never[]>({
      begin: () => [],
      count: (_, { name }, by) => {
        seen.push(`${by === 1 ? '+' : '-'}${name}`)
      },
    })
    tally.of(items)
    seen.length = 0
    const other = { name: 'other', amount: 1 }
    tally.of(items.with(5, other))
    tally.of([...items.slice(0, 5), ...items.slice(6)])
    assert.deepEqual(seen, ['-item-5', '+other', '-other'])
  })

  test('is worked out anew after something went wrong on the way', () => {
    let isBroken = true
    const tally = new Tally<Item, Set<string>>({
      begin: () => new Set(),
      count: (value, { name }, by) => {
        if (isBroken && name === 'item-3') throw new Error('cannot be read')
        if (by === 1) value.add(name)
        else value.delete(name)
      },
    })
    assert.throws(() => tally.of(items), /cannot be read/)
    isBroken = false
    assert.deepEqual(
      [...tally.of(items.slice(2))],
      items.slice(2).map(({ name }) => name),
    )
  })
})
