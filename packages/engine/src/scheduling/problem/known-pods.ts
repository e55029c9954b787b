/** What was read of the pods of one problem, for the next one: nearly all of them are the same objects. */
import type { Pod } from '@tenon/api'

/** So many pods may have gone in one place. */
const mostSkipped = 256

/**
 * Reads pods that never change, and reads none of them again that was in the list before. Looking a pod up by its
 * object would cost more than to read most of them; here it is the next one of the list before, or one soon after it.
 */
export class KnownPods<Value> {
  readonly #read: (pod: Pod) => Value
  #pods: readonly Pod[] = []
  #values: readonly Value[] = []

  constructor(read: (pod: Pod) => Value) {
    this.#read = read
  }

  /** @returns what reads the pods of one list, in their order. */
  reading(): (pod: Pod) => Value {
    const [before, known] = [this.#pods, this.#values]
    const pods: Pod[] = []
    const values: Value[] = []
    this.#pods = pods
    this.#values = values
    let next = 0
    return (pod) => {
      const end = Math.min(before.length, next + mostSkipped)
      let at = next
      while (at < end && before[at] !== pod) at++
      const isKnown = at < end
      if (isKnown) next = at + 1
      const value = isKnown ? (known[at] as Value) : this.#read(pod)
      pods.push(pod)
      values.push(value)
      return value
    }
  }
}
