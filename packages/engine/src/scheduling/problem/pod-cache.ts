/** Caches what was read from the pods of one problem for the next problem, as nearly all are the same objects. */
import type { Pod } from '@tenon/api'

/** Pods that are skipped in the previous list when the next pod is not at its position. */
const mostSkipped = 256

/**
 * Reads each pod once; pods are immutable. A lookup by object would cost more than reading most pods. So this relies on the
 * order: a pod is the next one of the previous list, or one soon after it.
 */
export class PodCache<Value> {
  readonly #read: (pod: Pod) => Value
  #pods: readonly Pod[] = []
  #values: readonly Value[] = []

  constructor(read: (pod: Pod) => Value) {
    this.#read = read
  }

  /** @returns a function that reads the pods of one list in their order. */
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
