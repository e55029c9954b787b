/** The items of largest weight, and the sum of the others: memory stays bounded. */
export class Extremes<T> {
  readonly #most: number
  readonly #weightOf: (item: T) => number
  #items: T[] = []
  #others = { count: 0, sum: 0 }

  /** @param weightOf its sign does not matter for the order, and counts in the sum. */
  constructor(most: number, weightOf: (item: T) => number) {
    this.#most = most
    this.#weightOf = weightOf
  }

  add(item: T): void {
    this.#items.push(item)
    if (this.#items.length >= 2 * this.#most) this.#cut()
  }

  /** Largest first. */
  result(): {
    readonly items: readonly T[]
    readonly others: { readonly count: number; readonly sum: number }
  } {
    this.#cut()
    return { items: this.#items, others: this.#others }
  }

  #cut(): void {
    const sorted = this.#items.toSorted((a, b) => Math.abs(this.#weightOf(b)) - Math.abs(this.#weightOf(a)))
    const rest = sorted.splice(this.#most)
    this.#items = sorted
    this.#others = {
      count: this.#others.count + rest.length,
      sum: rest.reduce((sum, item) => sum + this.#weightOf(item), this.#others.sum),
    }
  }
}
