/** Keys per block: large enough that blocks are few, small enough that inserting is cheap. */
const blockLimit = 512

/**
 * A sorted set of strings in blocks (a two-level B-tree): lookups are binary searches, and an insertion or removal
 * moves at most one block of keys.
 */
export class SortedKeys {
  readonly #blocks: string[][] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Adds a key; does nothing when it is there. */
  add(key: string): void {
    if (this.#blocks.length === 0) {
      this.#blocks.push([key])
      this.#size = 1
      return
    }
    const index = this.#blockFor(key)
    const block = this.#blocks[index] as string[]
    const position = lowerBound(block, key)
    if (block[position] === key) return
    block.splice(position, 0, key)
    this.#size++
    if (block.length > blockLimit) this.#blocks.splice(index + 1, 0, block.splice(blockLimit / 2))
  }

  /** Removes a key; does nothing when it is not there. */
  delete(key: string): void {
    if (this.#blocks.length === 0) return
    const index = this.#blockFor(key)
    const block = this.#blocks[index] as string[]
    const position = lowerBound(block, key)
    if (block[position] !== key) return
    block.splice(position, 1)
    this.#size--
    if (block.length === 0) this.#blocks.splice(index, 1)
  }

  /** Calls `visit` for every key from `start` on, in order, until it returns false. */
  visitFrom(start: string, visit: (key: string) => boolean): void {
    if (this.#blocks.length === 0) return
    let index = this.#blockFor(start)
    let position = lowerBound(this.#blocks[index] as string[], start)
    for (; index < this.#blocks.length; index++) {
      const block = this.#blocks[index] as string[]
      for (; position < block.length; position++) {
        if (!visit(block[position] as string)) return
      }
      position = 0
    }
  }

  /** The last block that begins at or before `key`. */
  #blockFor(key: string): number {
    let low = 0
    let high = this.#blocks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#blocks[middle]?.[0] as string) <= key) low = middle
      else high = middle - 1
    }
    return low
  }
}

/** Index of the first key that is not less than `key`. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((keys[middle] as string) < key) low = middle + 1
    else high = middle
  }
  return low
}
