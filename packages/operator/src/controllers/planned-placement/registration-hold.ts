/** Keeps a new node closed until the scheduler knows which pods it is for (planned-placement.md). */
import { labels, type Node, type NodeClaim } from '@tenon/api'
import type { OperatorContext } from '../../context.ts'
import { nominatedNodeOf } from '../../state/nominated-pods.ts'

/** Nominations must have stood this long: an attempt that was under way when they came clears them. */
const standingMs = 250
/** How long what was found out about a batch is good for: each of its claims asks. */
const batchFreshMs = 50
/** Claims of a large batch ask less often. */
const pollMs = { least: 100, most: 1000 } as const

interface BatchState {
  readonly atMs: number
  readonly isReady: boolean
}

export class RegistrationHold {
  readonly #context: OperatorContext
  /** When the claim's Node was first held, by claim UID. */
  readonly #since = new Map<string, number>()
  readonly #batches = new WeakMap<ReadonlySet<string>, BatchState>()

  constructor(context: OperatorContext) {
    this.#context = context
    context.caches.nodeClaims.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#since.delete(object.metadata.uid ?? '')
    })
  }

  /**
   * Milliseconds after which to ask again; 0 once the node may open. All claims of a decision open
   * together, or a pod meant for one of the last would slip onto one of the first.
   */
  waitMs({ metadata: { name, uid = '' } }: NodeClaim): number {
    const { clock, settings, state, placementGate } = this.#context
    if (!placementGate.isOn || !this.#isSteered(name)) return 0
    const now = clock.now()
    const since = this.#since.get(uid) ?? now
    this.#since.set(uid, since)
    const leftMs = since + settings.nominationHoldMs - now
    if (leftMs <= 0) return 0
    const batch = state.plans.siblingsOf(name)
    if (this.#isBatchReady(batch)) return 0
    return Math.min(leftMs, pollMs.most, Math.max(pollMs.least, batch.size))
  }

  /** Whether others are being waited for, or were until now, so that this Node should not lag behind. */
  isHolding({ metadata: { uid = '' } }: NodeClaim): boolean {
    return this.#since.has(uid)
  }

  #isBatchReady(batch: ReadonlySet<string>): boolean {
    const now = this.#context.clock.now()
    const known = this.#batches.get(batch)
    if (known !== undefined && now - known.atMs < batchFreshMs) return known.isReady
    const isReady = [...batch].every((name) => this.#isReady(name))
    this.#batches.set(batch, { atMs: now, isReady })
    return isReady
  }

  /** Whether nothing speaks against opening because of this claim. */
  #isReady(name: string): boolean {
    const { caches, state } = this.#context
    const claim = caches.nodeClaims.get({ name })
    if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return true
    if (!this.#isSteered(name)) return true
    const node = state.nodeOf(claim)
    if (node === undefined) return false
    return node.metadata.labels?.[labels.registered] === 'true' || this.#isStanding(name, node)
  }

  #isSteered(claim: string): boolean {
    const { plans, pods } = this.#context.state
    return plans
      .podsOf({ kind: 'claim', name: claim })
      .some((uid) => plans.get(uid)?.isSteered === true && pods.unplaced(uid) !== undefined)
  }

  /** Whether every pod that waits for this node is nominated for it, or cannot be. */
  #isStanding(claim: string, { metadata: { name } }: Node): boolean {
    const { clock, state } = this.#context
    const latestMs = clock.now() - standingMs
    return state.plans.podsOf({ kind: 'claim', name: claim }).every((uid) => {
      const pod = state.pods.unplaced(uid)
      if (pod === undefined || state.plans.get(uid)?.isSteered !== true) return true
      const present = nominatedNodeOf(pod)
      if (present === name) return (state.plans.written(uid)?.atMs ?? 0) <= latestMs
      return present !== '' && !state.nominations.isOurs(pod)
    })
  }
}
