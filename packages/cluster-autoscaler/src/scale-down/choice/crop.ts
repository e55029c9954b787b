/** How many of the nodes that may go are deleted at once (cluster-autoscaler.md 6.5). */

interface CropInput<T> {
  readonly empty: readonly T[]
  readonly drain: readonly T[]
  readonly inProgress: number
  /** Of these, how many are being drained. */
  readonly draining: number
  readonly maxParallelism: number
  readonly maxDrainParallelism: number
}

/** Empty ones come first; what is left of the limit is for nodes with pods. */
export function crop<T>(input: CropInput<T>): { readonly empty: readonly T[]; readonly drain: readonly T[] } {
  const room = Math.max(0, input.maxParallelism - input.inProgress)
  const empty = input.empty.slice(0, room)
  const drainRoom = Math.min(room - empty.length, input.maxDrainParallelism - input.draining)
  return { empty, drain: input.drain.slice(0, Math.max(0, drainRoom)) }
}
