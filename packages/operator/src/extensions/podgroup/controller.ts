/** `podgroup`: keeps the launches for a group until it runs, or releases them (gangs.md 7.3). */
import { isConditionTrue, karpenterKinds, type NodeClaim } from '@tenon/api'
import { done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type Clock, rfc3339 } from '@tenon/runtime'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import type { DisruptionMarks } from '../../disruption/commands/marks.ts'
import type { Kubernetes } from '../../kubernetes.ts'
import type { ClaimDeleter } from '../../nodeclaim/lifecycle/delete-claim.ts'
import type { Settings } from '../../settings.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import {
  groupAnnotation,
  groupNote,
  groupShortAnnotation,
  groupsOfClaim,
  shortGroups,
  shortSinceMs,
} from '../../state/pods/group-of-pod.ts'
import type { KnownGroup } from '../../state/pods/pod-groups.ts'
import { isDaemonPod, isMirrorPod, isTerminal, podsOnNode } from '../../state/pods/pods.ts'
import type { GroupReport, ReleaseReason } from './report.ts'
import { claimsOfGroup, groupDeadlineMs, onGroupChange, type Standing, standingOf } from './standing.ts'

/** How long claims are kept while others of their group cannot be had. */
const groupHoldMs = 120_000
/** The claims of one decision are created one after the other. */
const settlingMs = 5_000
const pollMs = 1_000
const overdueMs = 10_000
/** A group is planned again at once this often; after that it pauses. */
const quickRounds = 3
const minuteMs = 60_000
const longestPauseMinutes = 10

interface Dependencies {
  readonly kubernetes: Kubernetes<'nodeClaims'>
  readonly state: ClusterState
  readonly deleter: ClaimDeleter
  readonly marks: DisruptionMarks
  readonly report: GroupReport
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Pick<Settings, 'registrationTimeoutMs'>
}

