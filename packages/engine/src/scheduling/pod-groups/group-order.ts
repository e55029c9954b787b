/** In which order groups are placed (gangs.md 7.2). */
import { compareText } from '../../input/compare-text.ts'
import type { CompiledProblem } from '../compiled-problem.ts'
import type { PodPlacing } from '../pod-placing.ts'
import type { GroupSource } from '../problem/problem.ts'

/**
 * Groups with planned members come first: if another group took their nodes, they would be launched twice. Then by
 * priority, by the CPU that all members request, and the oldest.
 */
export function groupsInOrder(
  groups: readonly GroupSource[],
  placing: Pick<PodPlacing, 'isPlanned'>,
  compiled: Pick<CompiledProblem, 'cpuOf'>,
): readonly GroupSource[] {
  const ranks = new Map(
    groups.map((group) => [
      group,
      {
        planned: group.members.some((pod) => placing.isPlanned(pod)) ? 0 : 1,
        cpu: group.members.reduce((sum, pod) => sum + compiled.cpuOf(pod), 0),
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
