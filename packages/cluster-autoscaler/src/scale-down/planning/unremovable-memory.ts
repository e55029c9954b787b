/**
 * Nodes whose removal failed in the simulation; they are not retried for some time (cluster-autoscaler.md 6.2).
 */
import type { UnremovableReason } from '../reasons.ts'

interface Memory {
  readonly uid: string | undefined
  readonly untilMs: number
  readonly reason: UnremovableReason
}

export class UnremovableMemory {
  readonly #recheckMs: number
  readonly #nodes = new Map<string, Memory>()

  constructor(recheckMs: number) {
    this.#recheckMs = recheckMs
  }

  remember(node: Named, reason: UnremovableReason, nowMs: number): void {
    const { name, uid } = node.metadata
    this.#nodes.set(name, { uid, untilMs: nowMs + this.#recheckMs, reason })
  }

  /** Why the node is not retried now. */
  recall(node: Named, nowMs: number): UnremovableReason | undefined {
    const memory = this.#nodes.get(node.metadata.name)
    if (memory === undefined || memory.uid !== node.metadata.uid || nowMs >= memory.untilMs) return undefined
    return { kind: 'RecentlyUnremovable', untilMs: memory.untilMs, since: memory.reason }
  }

  forgetExpired(nowMs: number): void {
    for (const [name, { untilMs }] of this.#nodes) if (nowMs >= untilMs) this.#nodes.delete(name)
  }
}

interface Named {
  readonly metadata: { readonly name: string; readonly uid?: string }
}
