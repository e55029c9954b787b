/**
 * Remembers the candidates for which a search for consolidation found no move. As long as a candidate has not changed, no
 * other node has more room and no offering is cheaper, searching again would find nothing either, so the engine is asked to
 * leave it out.
 */
import { isDeepStrictEqual } from 'node:util'
import { comparePrices, lowestPrice, ownValue, type PricePerHour, type Resources } from '@tenon/api'
import type { ConsolidationQuestion, ConsolidationResult, NodeInput } from '@tenon/engine'
import type { Candidate } from '../candidates.ts'
import type { Catalogue } from '../catalogue.ts'

/** A time that grows with the number of candidates, as the time of a search does. */
interface Scale {
  readonly leastMs: number
  readonly perCandidateMs: number
  readonly longestMs: number
}

export function scaledMs({ leastMs, longestMs, perCandidateMs }: Scale, candidates: number): number {
  return Math.min(longestMs, Math.max(leastMs, perCandidateMs * candidates))
}

/** How often all candidates are searched, whatever is remembered: room may have come up elsewhere. */
const fullSearchEvery: Scale = { leastMs: 10 * 60_000, perCandidateMs: 1800, longestMs: 30 * 60_000 }
/** How often all nodes are packed together again, which takes longest. */
const repackEveryMs = 60 * 60_000
/** Vertical autoscalers change requests all the time: a smaller relative difference is ignored. */
const requestTolerance = 0.1

/** A candidate at the search that found nothing for it. */
interface SeenCandidate {
  readonly candidate: CandidateView
  /** How many nodes of its NodePool the budgets allowed at most; Infinity if budgets limited nothing. */
  readonly left: number
}

/** The part of a node that decides which pods fit on it. */
type NodeView = Pick<
  NodeInput,
  'name' | 'labels' | 'taints' | 'initialized' | 'available' | 'refusesCandidatePods' | 'takesOnlyPlanned'
>

type CandidateGroups = NonNullable<ConsolidationResult['groups']>

/** By NodePool. Those that share their types share their prices. */
type Prices = ReadonlyMap<string, TypePrices>

/** Prices of the offerings of each type; undefined for those that are not available. */
type TypePrices = ReadonlyMap<string, readonly PricePerHour[]>

type CandidateView = Pick<
  Candidate,
  'name' | 'movable' | 'requests' | 'pricePerHour' | 'disruptionCost' | 'waitsForBusyNodes' | 'pool'
>

/** What a search depends on. */
export interface SearchInput {
  readonly candidates: Iterable<CandidateView>
  /** Nodes that may still be disrupted, by NodePool. */
  readonly budgets: ReadonlyMap<string, number>
  readonly catalogue: Catalogue
  /** Nodes that may receive pods. */
  readonly nodes: readonly NodeView[]
  /** Whether other pods are pending: nodes that have to be launched for them prevent moves. */
  readonly othersWait: boolean
  readonly nowMs: number
}

/** What decides whether a search limited by budgets would find the same again. */
export type SearchKey = Pick<SearchInput, 'candidates' | 'budgets' | 'catalogue'>

/** What the engine may leave out of the search. */
export type Unchanged = Required<Pick<ConsolidationQuestion, 'unchanged' | 'settled'>> &
  Pick<ConsolidationQuestion, 'roomier' | 'failedGroups'>

/** Nothing may be left out. */
export const nothingUnchanged: Unchanged = { unchanged: new Set(), settled: new Set() }

/**
 * Invariant: no move was found for any candidate in it with the nodes, prices and budgets stored beside it. On a busy
 * cluster something changes before every search, but nearly all nodes do not; packing these again, alone, in groups and
 * all together, would be most of the work.
 */
export class ConsolidationMemo {
  #seen: ReadonlyMap<string, SeenCandidate> = new Map()
  /** Nodes at the last full search, with the least room that they have had since. */
  #nodes: ReadonlyMap<string, NodeView> | undefined
  /** Nodes at the last search. */
  #searched: ReadonlyMap<string, NodeView> = new Map()
  /** The lowest prices since the last full search. */
  #prices: Prices = new Map()
  /** Groups of candidates that were packed together without finding a move; none of them has changed since. */
  #failedGroups: CandidateGroups = new Map()
  #fullSearchMs = Number.NEGATIVE_INFINITY
  #repackMs = Number.NEGATIVE_INFINITY

  /** A memo of one search, at time 0, that found nothing. */
  static ofFailedSearch(input: Omit<SearchInput, 'nowMs'>): ConsolidationMemo {
    const memo = new ConsolidationMemo()
    const at = { ...input, nowMs: 0 }
    memo.note(at, memo.unchanged(at), true)
    // Moves that the pending pods prevented may be possible wherever there is room.
    if (input.othersWait) memo.#nodes = undefined
    return memo
  }

