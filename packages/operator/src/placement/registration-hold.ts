/** Keeps a new node closed until its pods are nominated (planned-placement.md). */
import { type Clock, Listeners } from '@tenon/runtime'
import type { NodeClaim } from '@tenon/api'
import { openingOrder, type OpeningOrder } from './opening-order.ts'
import { canOpen, isSteered, standingOf } from './standing-nominations.ts'
import type { OpeningHold } from '../nodeclaim/lifecycle/registration.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { PlacementGate } from './gate.ts'
import type { Settings } from '../settings.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly state: Pick<ClusterState, 'nodeOf' | 'nominations' | 'plans' | 'pods'>
  readonly placementGate: Pick<PlacementGate, 'isOn'>
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Pick<Settings, 'nominationHoldMs'>
  /** Asked first, in this order. */
  readonly others: readonly OpeningHold[]
}

/** From the decision to open until the first Node opens, so that the later ones are not late. */
const wakingMs = 10
/**
 * How much later a Node opens if some of its pods lost their nomination: any pod whose own Node is closed may take their
 * room. Not where filler pods wait: that room is open to all of them anyway.
 */
const laggingMs = 60
/** How long the state of a batch is reused: each of its claims asks. */
const batchFreshMs = 50
/** How often the claim that polls for its batch asks, and how often the others do, in case that one stops. */
const pollMs = { least: 100, most: 1000 } as const

interface BatchState {
  readonly atMs: number
  /** When the first of its Nodes was held. */
  readonly sinceMs: number
  /** When the Nodes open; undefined while something prevents it. */
  readonly opensAtMs: number | undefined
  readonly order: OpeningOrder
  /** Whether the Nodes that open first have opened and their pods are bound. */
  readonly isFirstDone: boolean
  /** Claims with pods whose nomination was missing when the batch was about to open. */
  readonly lagging: ReadonlySet<string>
}

export class RegistrationHold implements OpeningHold {
  readonly #deps: Dependencies
  /** When the claim's Node was first held, by claim UID. */
  readonly #since = new Map<string, number>()
  readonly #batches = new WeakMap<ReadonlySet<string>, BatchState>()
  /** The claim of each batch that polls for all of it, and when it last did. */
  readonly #scouts = new WeakMap<ReadonlySet<string>, { readonly name: string; readonly atMs: number }>()
  readonly due: OpeningHold['due'] = new Listeners()

