/** Which entries of a journal are new: after a cut, those before it are read again. */
export class NewEntries {
  #lastMs = Number.NEGATIVE_INFINITY
  /** IDs of the entries of that time. */
  #lastIds = new Set<string>()

  /**
   * Entries are taken oldest first.
   * @returns whether it is no older than the last, and was not taken before; false without a time (NaN).
   */
  take(id: string, atMs: number): boolean {
    if (!(atMs >= this.#lastMs) || (atMs === this.#lastMs && this.#lastIds.has(id))) return false
    if (atMs > this.#lastMs) this.#lastIds = new Set()
    this.#lastMs = atMs
    this.#lastIds.add(id)
    return true
  }
}
