/** Groups of pods as decisions read them, whole (gangs.md 7.1). */
import { isConditionTrue, labels, normalizedLabel, ownValue, type Pod } from '@tenon/api'
import type { PodGroupInput } from '@tenon/engine'
import { type Clock, rfc3339 } from '@tenon/runtime'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { type GroupRef, missingGroupText } from '../../state/pods/group-of-pod.ts'
import type { KnownGroup } from '../../state/pods/pod-groups.ts'
import { isDaemonPod } from '../../state/pods/pods.ts'

export interface GroupSources {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodes'>
  readonly state: Pick<ClusterState, 'isWellFormed' | 'nominations' | 'plans' | 'podGroups' | 'requests'>
  readonly clock: Pick<Clock, 'now'>
}

/** Below that of every pod. */
const lastPriority = -2_147_483_649

/** A member of a group about which nothing is decided, and why. */
interface HeldPod {
  readonly pod: Pod
  readonly reason: string
}

/** Pods that wait, with all members of their groups that may get a node. */
export interface GroupedPods {
  readonly pending: readonly Pod[]
  readonly podGroups: readonly PodGroupInput[]
  /** Members of groups for which nothing is decided now. */
  readonly refused: readonly HeldPod[]
  /** Pods for which a ProvisioningRequest keeps room, so that no node is launched for them. */
  readonly ignored: readonly (HeldPod & { readonly isSilent: true })[]
}

/** Once one member of a group is refused, all are decided about: the scheduler refuses those that fit as well. */
export function pendingGroups(sources: GroupSources, all: readonly Pod[]): GroupedPods {
  const { state } = sources
  const requests = requestGroups(sources)
  const { waiting, ignored } = withoutConsumers(sources, all)
  const refs = new Map<string, GroupRef>()
  const alone: Pod[] = []
  for (const pod of waiting) {
    // A malformed pod is reported as such, not as a member of its group.
    const ref = state.isWellFormed(pod) ? state.podGroups.of(pod) : undefined
    if (ref === undefined) alone.push(pod)
    else refs.set(ref.id, ref)
  }
  if (refs.size === 0) return { pending: waiting, podGroups: requests, refused: [], ignored }
  const pending = [...alone]
  const groups: PodGroupInput[] = []
  const refused: HeldPod[] = []
  for (const ref of refs.values()) {
    const members = countedMembers(sources, ref)
    const reason = holdOn(sources, ref)
    if (typeof reason === 'string') refused.push(...members.map((pod) => ({ pod, reason })))
    else {
      pending.push(...members)
      const bound = state.podGroups.members(ref.id).filter(hasNode)
      groups.push(inputOf(sources, reason, members, bound))
    }
  }
  return { pending, podGroups: [...groups, ...requests], refused, ignored }
}

function withoutConsumers(
  sources: GroupSources,
  all: readonly Pod[],
): {
  readonly waiting: readonly Pod[]
  readonly ignored: GroupedPods['ignored']
} {
  const { requests } = sources.state
  if (requests.isAbsent) return { waiting: all, ignored: [] }
  const ignored = all.flatMap((pod) => {
    const standing = requests.standingOf(pod)
    if (standing?.kind !== 'held') return []
    const reason = `no node is launched for it, as it is made for the room of ProvisioningRequest ${standing.request}`
    return [{ pod, reason, isSilent: true as const }]
  })
  if (ignored.length === 0) return { waiting: all, ignored }
  const held = new Set(ignored.map(({ pod }) => pod))
  return { waiting: all.filter((pod) => !held.has(pod)), ignored }
}

/** Requests whose room is sought, the oldest first; those that launch nothing come after all others. */
function requestGroups(sources: GroupSources): readonly PodGroupInput[] {
  const { requests, podGroups } = sources.state
  return requests.all().flatMap(({ ref, request, class: of, isBooked, pods, topologyKey }, rank) => {
    const { uid = '', creationTimestamp = '' } = request.metadata
    // What was released is planned anew once its pause is over.
    if (isBooked || podGroups.roundOf(uid) !== undefined) return []
    const domain = topologyKey === undefined ? undefined : domainOf(sources, topologyKey, [], pods)
    return [
      {
        id: ref.id,
        members: pods.map(({ metadata }) => metadata.uid ?? ''),
        minCount: pods.length,
        bound: 0,
        priority:
          of === 'check' ? lastPriority - rank : Math.max(0, ...pods.map(({ spec }) => spec.priority ?? 0)),
        createdAt: creationTimestamp,
        ...(topologyKey !== undefined && {
          topology: { key: topologyKey, ...(domain !== undefined && { domain }) },
        }),
      },
    ]
  })
}

/**
 * Groups of pods that have a node and move to others: those of which all members move, whole; of others what their
 * members that stay say about where they may go (gangs.md 7.5).
 */
