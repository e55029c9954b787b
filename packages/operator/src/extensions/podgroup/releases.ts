/** Gives back claims of a group that cannot have all of them (gangs.md 7.3). */
import { type Node, type NodeClaim, type Pod } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { groupsOfClaim } from '../../state/pods/group-claims.ts'
import { podsOnNode } from '../../state/pods/fresh-pods.ts'
import { isDaemonPod, isMirrorPod, isTerminal } from '../../state/pods/pods.ts'
import type { DisruptionMarks } from '../../disruption/commands/marks.ts'
import type { ClaimDeleter } from '../../nodeclaim/lifecycle/delete-claim.ts'
import type { GroupClaimNotes } from './claim-notes.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'list'>
  readonly state: Pick<ClusterState, 'nodeOf' | 'podGroups'>
  readonly deleter: ClaimDeleter
  readonly marks: DisruptionMarks
  readonly notes: GroupClaimNotes
  readonly clock: Pick<Clock, 'now'>
}

/** So often a group is planned again at once; then it waits. */
const quickRounds = 3
const minuteMs = 60_000
const longestPauseMinutes = 10

export class GroupReleases {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Deletes the claims that hold no pods but those of DaemonSets; the others are like any claim from now on.
   * @returns how many are deleted.
   */
  async release(id: string, claims: readonly NodeClaim[]): Promise<number> {
    const isShared = (claim: NodeClaim): boolean => groupsOfClaim(claim).some((group) => group.id !== id)
    const freed = await Promise.all(
      claims.filter((claim) => !isShared(claim)).map((claim) => this.#releaseOne(id, claim)),
    )
    // What another group waits for stays, and may open for that one: not before the others are on their way out.
    await Promise.all(claims.filter(isShared).map((claim) => this.#deps.notes.dissolve(claim, id)))
    return freed.filter(Boolean).length
  }

  /** Notes that a group has to be planned anew, and from when on that is done. */
  nextRound(uid: string): void {
    const { clock, state } = this.#deps
    const releases = (state.podGroups.roundOf(uid)?.releases ?? 0) + 1
    const pauseMs =
      releases <= quickRounds
        ? 0
        : Math.min(longestPauseMinutes, 2 ** (releases - quickRounds - 1)) * minuteMs
    state.podGroups.setRound(uid, { releases, notBeforeMs: clock.now() + pauseMs })
  }

  async #releaseOne(id: string, claim: NodeClaim): Promise<boolean> {
    const { deleter, marks, notes, state } = this.#deps
    const node = state.nodeOf(claim)
    if (node === undefined) return await deleter.delete(claim, 'group_released')
    // No pod comes any more once it is seen that there is none.
    await marks.taint(node, true)
    if (await this.#isFree(node)) return await deleter.delete(claim, 'group_released')
    await marks.takeOff(node, claim)
    await notes.dissolve(claim, id)
    return false
  }

  async #isFree({ metadata }: Node): Promise<boolean> {
    const pods = await podsOnNode(this.#deps.client, metadata.name)
    return pods.every((pod: Pod) => isDaemonPod(pod) || isMirrorPod(pod) || isTerminal(pod))
  }
}
