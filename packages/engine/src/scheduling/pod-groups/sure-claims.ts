/**
 * Plans claims on which a group of different members fits in any order in which kube-scheduler may try them. If the cheapest
 * claims only suffice in some orders, more expensive ones are planned (gangs.md 7.4).
 */
import type { ClaimClass } from '../claims/claim-class.ts'
import type { PoolBudget } from '../claims/pool-budget.ts'
import type { OpenClaim } from '../claims/open-claims.ts'
import type { PlannedBin } from '../packing/group.ts'
import { mixed, spread } from '../packing/free-placement.ts'
import { Effort, undominated } from '../packing/packing.ts'
import { claimOf, isMixable, type RegroupContext } from '../packing/regroup.ts'
import type { Bin, Item } from '../packing/resource-prices.ts'
import { type Amounts, amountsFit } from '../pods/resource-space.ts'

/** The placed members of one group. */
export interface PlacedGroup {
  /** On new claims. */
  readonly pods: ReadonlySet<number>
  /** Each existing node with members: its room without them, and the members. */
  readonly nodes: readonly { readonly room: Amounts; readonly pods: readonly number[] }[]
}

/** Most nodes added to a plan, and most plans tried for one group. */
const mostAdded = 3
const mostTried = 60
/** Work for one decision, in comparisons of a size with a room: about a tenth of a second. */
const effortUnits = 30_000_000

/** Exchanges the claims of each group for claims on which it fits in any order, if there are any. */
export function sureClaims(
  claims: readonly OpenClaim[],
  groups: readonly PlacedGroup[],
  context: RegroupContext,
): OpenClaim[] {
  const effort = new Effort(effortUnits, context.shouldStop)
  let current = [...claims]
  for (const group of groups) {
    if (effort.isSpent) break
    const own = current.filter(({ pods }) => pods.some((pod) => group.pods.has(pod)))
    if (own.length === 0) continue
    const renewed = new GroupPlanner(group, own, context, effort).sure()
    if (renewed === undefined) continue
    const gone = new Set(own)
    current = [...current.filter((claim) => !gone.has(claim)), ...renewed]
  }
  return current
}

/** The current claims, some of them with a larger type, and added claims. */
interface GroupPlan {
  /** The extra price over the current claims. */
  readonly pricePerHour: number
  /** By claim: the room that it needs at least. */
  readonly rooms: readonly Amounts[]
  readonly added: readonly Amounts[]
  /** One of the claims; changed and added claims get its class. */
  readonly model: OpenClaim
  /** If set, nodes of this room replace all current claims. */
  readonly instead?: { readonly room: Amounts; readonly nodes: number }
}

class GroupPlanner {
  readonly #group: PlacedGroup
  readonly #claims: readonly OpenClaim[]
  readonly #context: RegroupContext
  readonly #effort: Effort
  /** 1 for each resource that some member asks for. */
  readonly #demanded: Amounts
  readonly #items: readonly Item[]