  constructor(deps: Dependencies) {
    this.#deps = deps
    for (const other of deps.others)
      other.due.add((claim) => {
        this.due.notify(claim)
      })
    deps.caches.nodeClaims.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#since.delete(object.metadata.uid ?? '')
    })
  }

  /**
   * A pod that the scheduler tries before its own node is open lands on another one, or loses its nomination and with it
   * its room. So all nodes of a decision open at once, in the order in which the scheduler needs them. Only nodes that can
   * be filled on their own open earlier, if pods of other nodes must be near theirs. When one node has waited as long as
   * it may, the whole batch opens, as far as it is Ready.
   */
  waitMs(claim: NodeClaim): number {
    const { name, uid = '' } = claim.metadata
    const { clock, settings, state, placementGate, others } = this.#deps
    for (const other of others) {
      const waitMs = other.waitMs(claim)
      if (waitMs > 0) return waitMs
    }
    if (!placementGate.isOn || !isSteered(state, name)) return 0
    const now = clock.now()
    const since = this.#since.get(uid) ?? now
    this.#since.set(uid, since)
    const leftMs = since + settings.nominationHoldMs - now
    if (leftMs <= 0) return 0
    const batch = state.plans.siblingsOf(name)
    const { sinceMs, opensAtMs, order, isFirstDone, lagging } = this.#stateOf(batch, since)
    const deadlineMs = sinceMs + settings.nominationHoldMs
    const goesAlong = since < deadlineMs && this.#canOpen(claim)
    // The others have opened without it: only its own pods count now.
    if (now >= deadlineMs && !goesAlong)
      return standingOf(this.#deps, new Set([name])).isReady ? 0 : Math.min(leftMs, askAgainMs(batch))
    const isTurn = opensAtMs !== undefined && (isFirstDone || order.first.has(name))
    const rank = rankOf(name, order, lagging)
    const askAgainAtMs = Math.min(now + this.#pauseMs(batch, name), deadlineMs)
    return Math.max(0, Math.min(leftMs, (isTurn ? opensAtMs + rank : askAgainAtMs) - now))
  }

  /** One claim polls for its whole batch; another one takes over when it stops. */
  #pauseMs(batch: ReadonlySet<string>, name: string): number {
    const now = this.#deps.clock.now()
    const scout = this.#scouts.get(batch)
    if (scout !== undefined && scout.name !== name && now - scout.atMs < pollMs.most) return pollMs.most
    this.#scouts.set(batch, { name, atMs: now })
    return pollMs.least
  }

  /** Whether the Node waits, or waited, for others: it should not open later than they do. */
  isHolding({ metadata: { uid = '' } }: NodeClaim): boolean {
    return this.#since.has(uid)
  }

  #stateOf(batch: ReadonlySet<string>, since: number): BatchState {
    const { clock, settings, state, caches } = this.#deps
    const atMs = clock.now()
    const known = this.#batches.get(batch)
    if (known?.opensAtMs !== undefined && known.isFirstDone) return known
    const sinceMs = known?.sinceMs ?? since
    const isLate = atMs >= sinceMs + settings.nominationHoldMs
    if (known !== undefined && !isLate && atMs - known.atMs < batchFreshMs) return known
    const next = isLate
      ? {
          atMs,
          sinceMs,
          order: openingOrder(state, caches, batch),
          isFirstDone: true,
          opensAtMs: atMs,
          lagging: none,
        }
      : { atMs, sinceMs, ...this.#progress(batch, known) }
    this.#batches.set(batch, next)
    const { opensAtMs, order, isFirstDone, lagging } = next
    if (opensAtMs !== undefined && (known?.opensAtMs !== opensAtMs || known.isFirstDone !== isFirstDone)) {
      for (const name of isFirstDone ? batch : order.first)
        this.due.notify({ name, afterMs: opensAtMs + rankOf(name, order, lagging) - atMs })
    }
    return next
  }

  #progress(
    batch: ReadonlySet<string>,
    known: BatchState | undefined,
  ): Pick<BatchState, 'order' | 'isFirstDone' | 'opensAtMs' | 'lagging'> {
    const { clock, state, caches } = this.#deps
    const isOpening = known?.opensAtMs !== undefined
    const { isReady, lagging } = standingOf(this.#deps, batch)
    const order = isOpening || !isReady ? (known?.order ?? unordered) : openingOrder(state, caches, batch)
    const isFirstDone = isReady && ![...order.first].some((name) => isSteered(state, name))
    const opensAtMs = isOpening && !isFirstDone ? known.opensAtMs : clock.now() + wakingMs
    return {
      order,
      isFirstDone,
      opensAtMs: isOpening || isReady ? opensAtMs : undefined,
      lagging: isOpening ? known.lagging : lagging,
    }
  }

  #canOpen(claim: NodeClaim): boolean {
    const node = this.#deps.state.nodeOf(claim)
    return node !== undefined && canOpen(node)
  }
}

const none: ReadonlySet<string> = new Set()
const unordered: OpeningOrder = { first: none, rank: new Map() }

/** Milliseconds from the moment of opening until it is the claim's turn. */
const rankOf = (name: string, { rank }: OpeningOrder, lagging: ReadonlySet<string>): number =>
  (rank.get(name) ?? 0) + (lagging.has(name) ? laggingMs : 0)

/** Claims of a large batch ask less often. */
const askAgainMs = ({ size }: ReadonlySet<string>): number =>
  Math.min(pollMs.most, Math.max(pollMs.least, size))
