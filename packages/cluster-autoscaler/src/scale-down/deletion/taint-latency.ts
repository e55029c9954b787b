/**
 * How late the caches show taints: `--dynamic-node-delete-delay-after-taint-enabled` (cluster-autoscaler.md 6.6).
 */
import type { Clock } from '@tenon/runtime'
import { hardTaintOf } from '../nodes/taints.ts'
import type { ClusterReader } from './cluster-reader.ts'

const memoryMs = 60 * 60_000
const pollMs = 100
const longestMs = 30_000

export class TaintLatency {
  readonly #reader: Pick<ClusterReader, 'cachedNode'>
  readonly #clock: Clock
  #seen: { readonly atMs: number; readonly latencyMs: number }[] = []

  constructor(reader: Pick<ClusterReader, 'cachedNode'>, clock: Clock) {
    this.#reader = reader
    this.#clock = clock
  }

  /** Waits until the cache shows the taint of a node, for 30 s at most. */
  async observe(nodeName: string, signal: AbortSignal): Promise<void> {
    const startMs = this.#clock.monotonic()
    for (;;) {
      const latencyMs = this.#clock.monotonic() - startMs
      const node = this.#reader.cachedNode(nodeName)
      const isSeen = node === undefined || hardTaintOf(node) !== undefined
      if (isSeen || latencyMs >= longestMs) {
        this.#seen.push({ atMs: startMs + latencyMs, latencyMs })
        return
      }
      await this.#clock.sleep(pollMs, signal)
    }
  }

  /** Twice the longest latency of the last hour; undefined if there was none. */
  delayMs(): number | undefined {
    const fromMs = this.#clock.monotonic() - memoryMs
    this.#seen = this.#seen.filter(({ atMs }) => atMs >= fromMs)
    if (this.#seen.length === 0) return undefined
    return 2 * Math.max(...this.#seen.map(({ latencyMs }) => latencyMs))
  }
}
