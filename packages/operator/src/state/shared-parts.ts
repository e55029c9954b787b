import { isSameValue } from './same-value.ts'

/** Parts kept of each generation; parts of a workload's pods are few however many pods it has. */
const generationSize = 10_000

/**
 * Gives equal parts of different objects one identity. Pods of one workload are alike in almost
 * everything, but each arrives as objects of its own.
 *
 * Bounded: what was not asked for during two generations is forgotten, which costs memory only when
 * it comes again.
 */
export class SharedParts {
  readonly #generationSize: number
  #young = new Map<string, unknown>()
  #old: ReadonlyMap<string, unknown> = new Map()

  /** @param size parts after which a generation ends. */
  constructor(size: number = generationSize) {
    this.#generationSize = size
  }

  /**
   * The part that stands for all that are written like `part`.
   * @param like an earlier answer that may well be the same, which is found out in less time.
   */
  of<T>(part: T, like?: T): T {
    if (typeof part !== 'object' || part === null) return part
    if (like !== undefined && isSameValue(part, like)) return like
    const key = JSON.stringify(part)
    const known = this.#young.get(key)
    // What is stored under a text is written like it, so that it has the type of `part`.
    if (known !== undefined) return known as T
    const shared = (this.#old.get(key) ?? part) as T
    if (this.#young.size >= this.#generationSize) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, shared)
    return shared
  }
}
