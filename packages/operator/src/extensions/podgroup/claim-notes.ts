/** Writes on claims how it stands with the group they were launched for (gangs.md 7.3). */
import { karpenterKinds, type NodeClaim } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { rfc3339 } from '@tenon/runtime'
import {
  groupAnnotation,
  groupNote,
  groupShortAnnotation,
  groupsOfClaim,
  shortGroups,
  shortSinceMs,
} from '../../state/pods/group-claims.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
}

export class GroupClaimNotes {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Notes since when the group misses claims; undefined: it does not. What is so already is not written, and what is
   * noted of other groups stays.
   */
  async setShortSince(claim: NodeClaim, id: string, sinceMs: number | undefined): Promise<void> {
    if (shortSinceMs(claim, id) === sinceMs) return
    await this.#annotate(claim, { [groupShortAnnotation]: shortNote(claim, id, sinceMs) })
  }

  /** The claim waits for the group no longer, and becomes one like others once it waits for none. */
  async dissolve(claim: NodeClaim, id: string): Promise<void> {
    const others = groupsOfClaim(claim).filter((group) => group.id !== id)
    await this.#annotate(claim, {
      [groupShortAnnotation]: shortNote(claim, id, undefined),
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

/** What is noted of the claim's groups once it is so with one of them; null for nothing. */
function shortNote(claim: NodeClaim, id: string, sinceMs: number | undefined): string | null {
  const all = new Map(shortGroups(claim))
  if (sinceMs === undefined) all.delete(id)
  else all.set(id, sinceMs)
  const parts = Array.from(all, ([group, ms]) => `${group}=${rfc3339(ms)}`).toSorted()
  return parts.length === 0 ? null : parts.join(',')
}
