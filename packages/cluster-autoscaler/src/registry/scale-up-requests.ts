/** Requested nodes that have not appeared yet (cluster-autoscaler.md 2.4). */

export interface ScaleUpRequest {
  readonly groupId: string
  readonly increase: number
  readonly sinceMs: number
  readonly deadlineMs: number
}

export class ScaleUpRequests {
  readonly #maxNodeProvisionTimeMs: number
  readonly #requests = new Map<string, ScaleUpRequest>()

  constructor(maxNodeProvisionTimeMs: number) {
    this.#maxNodeProvisionTimeMs = maxNodeProvisionTimeMs
  }

  /** @param delta more nodes, which restarts the timeout, or fewer if negative. */
  add(groupId: string, delta: number, nowMs: number): void {
    const before = this.#requests.get(groupId)
    const increase = (before?.increase ?? 0) + delta
    if (increase <= 0) {
      this.#requests.delete(groupId)
      return
    }
    const newDeadlineMs = nowMs + this.#maxNodeProvisionTimeMs
    this.#requests.set(groupId, {
      groupId,
      increase,
      sinceMs: before?.sinceMs ?? nowMs,
      deadlineMs: delta > 0 ? newDeadlineMs : (before?.deadlineMs ?? newDeadlineMs),
    })
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
