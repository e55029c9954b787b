/** How to aggregate a list. */
export interface TallyRules<Item, Value> {
  /** The aggregate of an empty list. */
  readonly begin: () => Value
  /** Adds an item to the aggregate (1) or removes it (-1). */
  readonly count: (value: Value, item: Item, by: 1 | -1) => void
}

/**
 * Aggregates a list that is read again and again and rarely changes: only items that differ from the previous
 * list are counted. Items are immutable; a changed item is a new object.
 */
export class Tally<Item extends object, Value> {
  readonly #rules: TallyRules<Item, Value>
  #last: { readonly items: readonly Item[]; readonly value: Value } | undefined

  constructor(rules: TallyRules<Item, Value>) {
    this.#rules = rules
  }

  /**
   * Takes time in proportion to the items that differ, plus one comparison per item.
   * @param items must not change after the call and contain no item twice.
   * @returns the aggregate, which the next call changes in place.
   */
  of(items: readonly Item[]): Value {
    const { begin, count } = this.#rules
    const { items: before, value } = this.#last ?? { items: [], value: begin() }
    if (before !== items || this.#last === undefined) {
      // If counting throws, the next call starts from scratch.
      this.#last = undefined
      const { removed, added } = differences(before, items)
      for (const item of removed) count(value, item, -1)
      for (const item of added) count(value, item, 1)
      this.#last = { items, value }
    }
    return value
  }
}

interface Differences<Item> {
  /** Items that are missing in the later list, or moved. */
  readonly removed: readonly Item[]
  /** Items that are missing in the earlier list, or moved. */
  readonly added: readonly Item[]
}

function differences<Item extends object>(
  before: readonly Item[],
  after: readonly Item[],
): Differences<Item> {
  const most = Math.min(before.length, after.length)
  let start = 0
  while (start < most && before[start] === after[start]) start++
  let same = 0
  while (same < most - start && before[before.length - 1 - same] === after[after.length - 1 - same]) same++
  const earlier = before.slice(start, before.length - same)
  const later = after.slice(start, after.length - same)
  if (earlier.length === later.length)
    return {
      removed: earlier.filter((item, at) => item !== later[at]),
      added: later.filter((item, at) => item !== earlier[at]),
    }
  const removed = new Set(earlier)
  const added = later.filter((item) => !removed.delete(item))
  return { removed: [...removed], added }
}
