/** Decisions about pods (scheduling.md 12.1). Times are Unix milliseconds. */
import { Listeners } from '@tenon/runtime'

export interface PodDecision {
  /** When the pod was first seen pending. */
  readonly ackMs?: number
  /** First decision about it, whatever the result. */
  readonly decidedMs?: number
  /** Since when decisions place the pod. */
  readonly schedulableMs?: number
  /** The same, in a NodePool whose nodes are known to register. */
  readonly schedulableHealthyMs?: number
  /** Name of the planned NodeClaim. */
  readonly nodeClaim?: string
  /** Why the last pass did not place it. */
  readonly failure?: string
  /** Last warning that its preferences prevent consolidation. */
  readonly warnedMs?: number
}

export interface PodPlacement {
  readonly nodeClaim: string | undefined
  /** Whether nodes of the NodePool are known to register. */
  readonly isPoolHealthy: boolean
}

/** Decisions by pod UID, until the pod is Ready, has ended or is deleted. */
export class PodDecisions {
  readonly #decisions = new Map<string, PodDecision>()
  readonly forgotten: Listeners<{ readonly uid: string; readonly decision: PodDecision }> = new Listeners()

  get(uid: string): PodDecision {
    return this.#decisions.get(uid) ?? {}
  }

  /** The pod is pending; only the first call counts. */
  acknowledge(uid: string, nowMs: number): void {
    if (this.get(uid).ackMs === undefined) this.#decisions.set(uid, { ...this.get(uid), ackMs: nowMs })
  }

  /** @returns milliseconds from first seen to first decided, the first time only. */
  placed(uid: string, { nodeClaim, isPoolHealthy }: PodPlacement, nowMs: number): number | undefined {
    const before = this.get(uid)
    const { failure: _, nodeClaim: __, schedulableHealthyMs, ...kept } = before
    this.#decisions.set(uid, {
      ...kept,
      decidedMs: before.decidedMs ?? nowMs,
      schedulableMs: before.schedulableMs ?? nowMs,
      ...(isPoolHealthy && { schedulableHealthyMs: schedulableHealthyMs ?? nowMs }),
      ...(nodeClaim !== undefined && { nodeClaim }),
    })
    return waited(before, nowMs)
  }

  /** @returns milliseconds from first seen to first decided, the first time only. */
  failed(uid: string, failure: string, nowMs: number): number | undefined {
    const before = this.get(uid)
    const { schedulableMs: _, schedulableHealthyMs: __, nodeClaim: ___, ...kept } = before
    this.#decisions.set(uid, { ...kept, decidedMs: before.decidedMs ?? nowMs, failure })
    return waited(before, nowMs)
  }

  /** @returns false within `pauseMs` after the last warning. */
  mayWarn(uid: string, nowMs: number, pauseMs: number): boolean {
    const before = this.get(uid)
    if (before.warnedMs !== undefined && nowMs - before.warnedMs < pauseMs) return false
    this.#decisions.set(uid, { ...before, warnedMs: nowMs })
    return true
  }

  forget(uid: string): void {
    const decision = this.#decisions.get(uid)
    if (decision !== undefined) this.forgotten.notify({ uid, decision })
    this.#decisions.delete(uid)
  }
}

function waited({ ackMs, decidedMs }: PodDecision, nowMs: number): number | undefined {
  return ackMs === undefined || decidedMs !== undefined ? undefined : nowMs - ackMs
}
