/** How new nodes are distributed over similar groups (cluster-autoscaler.md 4.6). */
import type { NodeGroup } from '@tenon/provider'

/** A group that grows. */
export interface GroupIncrease {
  readonly group: NodeGroup
  readonly newSize: number
}

/** Assigns each node to the smallest group that is not full; nodes beyond the maximum sizes are dropped. */
export function balanced(groups: readonly NodeGroup[], count: number): readonly GroupIncrease[] {
  const sizes = groups.map(({ targetSize }) => targetSize)
  for (let given = 0; given < count; given++) {
    let smallest: number | undefined
    for (const [index, { maxSize }] of groups.entries()) {
      const size = sizes[index] as number
      if (size < maxSize && (smallest === undefined || size < (sizes[smallest] as number))) smallest = index
    }
    if (smallest === undefined) break
    sizes[smallest] = (sizes[smallest] as number) + 1
  }
  return groups.flatMap((group, index) => {
    const newSize = sizes[index] as number
    return newSize > group.targetSize ? [{ group, newSize }] : []
  })
}
