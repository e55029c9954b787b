/** In which order groups are placed (gangs.md 7.2). */
import { compareText } from '../../input/compare-text.ts'
import type { GroupSource } from '../problem/problem.ts'

/**
 * Groups for which nodes are there or on their way come first: what another group took of them would be launched a
 * second time. Then by priority, by what the members ask for together, and the oldest.
 * @param cpuOf what a pod asks for.
 */
export function groupsInOrder(
  groups: readonly GroupSource[],
  isPlanned: (pod: number) => boolean,
  cpuOf: (pod: number) => number,
): readonly GroupSource[] {
  const ranks = new Map(
    groups.map((group) => [
      group,
      {
        planned: group.members.some(isPlanned) ? 0 : 1,
        cpu: group.members.reduce((sum, pod) => sum + cpuOf(pod), 0),
      },
    ]),
  )
  const rankOf = (group: GroupSource) => ranks.get(group) ?? { planned: 1, cpu: 0 }
  return groups.toSorted(
    (a, b) =>
      rankOf(a).planned - rankOf(b).planned ||
      b.priority - a.priority ||
      rankOf(b).cpu - rankOf(a).cpu ||
      compareText(a.createdAt, b.createdAt) ||
      compareText(a.id, b.id),
  )
}