  constructor(group: PlacedGroup, claims: readonly OpenClaim[], context: RegroupContext, effort: Effort) {
    this.#group = group
    this.#claims = claims
    this.#context = context
    this.#effort = effort
    const members = [...group.pods, ...group.nodes.flatMap(({ pods }) => pods)]
    const asked = members.map((pod) => context.compiled.shapeOf(pod).amounts)
    this.#demanded = (asked[0] ?? new Float64Array()).map((_, i) =>
      asked.some((amounts) => (amounts[i] as number) > 0) ? 1 : 0,
    )
    this.#items = this.#itemsOf(members)
  }

  /** The claims of the cheapest plan that holds in any order; undefined if there is none, or no need for one. */
  sure(): readonly OpenClaim[] | undefined {
    const { finisher } = this.#context.compiled
    // Members of one size fit in any order.
    if (this.#items.length < 2 || !this.#claims.every((claim) => isMixable(claim, this.#context)))
      return undefined
    const [model] = this.#claims as readonly [OpenClaim, ...OpenClaim[]]
    const rooms = this.#claims.flatMap((claim) => {
      const room = finisher.cheapestRoom(claim)
      return room === undefined ? [] : [room]
    })
    if (rooms.length < this.#claims.length) return undefined
    const models = new Map(this.#claims.map((claim) => [claim.class, claim]))
    const plans = [
      { pricePerHour: 0, rooms, added: [], model },
      ...[...models.values()]
        .flatMap((each) => this.#plans(rooms, each, models.size === 1))
        .toSorted((a, b) => a.pricePerHour - b.pricePerHour),
    ]
    for (const plan of plans.slice(0, mostTried)) {
      if (this.#effort.isSpent) return undefined
      if (!this.#holds(plan)) continue
      const renewed = this.#claimsOf(plan)
      if (renewed !== undefined && this.#isBooked(renewed, plan.model)) return renewed
    }
    return undefined
  }

  /** Plans that change claims of the model's class. */
  #plans(rooms: readonly Amounts[], model: OpenClaim, isOnlyClass: boolean): readonly GroupPlan[] {
    const { finisher, packings } = this.#context.compiled
    const { bins, rows } = packings.binsOf(finisher.priced(model.class), this.#demanded)
    const kinds = undominated(bins).map((index) => ({
      ...(bins[index] as Bin),
      full: (rows[index] as (typeof rows)[number]).room,
    }))
    const priceOf = (claim: OpenClaim) => finisher.priceOf(claim) ?? 0
    const now = this.#claims.reduce((sum, claim) => sum + priceOf(claim), 0)
    const sizes = this.#items.map(({ amounts }) => amounts)
    const added = kinds
      .filter(({ room }) => sizes.some((amounts) => amountsFit(amounts, room)))
      .flatMap(({ pricePerHour, full }) =>
        Array.from({ length: mostAdded }, (_, index) => ({
          pricePerHour: (index + 1) * pricePerHour,
          rooms,
          model,
          added: Array.from({ length: index + 1 }, () => full),
        })),
      )
    const larger = this.#claims.flatMap((claim, index) =>
      (claim.class === model.class ? kinds : [])
        .filter(
          ({ full, pricePerHour }) =>
            amountsFit(rooms[index] as Amounts, full) && pricePerHour > priceOf(claim),
        )
        .map(({ full, pricePerHour }) => ({
          pricePerHour: pricePerHour - priceOf(claim),
          rooms: rooms.with(index, full),
          added: [],
          model,
        })),
    )
    const hasOthers = this.#claims.some(({ pods }) => pods.some((pod) => !this.#group.pods.has(pod)))
    const anew =
      hasOthers || !isOnlyClass
        ? []
        : kinds
            .filter(({ room }) => sizes.every((amounts) => amountsFit(amounts, room)))
            .flatMap(({ full, pricePerHour }) =>
              Array.from({ length: this.#claims.length + mostAdded }, (_, index) => ({
                pricePerHour: (index + 1) * pricePerHour - now,
                rooms: [],
                added: [],
                model,
                instead: { room: full, nodes: index + 1 },
              })),
            )
    return [...added, ...larger, ...anew]
  }

  #holds({ rooms, added, instead }: GroupPlan): boolean {
    const { nodes } = this.#group
    const free = [
      ...rooms.map((room, index) => this.#withoutOthers(room, this.#claims[index] as OpenClaim)),
      ...added,
      ...Array.from({ length: instead?.nodes ?? 0 }, () => instead?.room ?? new Float64Array()),
      ...nodes.map(({ room }) => room),
    ]
    return holdInAnyOrder(
      this.#items,
      free.map((room) => this.#reduced(room)),
      this.#effort,
    )
  }

  /** What a node of that room has for the group beside other pods of its claim. */
  #withoutOthers(room: Amounts, { pods }: OpenClaim): Amounts {
    const rest = room.slice()
    for (const pod of pods) {
      if (this.#group.pods.has(pod)) continue
      const { amounts } = this.#context.compiled.shapeOf(pod)
      for (let i = 0; i < rest.length; i++) rest[i] = (rest[i] as number) - (amounts[i] as number)
    }
    return rest
  }

  /** Undefined when some claim would have no pod. */
  #claimsOf({ rooms, added, instead, model }: GroupPlan): readonly OpenClaim[] | undefined {
    const all =
      instead === undefined ? [...rooms, ...added] : Array.from({ length: instead.nodes }, () => instead.room)
    const pods =
      instead === undefined ? this.#withSome(added) : this.#spreadOver(all.map((room) => this.#reduced(room)))
    if (pods === undefined || pods.some(({ length }) => length === 0)) return undefined
    return all.map((room, index) => {
      const like = instead === undefined ? (this.#claims[index] ?? model) : model
      const bin: PlannedBin = { pods: pods[index] ?? [], class: this.#atLeast(like.class, room) }
      return claimOf(bin, like, this.#context.compiled)
    })
  }

  /** The pods of the claims as they are, but for one member on each of the nodes besides. */
  #withSome(added: readonly Amounts[]): readonly (readonly number[])[] | undefined {
    const { compiled } = this.#context
    const kept = this.#claims.map(({ pods }) => [...pods])
    const moved: number[][] = []
    for (const room of added) {
      const from = kept.filter(({ length }) => length > 1).toSorted((a, b) => b.length - a.length)
      const place = from
        .map((pods) => ({
          pods,
          at: pods.findLastIndex(
            (pod) => this.#group.pods.has(pod) && amountsFit(compiled.shapeOf(pod).amounts, room),
          ),
        }))
        .find(({ at }) => at >= 0)
      if (place === undefined) return undefined
      moved.push(place.pods.splice(place.at, 1))
    }
    return [...kept, ...moved]
  }

  #spreadOver(rooms: readonly Amounts[]): readonly (readonly number[])[] | undefined {
    const onClaims = [...this.#group.pods]
    const items = this.#itemsOf(onClaims)
    const order = mixed(items)
    const places = spread(items, rooms, order, this.#effort)
    if (places === undefined) return undefined
    const pods = rooms.map((): number[] => [])
    const taken = new Int32Array(items.length)
    for (const [place, item] of order.entries()) {
      const pod = items[item]?.pods[taken[item] as number]
      taken[item] = (taken[item] as number) + 1
      if (pod !== undefined) pods[places[place] as number]?.push(pod)
    }
    return pods
  }

  /** The class with only the types that have that room. */
  #atLeast(of: ClaimClass, room: Amounts): ClaimClass {
    const demanded = this.#reduced(room)
    const rows = of.rows.filter((row) => amountsFit(demanded, this.#reduced(row.room)))
    return rows.length === of.rows.length ? of : this.#context.compiled.classes.restricted(of, rows)
  }

  /** Charges the new claims to the limits instead of the current ones; claims of other NodePools only lose types. */
  #isBooked(renewed: readonly OpenClaim[], { class: { template } }: OpenClaim): boolean {
    const { budgets, compiled } = this.#context
    const held = (claims: readonly OpenClaim[]) =>
      claims
        .filter((claim) => claim.class.template === template)
        .map((claim) => compiled.finisher.holding(claim))
    return (budgets.get(template) as PoolBudget).exchange(held(renewed), held(this.#claims))
  }

  #itemsOf(pods: readonly number[]): readonly (Item & { readonly pods: readonly number[] })[] {
    const bySize = Map.groupBy(pods, (pod) =>
      this.#reduced(this.#context.compiled.shapeOf(pod).amounts).join(' '),
    )
    return [...bySize.values()]
      .map((alike) => ({
        amounts: this.#reduced(this.#context.compiled.shapeOf(alike[0] as number).amounts),
        count: alike.length,
        pods: alike,
      }))
      .toSorted((a, b) => compared(b.amounts, a.amounts))
  }

  #reduced(amounts: Amounts): Amounts {
    return amounts.filter((_, i) => this.#demanded[i] === 1)
  }
}

function compared(a: Amounts, b: Amounts): number {
  for (let i = 0; i < a.length; i++) {
    const difference = (a[i] as number) - (b[i] as number)
    if (difference !== 0) return difference
  }
  return 0
}

/** Most numbers of members of a kind that come before all others. */
const mostSplits = 8
/** The number of shuffled orders. */
const shuffles = 32

/**
 * Whether all members fit in every order that is tried, if each goes to the node with the most room left.
 * kube-scheduler tries pods of one priority in the order in which they entered its queue. This order is random and the same
 * for every attempt: a group that does not fit in its order never runs (gangs.md 5.3).
 * @param items members of each size.
 * @param rooms of the nodes.
 */
function holdInAnyOrder(items: readonly Item[], rooms: readonly Amounts[], effort: Effort): boolean {
  const holds = (order: Int32Array) => spread(items, rooms, order, effort) !== undefined
  // Members of one size find the same number of places in any order.
  if (items.length < 2) return holds(mixed(items))
  return extremes(items).every(holds) && shuffled(items, shuffles).every(holds)
}

/**
 * Some members of one kind, all others, and the rest of that kind, which finds the least room that others can leave. The
 * others come small first, large first, and in turns.
 */
function extremes(items: readonly Item[]): readonly Int32Array[] {
  const kinds = [...items.keys()]
  return kinds.flatMap((kind) => {
    const { count } = items[kind] as Item
    const others = kinds.filter((each) => each !== kind)
    const inTurns = [...mixed(items)].filter((each) => each !== kind)
    const arrangements = [repeated(others, items), repeated(others.toReversed(), items), inTurns]
    return splitsOf(count).flatMap((first) =>
      arrangements.map((rest) =>
        Int32Array.from([...alike(kind, first), ...rest, ...alike(kind, count - first)]),
      ),
    )
  })
}

/** How many come first: from none to all but one. */
function splitsOf(count: number): readonly number[] {
  const step = Math.max(1, Math.ceil(count / mostSplits))
  const splits = Array.from({ length: Math.ceil(count / step) }, (_, index) => index * step)
  return [...new Set([...splits, count - 1])]
}

const alike = (kind: number, count: number): readonly number[] => Array.from({ length: count }, () => kind)

const repeated = (kinds: readonly number[], items: readonly Item[]): readonly number[] =>
  kinds.flatMap((kind) => alike(kind, items[kind]?.count ?? 0))

/** Pseudo-random orders, which are always the same. */
function shuffled(items: readonly Item[], count: number): readonly Int32Array[] {
  let state = 1
  const below = (bound: number) => {
    state = Math.imul(state, 1_664_525) + 1_013_904_223
    return (state >>> 8) % bound
  }
  return Array.from({ length: count }, () => {
    const order = mixed(items)
    for (let last = order.length - 1; last > 0; last--) {
      const other = below(last + 1)
      const kept = order[last] as number
      order[last] = order[other] as number
      order[other] = kept
    }
    return order
  })
}
