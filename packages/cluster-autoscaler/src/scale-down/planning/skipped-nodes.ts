/** Since when candidates have not been looked at, because time was over before (cluster-autoscaler.md 7.3). */
export class SkippedNodes {
  #sinceMs: ReadonlyMap<string, number> = new Map()

  /** @param names of the nodes that this loop left out. */
  update(names: readonly string[], nowMs: number): void {
    this.#sinceMs = new Map(names.map((name) => [name, this.#sinceMs.get(name) ?? nowMs]))
  }

  /** The longest time of all; 0 when none was left out. */
  longestMs(nowMs: number): number {
    return [...this.#sinceMs.values()].reduce((longest, sinceMs) => Math.max(longest, nowMs - sinceMs), 0)
  }
}
