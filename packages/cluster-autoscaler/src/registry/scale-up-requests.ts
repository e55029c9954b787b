/** Requested nodes that have not appeared yet (cluster-autoscaler.md 2.4). */

export interface ScaleUpRequest {
  readonly groupId: string
  readonly increase: number
  readonly sinceMs: number
  readonly deadlineMs: number
}

export class ScaleUpRequests {
  readonly #requests = new Map<string, ScaleUpRequest>()

  /**
   * @param delta more nodes, which restarts the timeout, or fewer if negative.
   * @param provisionMs how long nodes of the group may take to register.
   */
  add(groupId: string, delta: number, nowMs: number, provisionMs: number): void {
    const before = this.#requests.get(groupId)
    const increase = (before?.increase ?? 0) + delta
    if (increase <= 0) {
      this.#requests.delete(groupId)
      return
    }
    const newDeadlineMs = nowMs + provisionMs
    this.#requests.set(groupId, {
      groupId,
      increase,
      sinceMs: before?.sinceMs ?? nowMs,
      deadlineMs: delta > 0 ? newDeadlineMs : (before?.deadlineMs ?? newDeadlineMs),
    })
  }

  /** The group was paused for so long: its request has as much more time. */
  extend(groupId: string, ms: number): void {
    const request = this.#requests.get(groupId)
    if (request === undefined) return
    const { sinceMs, deadlineMs } = request
    this.#requests.set(groupId, { ...request, sinceMs: sinceMs + ms, deadlineMs: deadlineMs + ms })
  }

  of(groupId: string): ScaleUpRequest | undefined {
    return this.#requests.get(groupId)
  }

  all(): readonly ScaleUpRequest[] {
    return [...this.#requests.values()]
  }

  remove(groupId: string): void {
    this.#requests.delete(groupId)
  }
}