export function movingGroups(sources: GroupSources, pods: readonly Pod[]): readonly PodGroupInput[] {
  const { podGroups } = sources.state
  if (!podGroups.isOn) return []
  const byGroup = new Map<string, { readonly ref: GroupRef; readonly members: Pod[] }>()
  for (const pod of pods) {
    const ref = podGroups.of(pod)
    if (ref === undefined) continue
    const known = byGroup.get(ref.id) ?? { ref, members: [] }
    byGroup.set(ref.id, known)
    known.members.push(pod)
  }
  return [...byGroup.values()].flatMap(({ ref, members }) => {
    const group = podGroups.get(ref)
    return group === undefined ? [] : (movingInput(sources, group, members) ?? [])
  })
}

/** The group, or why nothing is decided about it. */
function holdOn(sources: GroupSources, ref: GroupRef): KnownGroup | string {
  const { clock, state } = sources
  const group = state.podGroups.get(ref)
  const problem = state.podGroups.problemOf(ref)
  // After a start groups may be read later than pods.
  if (group === undefined && problem === undefined && !state.podGroups.isKnown(ref))
    return `its ${ref.id} has not been read yet`
  if (group === undefined) return missingGroupText(ref, problem)
  const lost = lostDomain(sources, group)
  if (lost !== undefined) return lost
  const round = state.podGroups.roundOf(group.uid)
  if (round === undefined || round.notBeforeMs <= clock.now()) return group
  const at = rfc3339(round.notBeforeMs)
  return `NodeClaims for ${ref.id} were released ${round.releases} times as not all could be had; next try at ${at}`
}

/** Members that have a node fix the domain for all others: without its label there the scheduler cannot decide. */
function lostDomain(sources: GroupSources, { ref, topologyKey }: KnownGroup): string | undefined {
  if (topologyKey === undefined) return undefined
  const bound = sources.state.podGroups.members(ref.id).filter(hasNode)
  // One such node is enough for that.
  if (bound.every((pod) => domainOf(sources, topologyKey, [pod], []) !== undefined)) return undefined
  return `pods of its ${ref.id} run on nodes without the label ${topologyKey}, so that the scheduler cannot decide about others; set the label on the nodes`
}

/** Members that have no node and may get one. */
function countedMembers(sources: GroupSources, { id }: GroupRef): readonly Pod[] {
  const { state } = sources
  return state.podGroups
    .members(id)
    .filter(
      (pod) =>
        state.isWellFormed(pod) &&
        (pod.spec.nodeName ?? '') === '' &&
        (pod.spec.schedulingGates ?? []).length === 0 &&
        !isDaemonPod(pod) &&
        !isOfSchedulerError(pod) &&
        !state.nominations.isHeldByOthers(pod),
    )
}

function inputOf(
  sources: GroupSources,
  group: KnownGroup,
  members: readonly Pod[],
  bound: readonly Pod[],
): PodGroupInput {
  const { ref, minCount, topologyKey, priority, object } = group
  const domain = topologyKey === undefined ? undefined : domainOf(sources, topologyKey, bound, members)
  return {
    id: ref.id,
    members: members.map(({ metadata }) => metadata.uid ?? ''),
    minCount,
    bound: bound.length,
    priority: priority ?? Math.max(0, ...members.map(({ spec }) => spec.priority ?? 0)),
    createdAt: object.metadata.creationTimestamp ?? '',
    ...(topologyKey !== undefined && {
      topology: { key: topologyKey, ...(domain !== undefined && { domain }) },
    }),
  }
}

function movingInput(
  sources: GroupSources,
  group: KnownGroup,
  moving: readonly Pod[],
): PodGroupInput | undefined {
  const leaving = new Set(moving.map(({ metadata }) => metadata.uid))
  const staying = sources.state.podGroups
    .members(group.ref.id)
    .filter(({ metadata }) => !leaving.has(metadata.uid))
  if (staying.length === 0) return inputOf(sources, group, moving, [])
  if (group.topologyKey === undefined) return undefined
  // Which of the members move is for each question to say; as many as must run together stay in any case.
  return { ...inputOf(sources, group, moving, staying.filter(hasNode)), minCount: 0 }
}

/** Where members that have a node are, else where claims are that were launched for others. */
function domainOf(
  sources: GroupSources,
  key: string,
  bound: readonly Pod[],
  members: readonly Pod[],
): string | undefined {
  const { caches, state } = sources
  const name = normalizedLabel(key)
  const onNodes = bound.flatMap(({ spec }) => {
    const node = caches.nodes.get({ name: spec.nodeName ?? '' })
    const value = ownValue(node?.metadata.labels, name)
    return value ?? (name === labels.hostname && node !== undefined ? node.metadata.name : [])
  })
  const onClaims = members.flatMap(({ metadata }) => {
    const target = state.plans.get(metadata.uid ?? '')?.target
    const claim = target?.kind === 'claim' ? caches.nodeClaims.get({ name: target.name }) : undefined
    if (claim === undefined || !isConditionTrue(claim, 'Launched')) return []
    return ownValue(claim.metadata.labels, name) ?? []
  })
  return [...onNodes.toSorted(), ...onClaims.toSorted()][0]
}

const hasNode = ({ spec }: Pod): boolean => (spec.nodeName ?? '') !== ''

/** No node helps a pod about which the scheduler cannot decide. */
function isOfSchedulerError({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(
    ({ type, reason }) => type === 'PodScheduled' && reason === 'SchedulerError',
  )
}
