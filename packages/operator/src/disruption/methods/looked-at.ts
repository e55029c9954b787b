/** Which candidates a search for consolidation has found nothing for, as they were then. */
import { isDeepStrictEqual } from 'node:util'
import { comparePrices, lowestPrice, ownValue, type PricePerHour, type Resources } from '@tenon/api'
import type { ConsolidationQuestion, ConsolidationResult, NodeInput } from '@tenon/engine'
import type { Candidate } from '../candidates.ts'
import type { Catalogue } from '../catalogue.ts'

/** A time that grows with what there is to look at, as what a look takes does. */
interface Scale {
  readonly leastMs: number
  readonly perCandidateMs: number
  readonly longestMs: number
}

/** How long that is for so many candidates. */
export function scaledMs({ leastMs, longestMs, perCandidateMs }: Scale, candidates: number): number {
  return Math.min(longestMs, Math.max(leastMs, perCandidateMs * candidates))
}

/** Every node, and every few of them, is looked at again after this: there may be room for its pods elsewhere. */
const lookLasts: Scale = { leastMs: 10 * 60_000, perCandidateMs: 1800, longestMs: 30 * 60_000 }
/** All nodes together are looked at again after this: it takes the longest, and what has changed since was looked at. */
const exchangeLastsMs = 60 * 60_000
/** Recommendations for pods change all the time: less of a difference, as a part of the amount, is no news. */
const newsPart = 0.1

interface Sight {
  /** As it was then. */
  readonly candidate: Looked
  /** The most nodes of its NodePool that could have gone; infinity where budgets kept nothing from being found. */
  readonly left: number
}

/** What of a node decides which pods may go there. */
type Place = Pick<
  NodeInput,
  'name' | 'labels' | 'taints' | 'initialized' | 'available' | 'refusesCandidatePods' | 'takesOnlyPlanned'
>

type KnownGroups = NonNullable<ConsolidationResult['groups']>

type Prices = ReadonlyMap<string, readonly PricePerHour[]>

type Looked = Pick<
  Candidate,
  'name' | 'movable' | 'requests' | 'pricePerHour' | 'disruptionCost' | 'waitsForBusyNodes' | 'pool'
>

/** What a search depends on. */
export interface Circumstances {
  readonly candidates: Iterable<Looked>
  /** Nodes that may still be disrupted, by NodePool. */
  readonly budgets: ReadonlyMap<string, number>
  readonly catalogue: Catalogue
  /** Every node that pods may go to. */
  readonly nodes: readonly Place[]
  /**
   * Whether other pods than those of candidates wait for a place: what has to be launched for them keeps moves from
   * being found.
   */
  readonly othersWait: boolean
  readonly nowMs: number
}

/** What a search that budgets limited depended on. */
export type Timeless = Pick<Circumstances, 'candidates' | 'budgets' | 'catalogue'>

/** What need not be looked for again, as the engine is told. */
export type Unchanged = Required<Pick<ConsolidationQuestion, 'unchanged' | 'settled'>> &
  Pick<ConsolidationQuestion, 'roomier' | 'inVain'>

/** As of the first look. */
export const nothingUnchanged: Unchanged = { unchanged: new Set(), settled: new Set() }

/**
 * On a busy cluster something has changed at every look, and nearly all nodes are as they were: to pack them anew
 * each time, alone, in groups and all together, is most of what looking costs.
 */
export class LookedAt {
  #sights: ReadonlyMap<string, Sight> = new Map()
  /** As they were at the last look at everything, with the least room since. */
  #places: ReadonlyMap<string, Place> | undefined
  /** As they were at the last search, whatever it looked at. */
  #searched: ReadonlyMap<string, Place> = new Map()
  /** The lowest since everything was looked at. */
  #prices: Prices = new Map()
  /** Groups of several candidates that were packed again for nothing since these are as they are. */
  #inVain: KnownGroups = new Map()
  #lookedAtMs = Number.NEGATIVE_INFINITY
  #exchangedAtMs = Number.NEGATIVE_INFINITY

  /** As if a search had found nothing in these circumstances at time 0. */
  static inVain(circumstances: Omit<Circumstances, 'nowMs'>): LookedAt {
    const looked = new LookedAt()
    const at = { ...circumstances, nowMs: 0 }
    looked.note(at, looked.unchanged(at), true)
    // What they kept from being found may be there wherever there is room.
    if (circumstances.othersWait) looked.#places = undefined
    return looked
  }

