/** Since when candidates have been skipped in every loop for lack of time (cluster-autoscaler.md 7.3). */
export class SkippedNodes {
  #sinceMs: ReadonlyMap<string, number> = new Map()

  /** @param names of the nodes that this loop skipped. */
  update(names: readonly string[], nowMs: number): void {
    this.#sinceMs = new Map(names.map((name) => [name, this.#sinceMs.get(name) ?? nowMs]))
  }

  /** The longest time of all; 0 if none was skipped. */
  longestMs(nowMs: number): number {
    return [...this.#sinceMs.values()].reduce((longest, sinceMs) => Math.max(longest, nowMs - sinceMs), 0)
  }
}