export class GroupController implements ControllerSpec {
  readonly name = 'podgroup'
  readonly concurrency = { least: 2, most: 10 }
  readonly #deps: Dependencies
  /** When a group was seen to miss claims, by its id; after a restart the claims' annotations tell. */
  readonly #noticed = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    onGroupChange(this.#deps.kubernetes.caches, this.#deps.state, enqueue)
  }

  /** @param id of a group. */
  async reconcile(id: string): Promise<ReconcileResult> {
    const { podGroups } = this.#deps.state
    const claims = claimsOfGroup(this.#deps.kubernetes.caches, id).filter((claim) =>
      this.#deps.state.isManaged(claim),
    )
    if (claims.length === 0) {
      this.#noticed.delete(id)
      return done
    }
    const ref = podGroups.ref(id)
    if (ref !== undefined && podGroups.isAbsent(ref)) {
      await this.#removeNotes(claims, id)
      return done
    }
    // Unknown is not deleted.
    if (ref === undefined || !this.#deps.state.hasSynced || !podGroups.isKnown(ref))
      return { kind: 'after', delayMs: pollMs }
    const group = podGroups.get(ref)
    const now = standingOf(this.#deps.state, id)
    const isOfGroup = (claim: NodeClaim) =>
      groupsOfClaim(claim).some((each) => each.id === id && each.uid === group?.uid)
    // A request that has its room loses its placeholder pods as real pods take their place.
    const isGone = now.members.length === 0 && group?.minCount !== 0
    const own = isGone ? [] : claims.filter(isOfGroup)
    const abandoned = claims.filter((claim) => !own.includes(claim))
    if (abandoned.length > 0) await this.#release(id, undefined, 'abandoned', abandoned)
    if (group === undefined || own.length === 0) return done
    if (now.bound >= group.minCount) return await this.#runs(group, own)
    return now.isWhole ? await this.#wait(group, own) : await this.#hold(group, own, now)
  }

  /** The group runs: its claims become ordinary ones. */
  async #runs(group: KnownGroup, claims: readonly NodeClaim[]): Promise<ReconcileResult> {
    await this.#removeNotes(claims, group.ref.id)
    this.#noticed.delete(group.ref.id)
    this.#deps.report.runs(group)
    return done
  }

  /** All that the group needs is on its way. */
  async #wait(group: KnownGroup, claims: readonly NodeClaim[]): Promise<ReconcileResult> {
    const { id } = group.ref
    const isLaunched = claims.every((claim) => isConditionTrue(claim, 'Launched'))
    if (isLaunched) {
      this.#noticed.delete(id)
      for (const claim of claims) await this.#noteShortSince(claim, id, undefined)
    } else {
      const sinceMs = this.#sinceMs(id, claims)
      if (sinceMs !== undefined && this.#deps.clock.now() - sinceMs >= groupHoldMs)
        return await this.#giveUp(group, 'insufficient_capacity', claims)
    }
    const deadlineMs = Math.min(...claims.map((claim) => groupDeadlineMs(claim, this.#deps.settings)))
    const leftMs = deadlineMs - this.#deps.clock.now()
    if (leftMs > 0) return { kind: 'after', delayMs: Math.min(leftMs, overdueMs) }
    // All nodes joined in time and are open: whatever keeps the group from running, they need not wait for it.
    if (claims.every((claim) => isConditionTrue(claim, 'Registered'))) {
      await this.#removeNotes(claims, id)
      return done
    }
    // The registration timeout handles claims without a node, and reports them on their NodePool.
    const joined = claims.filter((claim) => this.#deps.state.nodeOf(claim) !== undefined)
    if (joined.length > 0) await this.#giveUp(group, 'registration', joined)
    return { kind: 'after', delayMs: overdueMs }
  }

  /** Some of what the group needs neither exists nor is on its way. */
  async #hold(
    group: KnownGroup,
    claims: readonly NodeClaim[],
    { members }: Standing,
  ): Promise<ReconcileResult> {
    const { id } = group.ref
    const sinceMs = this.#sinceMs(id, claims) ?? this.#deps.clock.now()
    this.#noticed.set(id, sinceMs)
    const shortMs = this.#deps.clock.now() - sinceMs
    const isHopeless = this.#deps.state.podGroups.isRefused(id) || members.length < group.minCount
    if (shortMs >= groupHoldMs || (isHopeless && shortMs >= settlingMs))
      return await this.#giveUp(group, 'insufficient_capacity', claims)
    if (shortMs < settlingMs) return { kind: 'after', delayMs: settlingMs - shortMs }
    for (const claim of claims) await this.#noteShortSince(claim, id, Math.floor(sinceMs / 1000) * 1000)
    return { kind: 'after', delayMs: Math.min(groupHoldMs - shortMs, overdueMs) }
  }

  #sinceMs(id: string, claims: readonly NodeClaim[]): number | undefined {
    const noted = claims.flatMap((claim) => shortSinceMs(claim, id) ?? [])
    const noticed = this.#noticed.get(id)
    const all = noticed === undefined ? noted : [...noted, noticed]
    return all.length === 0 ? undefined : Math.min(...all)
  }

  async #giveUp(
    group: KnownGroup,
    reason: ReleaseReason,
    claims: readonly NodeClaim[],
  ): Promise<ReconcileResult> {
    await this.#release(group.ref.id, group, reason, claims)
    return { kind: 'after', delayMs: pollMs }
  }

  /** Deletes the claims whose nodes run only DaemonSet pods; the others become ordinary ones. */
  async #release(
    id: string,
    group: KnownGroup | undefined,
    reason: ReleaseReason,
    claims: readonly NodeClaim[],
  ): Promise<void> {
    const sinceMs = this.#sinceMs(id, claims) ?? this.#deps.clock.now()
    const isShared = (claim: NodeClaim): boolean => groupsOfClaim(claim).some((each) => each.id !== id)
    const freed = await Promise.all(
      claims.filter((claim) => !isShared(claim)).map((claim) => this.#releaseOne(id, claim)),
    )
    // Claims that another group waits for stay, and may open for it only after the rest are being deleted.
    await Promise.all(claims.filter(isShared).map((claim) => this.#removeNote(claim, id)))
    const released = freed.filter(Boolean).length
    this.#noticed.delete(id)
    if (released === 0) return
    if (group !== undefined) this.#nextRound(group.uid)
    this.#deps.report.released(id, reason, released, this.#deps.clock.now() - sinceMs)
  }

  async #releaseOne(id: string, claim: NodeClaim): Promise<boolean> {
    const node = this.#deps.state.nodeOf(claim)
    if (node === undefined) return await this.#deps.deleter.delete(claim, 'group_released')
    // Tainted first, so that no pod arrives after the check.
    await this.#deps.marks.taint(node, true)
    const pods = await podsOnNode(this.#deps.kubernetes.client, node.metadata.name)
    if (pods.every((pod) => isDaemonPod(pod) || isMirrorPod(pod) || isTerminal(pod)))
      return await this.#deps.deleter.delete(claim, 'group_released')
    await this.#deps.marks.takeOff(node, claim)
    await this.#removeNote(claim, id)
    return false
  }

  /** The group is planned again, with a growing pause after a few rounds. */
  #nextRound(uid: string): void {
    const { podGroups } = this.#deps.state
    const releases = (podGroups.roundOf(uid)?.releases ?? 0) + 1
    const pauseMs =
      releases <= quickRounds
        ? 0
        : Math.min(longestPauseMinutes, 2 ** (releases - quickRounds - 1)) * minuteMs
    podGroups.setRound(uid, { releases, notBeforeMs: this.#deps.clock.now() + pauseMs })
  }

  /** @param sinceMs undefined when the group misses no claims. */
  async #noteShortSince(claim: NodeClaim, id: string, sinceMs: number | undefined): Promise<void> {
    if (shortSinceMs(claim, id) === sinceMs) return
    await annotate(this.#deps.kubernetes.client, claim, {
      [groupShortAnnotation]: shortNote(claim, id, sinceMs),
    })
  }

  async #removeNotes(claims: readonly NodeClaim[], id: string): Promise<void> {
    for (const claim of claims) await this.#removeNote(claim, id)
  }

  /** The claim no longer waits for the group; once it waits for none, it is an ordinary claim. */
  async #removeNote(claim: NodeClaim, id: string): Promise<void> {
    const others = groupsOfClaim(claim).filter((group) => group.id !== id)
    await annotate(this.#deps.kubernetes.client, claim, {
      [groupShortAnnotation]: shortNote(claim, id, undefined),
      [groupAnnotation]: groupNote(others)[groupAnnotation] ?? null,
    })
  }
}

async function annotate(
  client: Pick<KubeClient, 'patch'>,
  { metadata: { name, uid } }: NodeClaim,
  annotations: Readonly<Record<string, string | null>>,
): Promise<void> {
  try {
    const metadata = { annotations, ...(uid !== undefined && { uid }) }
    await client.patch(karpenterKinds.nodeClaim, { name }, { metadata }, { isAnswerUnread: true })
  } catch (error) {
    // A conflict means that another claim has the name now.
    if (!isKubeError(error, 'conflict', 'notFound')) throw error
  }
}

/** The annotation after one group changed, with what it says of the others; null if nothing is left. */
function shortNote(claim: NodeClaim, id: string, sinceMs: number | undefined): string | null {
  const all = new Map(shortGroups(claim))
  if (sinceMs === undefined) all.delete(id)
  else all.set(id, sinceMs)
  const parts = Array.from(all, ([group, ms]) => `${group}=${rfc3339(ms)}`).toSorted()
  return parts.length === 0 ? null : parts.join(',')
}
