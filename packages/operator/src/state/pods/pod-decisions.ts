/** What was decided about each pod, and when (scheduling.md 12.1). Times are Unix milliseconds. */
import { Listeners } from '@tenon/runtime'

export interface PodDecision {
  /** When the pod was first seen waiting. */
  readonly ackMs?: number
  /** When a decision about it was first made, whatever it was. */
  readonly decidedMs?: number
  /** Since when it has been known that a place can be had; absent while it has none. */
  readonly schedulableMs?: number
  /** The same, while the NodePool's nodes are known to register. */
  readonly schedulableHealthyMs?: number
  /** Name of the NodeClaim meant to hold it. */
  readonly nodeClaim?: string
  /** Why it was not placed in the last pass. */
  readonly failure?: string
  /** When its preferences were last called a hindrance to consolidation. */
  readonly warnedMs?: number
}

/** Where a pod was placed. */
export interface PodPlace {
  readonly nodeClaim: string | undefined
  /** Whether the NodePool is known to make nodes that register. */
  readonly isPoolHealthy: boolean
}

/** Decisions by pod UID; they last until the pod serves, has ended or is gone. */
export class PodDecisions {
  readonly #decisions = new Map<string, PodDecision>()
  /** What is about to be forgotten. */
  readonly forgotten: Listeners<{ readonly uid: string; readonly decision: PodDecision }> = new Listeners()

  get(uid: string): PodDecision {
    return this.#decisions.get(uid) ?? {}
  }

  /** The pod waits for a place; only the first time counts. */
  acknowledge(uid: string, nowMs: number): void {
    if (this.get(uid).ackMs === undefined) this.#decisions.set(uid, { ...this.get(uid), ackMs: nowMs })
  }

  /** @returns milliseconds from first seen to first decided, the first time only. */
  placed(uid: string, { nodeClaim, isPoolHealthy }: PodPlace, nowMs: number): number | undefined {
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

  /** @returns whether the pod may be warned of: not again within `pauseMs`. */
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
