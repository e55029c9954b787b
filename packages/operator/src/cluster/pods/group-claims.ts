/** On NodeClaims: the groups that each was launched for, so that a restart finds them (gangs.md 7.3). */
import type { NodeClaim } from '@tenon/api'

/** `podgroups.GROUP/NAMESPACE/NAME@UID` of each, separated by commas. */
export const groupAnnotation = 'tenon.sh/group'
/** RFC 3339: since when members of a group have no claim any more that others were launched for. */
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

/** Unix milliseconds; undefined while nothing is missing. */
export function shortSinceMs({ metadata }: NodeClaim): number | undefined {
  const noted: unknown = metadata.annotations?.[groupShortAnnotation]
  const ms = typeof noted === 'string' ? Date.parse(noted) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}
