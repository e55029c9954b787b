/** Rows with change tracking. */

/** Rows of one kind by id. */
export class ChangingTable<R extends { readonly id: string }> {
  readonly #rows = new Map<string, R>()
  readonly #changed = new Set<string>()

  get(id: string): R | undefined {
    return this.#rows.get(id)
  }

  rows(): readonly R[] {
    return [...this.#rows.values()]
  }

  /** @returns whether the row has changed. */
  set(row: R): boolean {
    const held = this.#rows.get(row.id)
    if (held !== undefined && JSON.stringify(held) === JSON.stringify(row)) return false
    this.#rows.set(row.id, row)
    this.#changed.add(row.id)
    return true
  }

  delete(id: string): void {
    if (this.#rows.delete(id)) this.#changed.add(id)
  }

  /** Changes since the last call; undefined if there are none. */
  taken(): { readonly set: readonly R[]; readonly removed: readonly string[] } | undefined {
    if (this.#changed.size === 0) return undefined
    const [set, removed]: [R[], string[]] = [[], []]
    for (const id of this.#changed) {
      const row = this.#rows.get(id)
      if (row === undefined) removed.push(id)
      else set.push(row)
    }
    this.#changed.clear()
    return { set, removed }
  }
}
