/** On NodeClaims: the groups that each was launched for, so that a restart finds them (gangs.md 7.3). */
import type { NodeClaim } from '@tenon/api'

/** `podgroups.GROUP/NAMESPACE/NAME@UID` of each, separated by commas. */
export const groupAnnotation = 'tenon.sh/group'
/**
 * `GROUP=TIME` for each group that misses something, separated by commas: since when members of it have no claim any more
 * that others were launched for; RFC 3339. A time alone is that of the only group.
 */
export const groupShortAnnotation = 'tenon.sh/group-short-since'

/** A group for which a claim was launched. */
export interface ClaimedGroup {
  readonly id: string
  /** UID of the group's object. */
  readonly uid: string
}

export function groupNote(groups: readonly ClaimedGroup[]): Readonly<Record<string, string>> {
  if (groups.length === 0) return {}
  return { [groupAnnotation]: groups.map(({ id, uid }) => `${id}@${uid}`).join(',') }
}

/** The groups whose members wait for the claim; none once they run. */
export function groupsOfClaim({ metadata }: NodeClaim): readonly ClaimedGroup[] {
  const noted: unknown = metadata.annotations?.[groupAnnotation]
  if (typeof noted !== 'string' || noted === '') return []
  return noted.split(',').map((part) => {
    const [id = '', uid = ''] = part.split('@')
    return { id, uid }
  })
}

/** Since when the group with this id misses claims; Unix milliseconds. Undefined while nothing is missing. */
export function shortSinceMs(claim: NodeClaim, id: string): number | undefined {
  return shortGroups(claim).get(id)
}

/** By id of the groups of the claim that miss something, since when; Unix milliseconds. */
export function shortGroups(claim: NodeClaim): ReadonlyMap<string, number> {
  const noted: unknown = claim.metadata.annotations?.[groupShortAnnotation]
  if (typeof noted !== 'string') return new Map()
  const groups = groupsOfClaim(claim)
  const sinceById = new Map<string, number>()
  for (const part of noted.split(',')) {
    const at = part.lastIndexOf('=')
    const ms = Date.parse(part.slice(at + 1))
    const id = at < 0 && groups.length === 1 ? groups[0]?.id : part.slice(0, Math.max(0, at))
    if (id !== undefined && !Number.isNaN(ms) && groups.some((group) => group.id === id))
      sinceById.set(id, ms)
  }
  return sinceById
}
