/** How far the launches for a group of pods have come (gangs.md 7.3). */
import { isConditionTrue, type NodeClaim, type Pod } from '@tenon/api'
import { type Caches, indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { groupsOfClaim } from '../../state/pods/group-of-pod.ts'
import type { GroupFigures } from '../../metrics/metrics.ts'
import type { Settings } from '../../settings.ts'

/** A group that is not ready is given up this long before the registration timeout of its first claim. */
const marginMs = 5_000

export interface Standing {
  /** Members that have not ended, with or without a node. */
  readonly members: readonly Pod[]
  readonly bound: number
  /** Members without a node that are planned for a claim or node that exists. */
  readonly planned: number
  /** Undefined when the group no longer exists. */
  readonly minCount: number | undefined
  /** Whether enough members are bound or planned. */
  readonly isWhole: boolean
}

export function standingOf(
  { plans, podGroups }: Pick<ClusterState, 'plans' | 'podGroups'>,
  id: string,
): Standing {
  const members = podGroups.members(id)
  const bound = members.filter(hasNode).length
  const planned = members.filter(
    (pod) => !hasNode(pod) && plans.get(pod.metadata.uid ?? '') !== undefined,
  ).length
  const ref = podGroups.ref(id)
  const minCount = ref && podGroups.get(ref)?.minCount
  const isWhole = minCount !== undefined && bound + planned >= minCount
  return { members, bound, planned, minCount, isWhole }
}

const hasNode = ({ spec }: Pod): boolean => (spec.nodeName ?? '') !== ''

type Claims = Pick<Caches, 'nodeClaims'>

/** Claims launched for the group that are not being deleted. */
export function claimsOfGroup({ nodeClaims }: Claims, id: string): readonly NodeClaim[] {
  return nodeClaims
    .byIndex(indexes.byPodGroup, id)
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

/** Calls the listener for a group when one of its claims changes, or when the group changes and has claims. */
export function onGroupChange(
  caches: Claims,
  { podGroups }: Pick<ClusterState, 'podGroups'>,
  listener: (id: string) => void,
): void {
  caches.nodeClaims.onChange(({ object }) => {
    for (const { id } of groupsOfClaim(object)) listener(id)
  })
  podGroups.changes.add((id) => {
    if (claimsOfGroup(caches, id).length > 0) listener(id)
  })
}

/** When the group gives the claim up; Unix milliseconds. */
export function groupDeadlineMs(
  { metadata }: NodeClaim,
  { registrationTimeoutMs }: Pick<Settings, 'registrationTimeoutMs'>,
): number {
  return Date.parse(metadata.creationTimestamp ?? '') + registrationTimeoutMs - marginMs
}

/** Groups that do not run yet, counted by source and phase (gangs.md 7.7). */
export function groupFigures(
  { nodeClaims }: Claims,
  { podGroups }: Pick<ClusterState, 'podGroups'>,
): readonly GroupFigures[] {
  const counts = new Map<string, GroupFigures>()
  for (const id of podGroups.ids()) {
    const ref = podGroups.ref(id)
    const minCount = ref && podGroups.get(ref)?.minCount
    if (ref === undefined || minCount === undefined) continue
    const members = podGroups.members(id)
    if (members.filter(hasNode).length >= minCount) continue
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
