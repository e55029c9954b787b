/** Writes on claims how it stands with the group they were launched for (gangs.md 7.3). */
import { karpenterKinds, type NodeClaim } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { rfc3339 } from '@tenon/runtime'
import {
  groupAnnotation,
  groupNote,
  groupShortAnnotation,
  groupsOfClaim,
  shortSinceMs,
} from '../cluster/pods/group-claims.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
}

export class GroupClaimNotes {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Notes since when the group misses claims; undefined: it does not. What is so already is not written. */
  async setShortSince(claim: NodeClaim, sinceMs: number | undefined): Promise<void> {
    if (shortSinceMs(claim) === sinceMs) return
    await this.#annotate(claim, { [groupShortAnnotation]: sinceMs === undefined ? null : rfc3339(sinceMs) })
  }

  /** The claim waits for the group no longer, and becomes one like others once it waits for none. */
  async dissolve(claim: NodeClaim, id: string): Promise<void> {
    const others = groupsOfClaim(claim).filter((group) => group.id !== id)
    await this.#annotate(claim, {
      [groupShortAnnotation]: null,
      [groupAnnotation]: groupNote(others)[groupAnnotation] ?? null,
    })
  }

  async #annotate(
    { metadata: { name, uid } }: NodeClaim,
    annotations: Readonly<Record<string, string | null>>,
  ): Promise<void> {
    try {
      const metadata = { annotations, ...(uid !== undefined && { uid }) }
      await this.#deps.client.patch(
        karpenterKinds.nodeClaim,
        { name },
        { metadata },
        { isAnswerUnread: true },
      )
    } catch (error) {
      // A conflict says that the name belongs to another claim by now.
      if (!isKubeError(error, 'conflict', 'notFound')) throw error
    }
  }
}
