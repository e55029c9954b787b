/** Nodes that were lost without Tenon's doing (ask.md 8). */
import { isConditionTrue, type Node, type NodeClaim } from '@tenon/api'
import type { Cache } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { isDisrupted, isNodeReady } from '../../state/nodes/state-node.ts'

interface Dependencies {
  readonly nodes: Pick<Cache<Node>, 'get' | 'list' | 'onChange'>
  readonly claimOf: (node: Node) => NodeClaim | undefined
  readonly clock: Pick<Clock, 'after' | 'now' | 'monotonic'>
}

/** A node whose removal is not in the cache yet looks like a lost one: it has to be there, and not Ready, for so long. */
const confirmMs = 30_000
/** Losses that lie further apart are not one event. */
const windowMs = 5 * 60_000
/** In smaller clusters single nodes are a large share. */
const leastNodes = 10
const share = 0.2

/** How many nodes were lost together. */
export interface Loss {
  readonly lost: readonly string[]
  /** Nodes that were Ready before. */
  readonly of: number
}

/**
 * A node is lost when it stops being Ready although nobody has begun to remove it: neither the Node nor its NodeClaim is
 * being deleted, and the Node is not cordoned. Once it is Ready again it is not lost any more.
 */
export class LostNodes {
  readonly #deps: Dependencies
  /** By name of the Node, when it was lost; monotonic milliseconds. */
  readonly #lost = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Begins to look; call it once.
   * @param onLoss told of each loss that is large enough, once.
   * @param notedUntilMs losses up to then were told of by an earlier process; Unix milliseconds.
   */
  follow(onLoss: (loss: Loss) => void, notedUntilMs: number): void {
    const { clock, nodes } = this.#deps
    this.#restore(notedUntilMs)
    nodes.onChange((change) => {
      if (change.kind === 'deleted') return
      const { name } = change.object.metadata
      if (isNodeReady(change.object)) this.#lost.delete(name)
      if (change.kind !== 'updated' || !isNodeReady(change.old) || isNodeReady(change.object)) return
      if (this.#isGoing(change.object)) return
      const atMs = clock.monotonic()
      clock.after(confirmMs, () => {
        if (!this.#isStillLost(name)) return
        this.#lost.set(name, atMs)
        this.#weigh(onLoss)
      })
    })
  }

  #isStillLost(name: string): boolean {
    const node = this.#deps.nodes.get({ name })
    return node !== undefined && !isNodeReady(node) && !this.#isGoing(node)
  }

  #weigh(onLoss: (loss: Loss) => void): void {
    const now = this.#deps.clock.monotonic()
    for (const [name, atMs] of this.#lost) if (now - atMs > windowMs) this.#lost.delete(name)
    const ready = this.#deps.nodes.list().filter(isNodeReady).length
    const of = ready + this.#lost.size
    if (of < leastNodes || this.#lost.size <= share * of) return
    const lost = [...this.#lost.keys()].toSorted()
    this.#lost.clear()
    onLoss({ lost, of })
  }

  /** What was lost shortly before this process began to look. */
  #restore(notedUntilMs: number): void {
    const { clock, nodes } = this.#deps
    const now = clock.now()
    for (const node of nodes.list()) {
      if (isNodeReady(node) || this.#isGoing(node) || !this.#wasReady(node, now)) continue
      const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
      const lostMs = Date.parse(ready?.lastTransitionTime ?? '')
      // A clock that is ahead tells of the future.
      const agoMs = Math.max(0, now - lostMs)
      if (Number.isNaN(lostMs) || agoMs > windowMs || lostMs <= notedUntilMs) continue
      this.#lost.set(node.metadata.name, clock.monotonic() - agoMs)
    }
  }

  #wasReady(node: Node, nowMs: number): boolean {
    const claim = this.#deps.claimOf(node)
    if (claim !== undefined) return isConditionTrue(claim, 'Initialized')
    return nowMs - Date.parse(node.metadata.creationTimestamp ?? '') > windowMs
  }

  #isGoing(node: Node): boolean {
    return (
      node.metadata.deletionTimestamp !== undefined ||
      node.spec?.unschedulable === true ||
      isDisrupted(node) ||
      this.#deps.claimOf(node)?.metadata.deletionTimestamp !== undefined
    )
  }
}
