/** How many groups do not run yet, and how far they are (gangs.md 7.7). */
import { isConditionTrue } from '@tenon/api'
import { type Caches, indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { GroupFigures } from '../../metrics/figures.ts'

export function groupFigures(
  { nodeClaims }: Pick<Caches, 'nodeClaims'>,
  { podGroups }: Pick<ClusterState, 'podGroups'>,
): readonly GroupFigures[] {
  const counts = new Map<string, GroupFigures>()
  for (const id of podGroups.ids()) {
    const ref = podGroups.ref(id)
    const minCount = ref && podGroups.get(ref)?.minCount
    if (ref === undefined || minCount === undefined) continue
    const members = podGroups.members(id)
    if (members.filter(({ spec }) => (spec.nodeName ?? '') !== '').length >= minCount) continue
    const claims = nodeClaims.byIndex(indexes.byPodGroup, id)
    const all = (condition: string) => claims.every((claim) => isConditionTrue(claim, condition))
    const phase =
      claims.length === 0
        ? members.length < minCount
          ? 'waiting_for_members'
          : 'pending'
        : !all('Launched')
          ? 'launching'
          : all('Registered')
            ? 'open'
            : 'joining'
    const key = `${ref.source} ${phase}`
    counts.set(key, { source: ref.source, phase, groups: (counts.get(key)?.groups ?? 0) + 1 })
  }
  return [...counts.values()]
}
