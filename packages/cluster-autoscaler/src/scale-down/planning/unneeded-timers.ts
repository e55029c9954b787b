/** Since when each node has been removable in every loop (cluster-autoscaler.md 6.3). */
import type { Node } from '@tenon/api'

interface Timer {
  readonly uid: string | undefined
  readonly sinceMs: number
}

export class UnneededTimers {
  #timers = new Map<string, Timer>()

  get size(): number {
    return this.#timers.size
  }

  sinceMs({ metadata: { name, uid } }: Node): number | undefined {
    const timer = this.#timers.get(name)
    return timer === undefined || timer.uid !== uid ? undefined : timer.sinceMs
  }

  /** Keeps the timers of nodes that are removable in this loop; drops all others. */
  update(removable: readonly Node[], nowMs: number): void {
    this.#timers = new Map(
      removable.map((node) => {
        const { name, uid } = node.metadata
        return [name, { uid, sinceMs: this.sinceMs(node) ?? nowMs }]
      }),
    )
  }

  /** Sets a timer of an earlier process. */
  restore({ metadata: { name, uid } }: Node, sinceMs: number): void {
    this.#timers.set(name, { uid, sinceMs })
  }

  clear(): void {
    this.#timers.clear()
  }
}
