/** How a value follows a list. */
export interface TallyRules<Item, Value> {
  /** The value of an empty list. */
  readonly begin: () => Value
  /** Changes the value by an item that has come (1), or takes that back when it has gone (-1). */
  readonly count: (value: Value, item: Item, by: 1 | -1) => void
}

/**
 * Works something out of a list that is asked about time and again, and mostly is as it was: of each list only what is
 * not in the one before is looked at. Items never change; who changes one puts another in its place.
 */
export class Tally<Item extends object, Value> {
  readonly #rules: TallyRules<Item, Value>
  #last: { readonly items: readonly Item[]; readonly value: Value } | undefined

  constructor(rules: TallyRules<Item, Value>) {
    this.#rules = rules
  }

  /**
   * Costs as much as there are items that differ, and one look at each place.
   * @param items never changed after they were given; none of them twice.
   * @returns the value, which is changed when another list is asked about.
   */
  of(items: readonly Item[]): Value {
    const { begin, count } = this.#rules
    const { items: before, value } = this.#last ?? { items: [], value: begin() }
    if (before !== items || this.#last === undefined) {
      // What is worked out only in part is worked out anew the next time.
      this.#last = undefined
      const { gone, come } = differences(before, items)
      for (const item of gone) count(value, item, -1)
      for (const item of come) count(value, item, 1)
      this.#last = { items, value }
    }
    return value
  }
}

interface Differences<Item> {
  /** What is not in the later list, or elsewhere in it. */
  readonly gone: readonly Item[]
  /** What is not in the earlier list, or was elsewhere in it. */
  readonly come: readonly Item[]
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
      gone: earlier.filter((item, at) => item !== later[at]),
      come: later.filter((item, at) => item !== earlier[at]),
    }
  const gone = new Set(earlier)
  const come = later.filter((item) => !gone.delete(item))
  return { gone: [...gone], come }
}
