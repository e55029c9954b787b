/** Groups in back-off after a failure (cluster-autoscaler.md 2.8). */

export interface ScaleUpFailure {
  /**
   * As in metrics and the status ConfigMap: `cloudProviderError`, `timeout`, or the error code of an instance.
   */
  readonly code: string
  readonly message: string
}

export interface BackoffSettings {
  readonly initialBackoffMs: number
  readonly maxBackoffMs: number
  readonly backoffResetTimeoutMs: number
}

export interface Backoff extends ScaleUpFailure {
  /** Inclusive. */
  readonly untilMs: number
}

interface Entry extends Backoff {
  readonly durationMs: number
  readonly failedMs: number
}

/** One record per group. A success does not clear it, only a long time without failures. */
export class GroupBackoff {
  readonly #settings: BackoffSettings
  readonly #entries = new Map<string, Entry>()

  constructor(settings: BackoffSettings) {
    this.#settings = settings
  }

  fail(groupId: string, failure: ScaleUpFailure, nowMs: number): void {
    const durationMs = this.#nextDuration(this.#entry(groupId, nowMs), nowMs)
    this.#entries.set(groupId, { ...failure, durationMs, failedMs: nowMs, untilMs: nowMs + durationMs })
  }

  /** Undefined if the group may be tried. */
  of(groupId: string, nowMs: number): Backoff | undefined {
    const entry = this.#entry(groupId, nowMs)
    return entry === undefined || nowMs > entry.untilMs ? undefined : entry
  }

  #nextDuration(entry: Entry | undefined, nowMs: number): number {
    if (entry === undefined) return this.#settings.initialBackoffMs
    if (nowMs <= entry.untilMs) return entry.durationMs
    return Math.min(2 * entry.durationMs, this.#settings.maxBackoffMs)
  }

  #entry(groupId: string, nowMs: number): Entry | undefined {
    const entry = this.#entries.get(groupId)
    if (entry === undefined || nowMs <= entry.failedMs + this.#settings.backoffResetTimeoutMs) return entry
    this.#entries.delete(groupId)
    return undefined
  }
}
