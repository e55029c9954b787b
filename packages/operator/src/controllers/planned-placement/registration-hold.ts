/** Keeps a new node closed until the scheduler knows which pods it is for (planned-placement.md). */
import {
  isKnownEphemeralTaint,
  labels,
  type Node,
  type NodeClaim,
  sameTaint,
  unregisteredTaint,
} from '@tenon/api'
import type { OperatorContext } from '../../context.ts'
import { nominatedNodeOf } from '../../state/nominated-pods.ts'
import { isNodeReady } from '../../state/state-node.ts'
import { nodesWithoutRoom } from './opening-order.ts'

/** Nominations must have stood this long: an attempt that was under way when they came clears them. */
const standingMs = 250
/** How long what was found out about a batch is good for: each of its claims asks. */
const batchFreshMs = 50
/** Claims of a large batch ask less often. */
const pollMs = { turn: 50, least: 100, most: 1000 } as const

interface BatchState {
  readonly atMs: number
  readonly isReady: boolean
  /** The claims that open first, once the batch is ready. */
  readonly first: ReadonlySet<string>
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
   * together, or a pod meant for one of the last would slip onto one of the first; those with room to spare
   * open last, when the others have their taint off already.
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
    const { isReady, first } = this.#lookAt(batch)
    if (!isReady) return Math.min(leftMs, pollMs.most, Math.max(pollMs.least, batch.size))
    const isTurn = first.has(name) || [...first].every((each) => this.#isOpen(each))
    return isTurn ? 0 : Math.min(leftMs, pollMs.turn)
  }

  /** Whether others are being waited for, or were until now, so that this Node should not lag behind. */
  isHolding({ metadata: { uid = '' } }: NodeClaim): boolean {
    return this.#since.has(uid)
  }

  #lookAt(batch: ReadonlySet<string>): BatchState {
    const atMs = this.#context.clock.now()
    const known = this.#batches.get(batch)
    if (known?.isReady === true || (known !== undefined && atMs - known.atMs < batchFreshMs)) return known
    const isReady = [...batch].every((name) => this.#isReady(name))
    const first = isReady
      ? nodesWithoutRoom(this.#context.state, this.#context.caches, batch)
      : new Set<string>()
    const state = { atMs, isReady, first }
    this.#batches.set(batch, state)
    return state
  }

  /** Whether the claim's Node has been opened, or will not be. */
  #isOpen(name: string): boolean {
    const { caches, state } = this.#context
    const claim = caches.nodeClaims.get({ name })
    const node = claim === undefined ? undefined : state.nodeOf(claim)
    return node === undefined || node.metadata.labels?.[labels.registered] === 'true'
  }

  /** Whether nothing speaks against opening because of this claim. */
  #isReady(name: string): boolean {
    const { caches, state } = this.#context
    const claim = caches.nodeClaims.get({ name })
    if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return true
    if (!this.#isSteered(name)) return true
    const node = state.nodeOf(claim)
    if (node === undefined) return false
    if (node.metadata.labels?.[labels.registered] === 'true') return true
    return canOpen(node) && this.#isStanding(name, node)
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

/** Whether the unregistered taint is all that keeps pods away. */
function canOpen(node: Node): boolean {
  const taints = node.spec?.taints ?? []
  return (
    isNodeReady(node) &&
    !taints.some((taint) => isKnownEphemeralTaint(taint) && !sameTaint(taint, unregisteredTaint))
  )
}
