/** Groups of pods: which one a pod names, and which ones a NodeClaim was launched for (gangs.md 5.2, 6.3, 6.4, 7.3). */
import { autoscalingKinds, type NodeClaim, ownValue, type Pod, podGroupKinds } from '@tenon/api'

/** The API that defines a group. */
export type GroupSource = 'podgroup' | 'coscheduling' | 'volcano' | 'request'

export interface GroupRef {
  readonly source: GroupSource
  readonly namespace: string
  readonly name: string
  /** `PLURAL.GROUP/NAMESPACE/NAME`: three kinds are called PodGroup. */
  readonly id: string
}

const coschedulingLabel = 'scheduling.x-k8s.io/pod-group'
const volcanoAnnotations = ['scheduling.k8s.io/group-name', 'scheduling.volcano.sh/group-name']

/** Undefined for placeholder pods of requests, too. Pods may be malformed. */
export function groupOf({ metadata, spec }: Pod): GroupRef | undefined {
  const { namespace = '', labels, annotations } = metadata
  const given: unknown = (spec as Partial<Pod['spec']> | undefined)?.schedulingGroup?.podGroupName
  if (isName(given)) return refOf('podgroup', namespace, given)
  const label: unknown = ownValue(labels, coschedulingLabel)
  if (isName(label)) return refOf('coscheduling', namespace, label)
  for (const key of volcanoAnnotations) {
    const annotation: unknown = ownValue(annotations, key)
    if (isName(annotation)) return refOf('volcano', namespace, annotation)
  }
  return undefined
}

const prefixes: Readonly<Record<GroupSource, string>> = {
  podgroup: `podgroups.${podGroupKinds.kubernetes[0]?.group ?? ''}`,
  coscheduling: `podgroups.${podGroupKinds.coscheduling.group}`,
  volcano: `podgroups.${podGroupKinds.volcano.group}`,
  request: `provisioningrequests.${autoscalingKinds.provisioningRequest.group}`,
}
export const groupSources: readonly GroupSource[] = ['podgroup', 'coscheduling', 'volcano', 'request']

export function refOf(source: GroupSource, namespace: string, name: string): GroupRef {
  return { source, namespace, name, id: `${prefixes[source]}/${namespace}/${name}` }
}

/**
 * Why pods of a missing or invalid group are not scheduled.
 * @param problem of the object; undefined if it does not exist.
 */
export function missingGroupText({ id }: GroupRef, problem: string | undefined): string {
  return problem === undefined
    ? `its ${id} does not exist; create it`
    : `its ${id} is invalid: ${problem}; correct it`
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** `podgroups.GROUP/NAMESPACE/NAME@UID` of each, separated by commas. */
export const groupAnnotation = 'tenon.sh/group'
/**
 * `GROUP=TIME` for each incomplete group, separated by commas: since when members have no claim although others were
 * launched; RFC 3339. A time without group is that of the only group.
 */
export const groupShortAnnotation = 'tenon.sh/group-short-since'

export interface ClaimedGroup {
  readonly id: string
  readonly uid: string
}

export function groupNote(groups: readonly ClaimedGroup[]): Readonly<Record<string, string>> {
  if (groups.length === 0) return {}
  return { [groupAnnotation]: groups.map(({ id, uid }) => `${id}@${uid}`).join(',') }
}

/** Groups that wait for the claim; none once they run. */
export function groupsOfClaim({ metadata }: NodeClaim): readonly ClaimedGroup[] {
  const noted: unknown = metadata.annotations?.[groupAnnotation]
  if (typeof noted !== 'string' || noted === '') return []
  return noted.split(',').map((part) => {
    const [id = '', uid = ''] = part.split('@')
    return { id, uid }
  })
}

/** Since when the group misses claims; Unix milliseconds. */
export function shortSinceMs(claim: NodeClaim, id: string): number | undefined {
  return shortGroups(claim).get(id)
}

/** Since when the groups of the claim miss claims, by id; Unix milliseconds. */
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
