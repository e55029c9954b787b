/** Keeps rows sorted incrementally: a change costs time in proportion to the changed rows, not to all of them. */

interface Keyed<R> {
  readonly key: string | number
  readonly row: R
}

/** How to select and sort rows. */
export interface RowOrder<R> {
  readonly keeps: (row: R) => boolean
  /** Rows with equal keys are sorted by id. */
  readonly keyOf: (row: R) => string | number
  readonly isReversed: boolean
}

export class OrderedRows<R extends { readonly id: string }> {
  readonly #order: RowOrder<R>
  #keyed: Keyed<R>[]
  readonly #byId = new Map<string, Keyed<R>>()
  #rows: readonly R[] | undefined

  constructor(rows: Iterable<R>, order: RowOrder<R>) {
    this.#order = order
    this.#keyed = []
    for (const row of rows) {
      if (!order.keeps(row)) continue
      const keyed = { row, key: order.keyOf(row) }
      this.#keyed.push(keyed)
      this.#byId.set(row.id, keyed)
    }
    this.#keyed.sort((a, b) => this.#compare(a, b))
  }

  /** Sorted; the same array until something changes. */
  rows(): readonly R[] {
    this.#rows ??= this.#keyed.map(({ row }) => row)
    return this.#rows
  }

  set(row: R): void {
    const held = this.#byId.get(row.id)
    if (!this.#order.keeps(row)) {
      this.delete(row.id)
      return
    }
    const keyed = { row, key: this.#order.keyOf(row) }
    if (held !== undefined && held.key === keyed.key) this.#keyed[this.#placeOf(held)] = keyed
    else {
      this.delete(row.id)
      this.#keyed.splice(this.#placeOf(keyed), 0, keyed)
    }
    this.#byId.set(row.id, keyed)
    this.#rows = undefined
  }

  delete(id: string): void {
    const held = this.#byId.get(id)
    if (held === undefined) return
    this.#keyed.splice(this.#placeOf(held), 1)
    this.#byId.delete(id)
    this.#rows = undefined
  }

  /** The index where it is, or where it would be inserted. */
  #placeOf(keyed: Keyed<R>): number {
    let [low, high] = [0, this.#keyed.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      const other = this.#keyed[middle]
      if (other !== undefined && this.#compare(other, keyed) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  #compare(a: Keyed<R>, b: Keyed<R>): number {
    if (a.key !== b.key) return (a.key < b.key ? -1 : 1) * (this.#order.isReversed ? -1 : 1)
    return a.row.id < b.row.id ? -1 : a.row.id > b.row.id ? 1 : 0
  }
}
