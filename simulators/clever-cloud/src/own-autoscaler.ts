/** The platform's own autoscaler, which should be off (`autoscalingEnabled`, clever-cloud.md 2.3). */
import { integerBetween } from '@tenon/runtime'
import { resize } from './late-effects.ts'
import type { Platform } from './platform.ts'

const pauseWhileOffMs = 30_000

/** Changes the size of random groups from time to time. */
export class OwnAutoscaler {
  readonly #platform: Platform
  #cancel: (() => void) | undefined

  constructor(platform: Platform) {
    this.#platform = platform
  }

  start(): void {
    const { clock, settings } = this.#platform
    this.#cancel = clock.after(settings.ownAutoscaler?.periodMs ?? pauseWhileOffMs, () => {
      this.#resizeOne()
      this.start()
    })
  }

  stop(): void {
    this.#cancel?.()
  }

  #resizeOne(): void {
    const { random, records, settings } = this.#platform
    const ready = [...records.values()].filter(({ isSynced, end }) => isSynced && end === undefined)
    if (settings.ownAutoscaler === undefined || ready.length === 0) return
    const group = ready[integerBetween(random, 0, ready.length - 1)]
    const nodeCount = integerBetween(random, 1, settings.ownAutoscaler.mostNodes)
    if (group !== undefined) resize(this.#platform, group.name, nodeCount)
  }
}
