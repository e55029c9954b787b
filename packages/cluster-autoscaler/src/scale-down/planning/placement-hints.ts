/** Where pods fitted in the last loop, as most fit there again. */
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

  /** Ends a loop: forgets pods that were not placed in it. */
  turn(): void {
    this.#last = this.#next
    this.#next = new Map()
  }
}
