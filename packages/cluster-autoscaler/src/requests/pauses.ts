/** Back-off of ProvisioningRequests without capacity (gangs.md 2.2). */
import type { RequestOptions } from '../options/options.ts'

export class RequestPauses {
  readonly #options: Pick<RequestOptions, 'initialBackoffMs' | 'maxBackoffMs' | 'maxBackoffCacheSize'>
  /** By UID, least recently used first. Empty after a restart. */
  readonly #pauses = new Map<string, number>()

  constructor(options: Pick<RequestOptions, 'initialBackoffMs' | 'maxBackoffMs' | 'maxBackoffCacheSize'>) {
    this.#options = options
  }

  /** @param triedMs the last failed attempt; undefined = never. */
  isOver(uid: string, triedMs: number | undefined, nowMs: number): boolean {
    return triedMs === undefined || nowMs >= this.endMs(uid, triedMs)
  }

  /** Call it after a failed attempt; doubles the pause. */
  failed(uid: string): void {
    const next = this.#pauses.has(uid)
      ? Math.min(2 * this.#of(uid), this.#options.maxBackoffMs)
      : this.#of(uid)
    this.#pauses.delete(uid)
    this.#pauses.set(uid, next)
    const [oldest] = this.#pauses.keys()
    if (this.#pauses.size > this.#options.maxBackoffCacheSize && oldest !== undefined)
      this.#pauses.delete(oldest)
  }

  /**
   * @param triedMs the last failed attempt.
   * @returns Unix milliseconds.
   */
  endMs(uid: string, triedMs: number): number {
    return triedMs + this.#of(uid)
  }

  forget(uid: string): void {
    this.#pauses.delete(uid)
  }

  #of(uid: string): number {
    const { initialBackoffMs, maxBackoffMs } = this.#options
    return this.#pauses.get(uid) ?? Math.min(initialBackoffMs, maxBackoffMs)
  }
}
