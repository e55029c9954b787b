/** How many removable nodes a loop looks for (cluster-autoscaler.md 6.3). */

interface LimitInput {
  /** Nodes that were removable in the last loop. */
  readonly unneededCount: number
  /** `--max-scale-down-parallelism`. */
  readonly parallelism: number
  readonly unneededTimeMs: number
  /** The shortest time between two loops so far. */
  readonly shortestIntervalMs: number
}

/** As many as could be deleted by the end of their unneeded time, and some more. */
export function removableLimit(input: LimitInput): number {
  const { unneededCount, parallelism } = input
  const interval = Math.max(1, input.shortestIntervalMs)
  const unneededTime = Math.max(input.unneededTimeMs, interval)
  const deletable = parallelism * Math.floor(unneededTime / interval) + parallelism
  return Math.min(unneededCount + 2 * parallelism, deletable)
}
