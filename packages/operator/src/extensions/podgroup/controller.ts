/** `podgroup`: holds the launches for a group together until it runs, or gives them back (gangs.md 7.3). */
import { isConditionTrue, type NodeClaim } from '@tenon/api'
import { done, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { groupsOfClaim, shortSinceMs } from '../../state/pods/group-claims.ts'
import type { KnownGroup } from '../../state/pods/pod-groups.ts'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import type { GroupClaimNotes } from './claim-notes.ts'
import type { GroupReleases } from './releases.ts'
import type { GroupReport, ReleaseReason } from './report.ts'
import type { GroupStanding, Standing } from './standing.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'hasSynced' | 'nodeOf' | 'podGroups'>
  readonly standing: GroupStanding
  readonly notes: GroupClaimNotes
  readonly releases: GroupReleases
  readonly report: GroupReport
  readonly clock: Pick<Clock, 'now'>
}

/** Longest time that claims are kept while others of their group cannot be had. */
const groupHoldMs = 120_000
/** While a decision is carried out, claims come one after the other. */
const settlingMs = 5_000
const pollMs = 1_000
const overdueMs = 10_000

export class GroupController implements ControllerSpec {
  readonly name = 'podgroup'
  readonly concurrency = { least: 2, most: 10 }
  readonly #deps: Dependencies
  /** When it was seen that a group misses claims, by its id; from the claims' notes after a restart. */
  readonly #noticed = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    this.#deps.standing.onChange((id) => {
      enqueue(id)
    })
  }

  /** @param id of a group. */
  async reconcile(id: string): Promise<ReconcileResult> {
    const { state, standing } = this.#deps
    const claims = standing.claimsOf(id)
    if (claims.length === 0) {
      this.#noticed.delete(id)
      return done
    }
    const ref = state.podGroups.ref(id)
    if (ref !== undefined && state.podGroups.isAbsent(ref)) {
      for (const claim of claims) await this.#deps.notes.dissolve(claim, id)
      return done
    }
    // What is not known yet is not gone.
    if (ref === undefined || !state.hasSynced || !state.podGroups.isKnown(ref))
      return { kind: 'after', delayMs: pollMs }
    const group = state.podGroups.get(ref)
    const now = standing.of(id)
    const isOfGroup = (claim: NodeClaim) =>
      groupsOfClaim(claim).some((each) => each.id === id && each.uid === group?.uid)
    // A request that has its room has no pods any more once others have taken it.
    const isGone = now.members.length === 0 && group?.minCount !== 0
    const own = isGone ? [] : claims.filter(isOfGroup)
    const abandoned = claims.filter((claim) => !own.includes(claim))
    if (abandoned.length > 0) await this.#release(id, undefined, 'abandoned', abandoned)
    if (group === undefined || own.length === 0) return done
    if (now.bound >= group.minCount) return await this.#dissolve(group, own)
    return now.isWhole ? await this.#wait(group, own) : await this.#hold(group, own, now)
  }

  /** The group runs: its claims are like others from now on. */
  async #dissolve(group: KnownGroup, claims: readonly NodeClaim[]): Promise<ReconcileResult> {
    const { notes, report } = this.#deps
    for (const claim of claims) await notes.dissolve(claim, group.ref.id)
    this.#noticed.delete(group.ref.id)
    report.runs(group)
    return done
  }

  /** All that the group needs is on its way. */
  async #wait(group: KnownGroup, claims: readonly NodeClaim[]): Promise<ReconcileResult> {
    const { state, clock, notes, standing } = this.#deps
    const { id } = group.ref
    const isLaunched = claims.every((claim) => isConditionTrue(claim, 'Launched'))
    if (isLaunched) {
      this.#noticed.delete(id)
      for (const claim of claims) await notes.setShortSince(claim, id, undefined)
    } else {
      const sinceMs = this.#sinceMs(id, claims)
      if (sinceMs !== undefined && clock.now() - sinceMs >= groupHoldMs)
        return await this.#giveUp(group, 'insufficient_capacity', claims)
    }
    const leftMs = Math.min(...claims.map((claim) => standing.deadlineMs(claim))) - clock.now()
    if (leftMs > 0) return { kind: 'after', delayMs: Math.min(leftMs, overdueMs) }
    // They had their time, and are open: whatever keeps the group from running, these nodes need not wait for it.
    if (claims.every((claim) => isConditionTrue(claim, 'Registered'))) {
      for (const claim of claims) await notes.dissolve(claim, id)
      return done
    }
    // The registration timeout sees to those without a node, and tells their NodePool.
    const joined = claims.filter((claim) => state.nodeOf(claim) !== undefined)
    if (joined.length > 0) await this.#giveUp(group, 'registration', joined)
    return { kind: 'after', delayMs: overdueMs }
  }

  /** Some of what the group needs is neither there nor on its way. */
  async #hold(
    group: KnownGroup,
    claims: readonly NodeClaim[],
    { members }: Standing,
  ): Promise<ReconcileResult> {
    const { state, clock, notes } = this.#deps
    const { id } = group.ref
    const sinceMs = this.#sinceMs(id, claims) ?? clock.now()
    this.#noticed.set(id, sinceMs)
    const shortMs = clock.now() - sinceMs
    const isHopeless = state.podGroups.isRefused(id) || members.length < group.minCount
    if (shortMs >= groupHoldMs || (isHopeless && shortMs >= settlingMs))
      return await this.#giveUp(group, 'insufficient_capacity', claims)
    if (shortMs < settlingMs) return { kind: 'after', delayMs: settlingMs - shortMs }
    for (const claim of claims) await notes.setShortSince(claim, id, Math.floor(sinceMs / 1000) * 1000)
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

  async #release(
    id: string,
    group: KnownGroup | undefined,
    reason: ReleaseReason,
    claims: readonly NodeClaim[],
  ): Promise<void> {
    const { clock, releases, report } = this.#deps
    const sinceMs = this.#sinceMs(id, claims) ?? clock.now()
    const released = await releases.release(id, claims)
    this.#noticed.delete(id)
    if (released === 0) return
    if (group !== undefined) releases.nextRound(group.uid)
    report.released(id, reason, released, clock.now() - sinceMs)
  }
}
