/** How many of the removable nodes are deleted at the same time (cluster-autoscaler.md 6.5). */

interface CropInput<T> {
  readonly empty: readonly T[]
  readonly drain: readonly T[]
  readonly inProgress: number
  /** How many of these are being drained. */
  readonly draining: number
  readonly maxParallelism: number
  readonly maxDrainParallelism: number
}

/** Empty nodes come first; nodes with pods share the rest of the limit. */
export function crop<T>(input: CropInput<T>): { readonly empty: readonly T[]; readonly drain: readonly T[] } {
  const room = Math.max(0, input.maxParallelism - input.inProgress)
  const empty = input.empty.slice(0, room)
  const drainRoom = Math.min(room - empty.length, input.maxDrainParallelism - input.draining)
  return { empty, drain: input.drain.slice(0, Math.max(0, drainRoom)) }
}
