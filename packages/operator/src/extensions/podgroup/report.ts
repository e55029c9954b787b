/** Events and metrics of groups; events are recorded on the group's object and on its first pod (gangs.md 7.7). */
import { counted, isRequestPod, type KubeObject, type Pod } from '@tenon/api'
import { renderPodReason, type SchedulingResult } from '@tenon/engine'
import type { EventRecorder } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { type GroupRef, missingGroupText } from '../../state/pods/group-of-pod.ts'
import type { KnownGroup } from '../../state/pods/pod-groups.ts'
import type { Metrics } from '../../metrics/metrics.ts'

export type ReleaseReason = 'insufficient_capacity' | 'registration' | 'abandoned'

interface GroupEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

const dedupeMs = 5 * 60_000
const releaseWords: Readonly<Record<ReleaseReason, string>> = {
  insufficient_capacity: 'not all of them could be had',
  registration: 'not all of their nodes joined in time',
  abandoned: 'the group or its pods are gone',
}

export class GroupReport {
  readonly #state: Pick<ClusterState, 'podGroups'>
  readonly #events: EventRecorder
  readonly #metrics: Pick<Metrics, 'groupDecisions' | 'groupHalfBilled' | 'groupReleases' | 'groupSeconds'>
  readonly #clock: Pick<Clock, 'now'>

  constructor(
    state: Pick<ClusterState, 'podGroups'>,
    events: EventRecorder,
    metrics: Pick<Metrics, 'groupDecisions' | 'groupHalfBilled' | 'groupReleases' | 'groupSeconds'>,
    clock: Pick<Clock, 'now'>,
  ) {
    this.#state = state
    this.#events = events
    this.#metrics = metrics
    this.#clock = clock
  }

  /** Records what a decision found for groups. */
  decided({ claims, podGroups = [] }: Pick<SchedulingResult, 'claims' | 'podGroups'>): void {
    this.#state.podGroups.decided(podGroups, this.#clock.now())
    for (const outcome of podGroups) {
      const group = this.#groupOf(outcome.id)
      if (group === undefined) continue
      const { source } = group.ref
      if (outcome.kind === 'placed') {
        this.#metrics.groupDecisions.inc({ source, result: 'placed' })
        const own = claims.filter((claim) => claim.podGroups?.includes(outcome.id) === true)
        if (own.length > 0) this.#recordLaunching(group, own.length, outcome.domain)
        continue
      }
      const message = renderPodReason(outcome.reason)
      if (outcome.reason.kind === 'podGroupShort') {
        this.#recordBoth(group, { type: 'Normal', reason: 'GroupWaitingForMembers', message })
        continue
      }
      this.#metrics.groupDecisions.inc({ source, result: 'refused' })
      this.#recordBoth(group, { type: 'Warning', reason: 'GroupNotPlaceable', message })
    }
  }

  /** Too few members exist to decide about the group. */
  isShort(group: KnownGroup, counts: { readonly members: number; readonly bound: number }): void {
    const { minCount, ref } = group
    const message = renderPodReason({ kind: 'podGroupShort', group: ref.id, minCount, ...counts })
    this.#recordBoth(group, { type: 'Normal', reason: 'GroupWaitingForMembers', message })
  }

  /** Pods name a group that does not exist or is invalid. */
  doesNotExist(ref: GroupRef): void {
    const pod = this.#firstMember(ref)
    if (pod === undefined) return
    const event = {
      type: 'Normal',
      reason: 'GroupWaitingForMembers',
      message: missingGroupText(ref, this.#state.podGroups.problemOf(ref)),
    } as const
    this.#record(pod, event, [ref.id])
  }

  #recordLaunching(group: KnownGroup, claims: number, domain: string | undefined): void {
    const where = domain === undefined ? '' : ` in ${group.topologyKey ?? ''} ${domain}`
    const message = `${counted(claims, 'NodeClaim')} created${where}; their nodes open together once all are ready`
    this.#recordBoth(group, { type: 'Normal', reason: 'GroupLaunching', message })
  }

  /**
   * @param claims number of released claims.
   * @param shortMs how long the group was incomplete.
   */
  released(id: string, reason: ReleaseReason, claims: number, shortMs: number): void {
    const source = this.#state.podGroups.ref(id)?.source ?? ''
    this.#metrics.groupReleases.inc({ source, reason })
    this.#metrics.groupHalfBilled.inc((claims * shortMs) / 1000)
    const group = this.#groupOf(id)
    if (group === undefined) return
    const message = `${counted(claims, 'NodeClaim')} deleted: ${releaseWords[reason]}`
    this.#recordBoth(group, { type: 'Warning', reason: 'GroupCapacityReleased', message })
  }

  /** Enough members of the group have a node. */
  runs(group: KnownGroup): void {
    const sinceMs = this.#state.podGroups.firstDecidedMs(group.ref.id)
    this.#state.podGroups.runs(group)
    if (sinceMs !== undefined)
      this.#metrics.groupSeconds.observe({ source: group.ref.source }, (this.#clock.now() - sinceMs) / 1000)
  }

  #groupOf(id: string): KnownGroup | undefined {
    const { podGroups } = this.#state
    const ref = podGroups.ref(id)
    return ref && podGroups.get(ref)
  }

  #recordBoth({ ref, object, uid }: KnownGroup, event: GroupEvent): void {
    const first = this.#firstMember(ref)
    // Placeholder pods of a request exist only in this process.
    for (const target of [object, ...(first === undefined || isRequestPod(first) ? [] : [first])])
      this.#record(target, event, [uid])
  }

  #firstMember({ id }: GroupRef): Pod | undefined {
    const members = this.#state.podGroups.members(id)
    return members.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))[0]
  }

  #record(object: KubeObject, { type, reason, message }: GroupEvent, about: readonly string[]): void {
    const { uid, name } = object.metadata
    this.#events.record({
      object,
      type,
      reason,
      message,
      dedupe: [...about, uid ?? name],
      dedupeTtlMs: dedupeMs,
    })
  }
}