  /** A copy, as if the full search had been now. */
  forked(nowMs: number): ConsolidationMemo {
    const other = new ConsolidationMemo()
    other.#seen = this.#seen
    other.#nodes = this.#nodes
    other.#searched = this.#searched
    other.#prices = this.#prices
    other.#failedGroups = this.#failedGroups
    other.#fullSearchMs = nowMs
    other.#repackMs = nowMs
    return other
  }

  /** What the next search may leave out. */
  unchanged({ candidates, budgets, catalogue, nodes, nowMs }: SearchInput): Unchanged {
    const isLapsed = nowMs - this.#repackMs >= repackEveryMs
    if (isLapsed || isCheaper(pricesOf(catalogue), this.#prices)) this.#seen = new Map()
    const settled = new Set<string>()
    let count = 0
    for (const candidate of candidates) {
      count++
      const seen = this.#seen.get(candidate.name)
      if (
        seen !== undefined &&
        isUnchanged(candidate, seen.candidate) &&
        leftOf(candidate, budgets) <= seen.left
      )
        settled.add(candidate.name)
    }
    const before = this.#nodes
    const isComparable = settled.size > 0 && before !== undefined && !hasLimits(catalogue)
    const roomier = isComparable ? nodes.filter((node) => isRoomier(node, before.get(node.name))) : undefined
    const isFullSearch = nowMs - this.#fullSearchMs >= scaledMs(fullSearchEvery, count)
    const unchanged = isFullSearch ? new Set<string>() : settled
    if (roomier === undefined) return { unchanged, settled }
    return {
      unchanged,
      settled,
      roomier: new Set(roomier.map(({ name }) => name)),
      failedGroups: this.#failedGroups,
    }
  }

  /**
   * Whether a search would find nothing, as the last one did: every candidate is unchanged and no node has more room.
   * @param areAll whether a missing candidate counts as a change, too.
   */
  wouldFindNothing(
    { candidates, nodes, catalogue }: SearchInput,
    { unchanged }: Unchanged,
    areAll = false,
  ): boolean {
    if (hasLimits(catalogue)) return false
    let count = 0
    for (const { name } of candidates) {
      if (!unchanged.has(name)) return false
      count++
    }
    if (areAll && count < this.#seen.size) return false
    return nodes.every((node) => !isRoomier(node, this.#searched.get(node.name)))
  }

  /**
   * Stores that a search found nothing.
   * @param isLimited whether budgets excluded a move.
   * @param failed groups of candidates that it packed together.
   */
  note(
    { candidates, budgets, catalogue, nodes, nowMs }: SearchInput,
    { unchanged, settled }: Unchanged,
    isLimited: boolean,
    failed: CandidateGroups = new Map(),
  ): void {
    const isFullSearch = unchanged.size === 0
    // A full search packs all groups again, with the room that there is now.
    const kept = isFullSearch
      ? []
      : [...this.#failedGroups].filter(([, names]) => names.every((name) => settled.has(name)))
    this.#failedGroups = new Map([...kept, ...failed])
    if (isFullSearch) this.#fullSearchMs = nowMs
    this.#searched = new Map(nodes.map((node) => [node.name, node]))
    // Nodes that came or changed since the full search were not tried for all candidates.
    this.#nodes = isFullSearch ? this.#searched : this.#nodes && withLeastRooms(nodes, this.#nodes)
    if (settled.size === 0) this.#repackMs = nowMs
    const isFirst = this.#seen.size === 0
    const prices = pricesOf(catalogue)
    this.#prices = isFirst ? prices : lowest(prices, this.#prices)
    const seenAs = (candidate: CandidateView): SeenCandidate => {
      const known = this.#seen.get(candidate.name)
      const left = isLimited ? leftOf(candidate, budgets) : Number.POSITIVE_INFINITY
      if (known === undefined || !isUnchanged(candidate, known.candidate)) return { candidate, left }
      if (known.candidate === candidate && known.left >= left) return known
      return { candidate, left: Math.max(known.left, left) }
    }
    this.#seen = new Map(Array.from(candidates, (candidate) => [candidate.name, seenAs(candidate)]))
  }
}

/** Draining nodes free their pool's limits, so a move that limits forbid now may be possible later. */
function hasLimits(catalogue: Catalogue): boolean {
  return catalogue.values().some(({ pool }) => Object.keys(pool.spec.limits ?? {}).length > 0)
}

/** The nodes that are alike but for their room, with the least room of both times. */
function withLeastRooms(
  nodes: readonly NodeView[],
  before: ReadonlyMap<string, NodeView>,
): ReadonlyMap<string, NodeView> {
  const least = new Map<string, NodeView>()
  for (const node of nodes) {
    const then = before.get(node.name)
    if (then !== undefined && isAlike(node, then)) least.set(node.name, withLeastRoom(node, then))
  }
  return least
}

/** Whether a pod may fit on the node that did not fit before. */
function isRoomier(now: NodeView, then: NodeView | undefined): boolean {
  if (now === then) return false
  if (then === undefined || !isAlike(now, then)) return true
  const { available } = now
  return Object.keys(available).some(
    (name) => (ownValue(available, name) ?? 0) > (ownValue(then.available, name) ?? 0),
  )
}

/** Whether the nodes admit the same pods, apart from their room. */
function isAlike(a: NodeView, b: NodeView): boolean {
  if (a === b) return true
  return (
    a.initialized === b.initialized &&
    (a.refusesCandidatePods ?? false) === (b.refusesCandidatePods ?? false) &&
    (a.takesOnlyPlanned ?? false) === (b.takesOnlyPlanned ?? false) &&
    (a.labels === b.labels || isDeepStrictEqual(a.labels, b.labels)) &&
    (a.taints === b.taints || isDeepStrictEqual(a.taints, b.taints))
  )
}

function withLeastRoom(now: NodeView, then: NodeView): NodeView {
  if (now === then) return then
  const available = Object.fromEntries(
    Object.entries(now.available).map(([name, amount]) => [
      name,
      Math.min(amount, ownValue(then.available, name) ?? 0),
    ]),
  )
  return { ...now, available }
}

/** Whether candidates, budgets and prices are such that a search would find the same as before on the same nodes. */
export function isSameSearch(now: SearchKey, then: SearchKey): boolean {
  const before = new Map(Array.from(then.candidates, (candidate) => [candidate.name, candidate]))
  let count = 0
  for (const candidate of now.candidates) {
    const known = before.get(candidate.name)
    if (known === undefined || !isUnchanged(candidate, known)) return false
    count++
  }
  return (
    count === before.size &&
    isSameBudget(now.budgets, then.budgets) &&
    !isCheaper(pricesOf(now.catalogue), pricesOf(then.catalogue))
  )
}

export function isSameBudget(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): boolean {
  return a.size === b.size && [...a].every(([pool, left]) => b.get(pool) === left)
}

const leftOf = ({ pool }: CandidateView, budgets: ReadonlyMap<string, number>): number =>
  budgets.get(pool.metadata.name) ?? 0

function pricesOf(catalogue: Catalogue): Prices {
  const known = new Map<unknown, TypePrices>()
  return new Map(
    Array.from(catalogue, ([pool, { types }]) => {
      const prices =
        known.get(types) ??
        new Map(
          Array.from(types, ([name, { offerings }]) => [
            name,
            offerings.map(({ available, pricePerHour }) => (available ? pricePerHour : undefined)),
          ]),
        )
      known.set(types, prices)
      return [pool, prices]
    }),
  )
}

function isCheaper(now: Prices, before: Prices): boolean {
  const noCheaper = new Map<TypePrices, TypePrices | undefined>()
  for (const [pool, types] of now) {
    const known = before.get(pool)
    if (noCheaper.has(types) && noCheaper.get(types) === known) continue
    for (const [type, prices] of types) {
      const all = known?.get(type)
      if (prices.some((price, at) => comparePrices(price, all?.[at]) < 0)) return true
    }
    noCheaper.set(types, known)
  }
  return false
}

/** The lower price of each offering that is still listed. */
function lowest(now: Prices, before: Prices): Prices {
  const found = new Map<TypePrices, { readonly known: TypePrices | undefined; readonly least: TypePrices }>()
  return new Map(
    Array.from(now, ([pool, types]) => {
      const known = before.get(pool)
      let last = found.get(types)
      if (last === undefined || last.known !== known) {
        const leastOf = (type: string, prices: readonly PricePerHour[]) => {
          const all = known?.get(type)
          return prices.map((price, at) => lowestPrice([price, all?.[at]]))
        }
        last = { known, least: new Map(Array.from(types, ([type, prices]) => [type, leastOf(type, prices)])) }
        found.set(types, last)
      }
      return [pool, last.least]
    }),
  )
}

/** Whether nothing about the candidate has changed that a search depends on. */
function isUnchanged(now: CandidateView, then: CandidateView): boolean {
  return (
    now === then ||
    (now.pricePerHour === then.pricePerHour &&
      now.disruptionCost === then.disruptionCost &&
      now.waitsForBusyNodes === then.waitsForBusyNodes &&
      now.pool.metadata.generation === then.pool.metadata.generation &&
      now.movable.length === then.movable.length &&
      now.movable.every(({ metadata }, at) => metadata.uid === then.movable[at]?.metadata.uid) &&
      now.requests.every((each, at) => areRequestsClose(each, then.requests[at] ?? {})))
  )
}

function areRequestsClose(now: Resources, then: Resources): boolean {
  if (now === then) return true
  return Object.keys({ ...now, ...then }).every((name) => {
    const [a, b] = [ownValue(now, name) ?? 0, ownValue(then, name) ?? 0]
    return Math.abs(a - b) <= requestTolerance * Math.max(a, b)
  })
}
