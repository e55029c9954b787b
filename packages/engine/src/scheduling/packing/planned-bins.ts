/** The cheapest packing of a group whose pods will be nominated for their nodes. */
import type { Group, PlannedBin } from './group.ts'
import type { KnownPackings } from './known-packings.ts'
import type { Effort } from './packing.ts'

export function plannedBins(
  group: Group,
  effort: Effort,
  packings: KnownPackings,
): readonly PlannedBin[] | undefined {
  const packing = packings.pack(group.items, group, effort)
  if (packing === undefined) return undefined
  const taken = new Int32Array(group.items.length)
  return packing.bins.map(({ counts }) => ({
    class: group.class,
    pods: [...counts].flatMap((count, item) => {
      const from = taken[item] as number
      taken[item] = from + count
      return group.items[item]?.pods.slice(from, from + count) ?? []
    }),
  }))
}
