/** Where pods found a place in the last loop: most find the same one again. */
import type { Pod } from '@tenon/api'

export class PlacementHints {
  #last = new Map<string, string>()
  #next = new Map<string, string>()

  of(pod: Pod): string | undefined {
    return this.#last.get(pod.metadata.uid ?? '')
  }

  remember(pod: Pod, nodeName: string): void {
    if (pod.metadata.uid !== undefined) this.#next.set(pod.metadata.uid, nodeName)
  }

  /** Ends a loop: pods that were not placed in it are forgotten. */
  turn(): void {
    this.#last = this.#next
    this.#next = new Map()
  }
}