  /** Knows the same, as if everything had been looked at now; what either is told from now on, the other is not. */
  forked(nowMs: number): LookedAt {
    const other = new LookedAt()
    other.#sights = this.#sights
    other.#places = this.#places
    other.#searched = this.#searched
    other.#prices = this.#prices
    other.#inVain = this.#inVain
    other.#lookedAtMs = nowMs
    other.#exchangedAtMs = nowMs
    return other
  }

  /** What need not be looked at again now. */
  unchanged({ candidates, budgets, catalogue, nodes, nowMs }: Circumstances): Unchanged {
    const isLapsed = nowMs - this.#exchangedAtMs >= exchangeLastsMs
    if (isLapsed || isCheaper(pricesOf(catalogue), this.#prices)) this.#sights = new Map()
    const settled = new Set<string>()
    let count = 0
    for (const candidate of candidates) {
      count++
      const sight = this.#sights.get(candidate.name)
      if (
        sight !== undefined &&
        isAsSeen(candidate, sight.candidate) &&
        leftOf(candidate, budgets) <= sight.left
      )
        settled.add(candidate.name)
    }
    const places = this.#places
    const isComparable = settled.size > 0 && places !== undefined && !hasLimits(catalogue)
    const roomier = isComparable ? nodes.filter((node) => isRoomier(node, places.get(node.name))) : undefined
    const isLook = nowMs - this.#lookedAtMs >= scaledMs(lookLasts, count)
    const unchanged = isLook ? new Set<string>() : settled
    if (roomier === undefined) return { unchanged, settled }
    return {
      unchanged,
      settled,
      roomier: new Set(roomier.map(({ name }) => name)),
      inVain: this.#inVain,
    }
  }

  /**
   * Whether a search would look at nothing that the last one has not found in vain: all is as it was, with no more room
   * anywhere.
   * @param told what the search would be told to be unchanged.
   * @param areAll whether that holds only as long as no candidate is missing.
   */
  isInVain(
    { candidates, nodes, catalogue }: Circumstances,
    { unchanged }: Unchanged,
    areAll = false,
  ): boolean {
    if (hasLimits(catalogue)) return false
    let count = 0
    for (const { name } of candidates) {
      if (!unchanged.has(name)) return false
      count++
    }
    if (areAll && count < this.#sights.size) return false
    return nodes.every((node) => !isRoomier(node, this.#searched.get(node.name)))
  }

  /**
   * Nothing was found for any of these.
   * @param told what the search was told to be unchanged.
   * @param isLimited whether budgets left something out.
   * @param inVain groups of several that were looked at.
   */
  note(
    { candidates, budgets, catalogue, nodes, nowMs }: Circumstances,
    { unchanged, settled }: Unchanged,
    isLimited: boolean,
    inVain: KnownGroups = new Map(),
  ): void {
    const isLook = unchanged.size === 0
    // A look at everything is about all groups with regard to the room that there is now.
    const kept = isLook
      ? []
      : [...this.#inVain].filter(([, names]) => names.every((name) => settled.has(name)))
    this.#inVain = new Map([...kept, ...inVain])
    if (isLook) this.#lookedAtMs = nowMs
    this.#searched = new Map(nodes.map((node) => [node.name, node]))
    // What came or became another since has not been looked at for all candidates.
    this.#places = isLook ? this.#searched : this.#places && withLeastRooms(nodes, this.#places)
    if (settled.size === 0) this.#exchangedAtMs = nowMs
    const isFirst = this.#sights.size === 0
    const prices = pricesOf(catalogue)
    this.#prices = isFirst ? prices : lowest(prices, this.#prices)
    const sightOf = (candidate: Looked): Sight => {
      const known = this.#sights.get(candidate.name)
      const left = isLimited ? leftOf(candidate, budgets) : Number.POSITIVE_INFINITY
      if (known === undefined || !isAsSeen(candidate, known.candidate)) return { candidate, left }
      if (known.candidate === candidate && known.left >= left) return known
      return { candidate, left: Math.max(known.left, left) }
    }
    this.#sights = new Map(Array.from(candidates, (candidate) => [candidate.name, sightOf(candidate)]))
  }
}

/** Of NodePools whose nodes go, others may launch more: what is out of reach now need not be so then. */
function hasLimits(catalogue: Catalogue): boolean {
  return catalogue.values().some(({ pool }) => Object.keys(pool.spec.limits ?? {}).length > 0)
}

/** The nodes that are as before but for their room. */
function withLeastRooms(
  nodes: readonly Place[],
  before: ReadonlyMap<string, Place>,
): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>()
  for (const node of nodes) {
    const then = before.get(node.name)
    if (then !== undefined && isAlike(node, then)) places.set(node.name, withLeastRoom(node, then))
  }
  return places
}

/** Whether pods may find room on the node that they did not find before. */
function isRoomier(now: Place, then: Place | undefined): boolean {
  if (now === then) return false
  if (then === undefined || !isAlike(now, then)) return true
  const { available } = now
  return Object.keys(available).some(
    (name) => (ownValue(available, name) ?? 0) > (ownValue(then.available, name) ?? 0),
  )
}

/** Whether the node takes pods as it did before, had it the room. */
function isAlike(a: Place, b: Place): boolean {
  if (a === b) return true
  return (
    a.initialized === b.initialized &&
    (a.refusesCandidatePods ?? false) === (b.refusesCandidatePods ?? false) &&
    (a.takesOnlyPlanned ?? false) === (b.takesOnlyPlanned ?? false) &&
    (a.labels === b.labels || isDeepStrictEqual(a.labels, b.labels)) &&
    (a.taints === b.taints || isDeepStrictEqual(a.taints, b.taints))
  )
}

/** The node with no more of anything than it had before. */
function withLeastRoom(now: Place, then: Place): Place {
  if (now === then) return then
  const available = Object.fromEntries(
    Object.entries(now.available).map(([name, amount]) => [
      name,
      Math.min(amount, ownValue(then.available, name) ?? 0),
    ]),
  )
  return { ...now, available }
}

/** Whether a search that has found nothing then would find nothing now, if all that is no candidate is the same. */
export function isInVainAgain(now: Timeless, then: Timeless): boolean {
  const before = new Map(Array.from(then.candidates, (candidate) => [candidate.name, candidate]))
  let count = 0
  for (const candidate of now.candidates) {
    const known = before.get(candidate.name)
    if (known === undefined || !isAsSeen(candidate, known)) return false
    count++
  }
  return (
    count === before.size &&
    isSameBudget(now.budgets, then.budgets) &&
    !isCheaper(pricesOf(now.catalogue), pricesOf(then.catalogue))
  )
}

/** Whether NodePools have as many disruptions left. */
export function isSameBudget(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): boolean {
  return a.size === b.size && [...a].every(([pool, left]) => b.get(pool) === left)
}

const leftOf = ({ pool }: Looked, budgets: ReadonlyMap<string, number>): number =>
  budgets.get(pool.metadata.name) ?? 0

/** By NodePool and type what each offering costs; not known for those that are not to be had. */
function pricesOf(catalogue: Catalogue): Prices {
  const prices = new Map<string, readonly PricePerHour[]>()
  for (const [pool, { types }] of catalogue)
    for (const { name, offerings } of types.values())
      prices.set(
        `${pool}/${name}`,
        offerings.map(({ available, pricePerHour }) => (available ? pricePerHour : undefined)),
      )
  return prices
}

/** Whether something is to be had for less. */
function isCheaper(now: Prices, before: Prices): boolean {
  for (const [type, prices] of now) {
    const known = before.get(type)
    if (prices.some((price, at) => comparePrices(price, known?.[at]) < 0)) return true
  }
  return false
}

/** The lower of the two for each offering that is still listed. */
function lowest(now: Prices, before: Prices): Prices {
  return new Map(
    Array.from(now, ([type, prices]) => {
      const known = before.get(type)
      return [type, prices.map((price, at) => lowestPrice([price, known?.[at]]))]
    }),
  )
}

/** Whether a search that depended on the one would depend on the other in the same way. */
function isAsSeen(now: Looked, then: Looked): boolean {
  return (
    now === then ||
    (now.pricePerHour === then.pricePerHour &&
      now.disruptionCost === then.disruptionCost &&
      now.waitsForBusyNodes === then.waitsForBusyNodes &&
      now.pool.metadata.generation === then.pool.metadata.generation &&
      now.movable.length === then.movable.length &&
      now.movable.every(({ metadata }, at) => metadata.uid === then.movable[at]?.metadata.uid) &&
      now.requests.every((each, at) => asksForMuchTheSame(each, then.requests[at] ?? {})))
  )
}

function asksForMuchTheSame(now: Resources, then: Resources): boolean {
  if (now === then) return true
  return Object.keys({ ...now, ...then }).every((name) => {
    const [a, b] = [ownValue(now, name) ?? 0, ownValue(then, name) ?? 0]
    return Math.abs(a - b) <= newsPart * Math.max(a, b)
  })
}
