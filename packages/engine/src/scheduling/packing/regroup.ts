/**
 * Packs the pods of new claims again if that is cheaper. Only claims of one class exchange pods, and only if no topology rule
 * binds their pods: then resources alone decide, and any pod may be on any of these claims.
 */
import { sumOfPrices } from '@tenon/api'
import type { SchedulingPolicy } from '../../input/input.ts'
import type { ClaimClass, ClaimClasses } from '../claims/claim-class.ts'
import type { ClaimFinisher } from '../claims/finished-claims.ts'
import type { OpenClaim } from '../claims/open-claims.ts'
import type { CompiledProblem } from '../compiled-problem.ts'
import { addTo, amountsFit } from '../pods/resource-space.ts'
import type { PoolBudget } from '../claims/pool-budget.ts'
import type { Template } from '../claims/pool-template.ts'
import type { PodTopology } from '../topology/pod-topology.ts'
import { isCheaper, type PlanCost, rounding } from './cheaper.ts'
import type { Group, PlannedBin } from './group.ts'
import { Effort, undominated } from './packing.ts'
import type { PackingCache } from './packing-cache.ts'
import { holdsFreely, holdsInTurn, mixed, ordersOf, spread } from './free-placement.ts'
import type { Bin } from './resource-prices.ts'

export interface RegroupContext {
  readonly compiled: CompiledProblem
  readonly topology: PodTopology
  readonly budgets: ReadonlyMap<Template, PoolBudget>
  readonly improvement: NonNullable<SchedulingPolicy['improvement']>
  readonly shouldStop: () => boolean
}

/** Work limit of one decision, in comparisons of a size with a room: about a tenth of a second. */
const effortUnits = 30_000_000

/** The claims of a cheaper plan, or the same list if there is none. */
export function regrouped(claims: readonly OpenClaim[], context: RegroupContext): OpenClaim[] {
  const effort = new Effort(effortUnits, context.shouldStop)
  let current = [...claims]
  for (const group of groupsOf(claims, context)) {
    if (effort.isSpent) break
    const planned =
      context.improvement === 'planned'
        ? plannedBins(group, effort, context.compiled.packings)
        : uniformBins(group, effort, context.compiled.classes)
    if (planned === undefined) continue
    const renewed = planned.map((bin) => claimOf(bin, group.claims[0] as OpenClaim, context.compiled))
    if (!isAcceptable(renewed, group, context)) continue
    const gone = new Set(group.claims)
    current = [...current.filter((claim) => !gone.has(claim)), ...renewed]
  }
  return current
}

function groupsOf(claims: readonly OpenClaim[], context: RegroupContext): readonly Group[] {
  const byClass = new Map<ClaimClass, OpenClaim[]>()
  for (const claim of claims) {
    // Without a price it is unknown whether another packing is cheaper.
    if (!isMixable(claim, context) || context.compiled.finisher.priceOf(claim) === undefined) continue
    const group = byClass.get(claim.class)
    if (group === undefined) byClass.set(claim.class, [claim])
    else group.push(claim)
  }
  return [...byClass]
    .map(([ofClass, members]) => groupOf(ofClass, members, context))
    .toSorted((a, b) => b.pricePerHour - a.pricePerHour || a.class.index - b.class.index)
}

/** Whether the pods of the claim may run on any claim of its class. */
export function isMixable(
  { class: ofClass, hostPorts, pods, consumer }: OpenClaim,
  context: RegroupContext,
): boolean {
  if (consumer !== undefined) return false
  if (ofClass.hasMinValues || ofClass.hasReservations || hostPorts.length > 0) return false
  return pods.every((pod) => context.topology.isIndifferent(context.compiled.shapeOf(pod)))
}

function groupOf(ofClass: ClaimClass, claims: readonly OpenClaim[], { compiled }: RegroupContext): Group {
  const demanded = (claims[0] as OpenClaim).amounts.map((_, i) =>
    claims.some((claim) => (claim.amounts[i] as number) > 0) ? 1 : 0,
  )
  const reduced = (amounts: Float64Array) => amounts.filter((_, i) => demanded[i] === 1)
  const items = new Map<string, { amounts: Float64Array; count: number; pods: number[] }>()
  for (const { pods } of claims) {
    for (const pod of pods) {
      const amounts = reduced(compiled.shapeOf(pod).amounts)
      const key = amounts.join(' ')
      const item = items.get(key)
      if (item === undefined) items.set(key, { amounts, count: 1, pods: [pod] })
      else {
        item.count++
        item.pods.push(pod)
      }
    }
  }
  return {
    ...compiled.packings.binsOf(compiled.finisher.priced(ofClass), demanded),
    class: ofClass,
    claims,
    pricePerHour: costOf(claims, compiled.finisher).pricePerHour,
    items: [...items.values()].toSorted((a, b) => largerFirst(a.amounts, b.amounts)),
  }
}

/** The cost of the claims, each as its cheapest type. */
export function costOf(claims: readonly OpenClaim[], finisher: ClaimFinisher): PlanCost {
  return { nodes: claims.length, ...sumOfPrices(claims.map((claim) => finisher.priceOf(claim))) }
}

function largerFirst(a: Float64Array, b: Float64Array): number {
  for (let i = 0; i < a.length; i++) {
    const difference = (b[i] as number) - (a[i] as number)
    if (difference !== 0) return difference
  }
  return 0
}

/** @param model a claim with the same kind of pods. */
export function claimOf(
  { pods, class: ofClass }: PlannedBin,
  model: OpenClaim,
  compiled: CompiledProblem,
): OpenClaim {
  const amounts = new Float64Array(model.amounts.length)
  for (const pod of pods) addTo(amounts, compiled.shapeOf(pod).amounts)
  return {
    ...model,
    cheapest: 0,
    rise: undefined,
    class: ofClass,
    state: ofClass.state,
    amounts,
    pods: [...pods],
    minValuesRelaxed: false,
  }
}

/** Whether the new claims are wanted and within limits, to which they are then charged. */
function isAcceptable(
  renewed: readonly OpenClaim[],
  group: Group,
  { compiled: { finisher }, improvement, budgets }: RegroupContext,
): boolean {
  // A plan for free placement may cost more, as it is safe; uniformBins bounds its price.
  const isWanted =
    improvement === 'free' || isCheaper(costOf(renewed, finisher), costOf(group.claims, finisher))
  const budget = budgets.get(group.class.template) as PoolBudget
  const held = (claims: readonly OpenClaim[]) => claims.map((claim) => finisher.holding(claim))
  return isWanted && (!budget.isLimited || budget.exchange(held(renewed), held(group.claims)))
}

/** The cheapest packing of a group whose pods will be nominated for their nodes. */
function plannedBins(
  group: Group,
  effort: Effort,
  packings: PackingCache,
): readonly PlannedBin[] | undefined {
  const packing = packings.pack(group.items, group, effort)
  if (packing === undefined) return undefined
  const taken = new Int32Array(group.items.length)
  return packing.bins.map(({ counts }) => ({
    class: group.class,
    pods: [...counts].flatMap((count, item) => {
      const from = taken[item] as number
      taken[item] = from + count
      return group.items[item]?.pods.slice(from, from + count) ?? []
    }),
  }))
}

/** A plan that certainly holds may cost this much more than one that may not. */
const safetyFactor = 1.11

/** Maximum node counts that are tried for one type. */
const mostTries = 10

/**
 * Up to this many nodes, the kinds of pods may arrive one after the other; with more nodes they are assumed to be
 * mixed.
 */
const mostInTurn = 16

/** Nodes of one type; the last one may have a smaller type. */
interface UniformPlan extends PlanCost {
  /** Index of the bin. */
  readonly bin: number
  /** The bin of the last node. */
  readonly last: number
}

/** A type that has room for each of the pods. */
interface FittingType {
  readonly bin: number
  /** The fewest nodes that could hold the pods. */
  readonly least: number
  /** A lower bound of the price: what the pods cost if nodes were sold in parts. */
  readonly bound: number
}

/**
 * The best plan that holds wherever kube-scheduler places the pods: nodes of one type, the last one as small as possible,
 * and enough of them for every order of the pods (planned-placement.md, gate off). Undefined if first fit is as good, or
 * no plan is cheap enough.
 */
function uniformBins(group: Group, effort: Effort, classes: ClaimClasses): readonly PlannedBin[] | undefined {
  if (group.items.length < 2) return undefined
  const orders = ordersOf(group.items)
  const current = roomsOf(group)
  const isSafe = current !== undefined && holdsFreely(group.items, current, orders, effort)
  // A first-fit plan that holds even if its nodes become ready one by one is only replaced by such a plan.
  const mayComeInTurn =
    isSafe && current.length <= mostInTurn && holdsInTurn(group.items, current, orders, effort)
  const most = isSafe ? group.pricePerHour - rounding : group.pricePerHour * safetyFactor
  let best: UniformPlan | undefined
  for (const candidate of candidates(group)) {
    const { least, bound } = candidate
    if (
      bound > most ||
      (best !== undefined && !isCheaper({ nodes: least, pricePerHour: bound, unpriced: 0 }, best))
    )
      continue
    const plan = planOf(group, candidate, { orders, effort, most, mayComeInTurn })
    if (plan !== undefined && (best === undefined || isCheaper(plan, best))) best = plan
    if (effort.isSpent) return undefined
  }
  if (best === undefined) return undefined
  // A plan with more nodes must be clearly cheaper, even if it is safer.
  const asIs = { nodes: group.claims.length, pricePerHour: group.pricePerHour, unpriced: 0 }
  return isSafe && !isCheaper(best, asIs) ? undefined : binsOf(group, best, effort, classes)
}

/** What a plan must satisfy. */
interface Demands {
  readonly orders: ReturnType<typeof ordersOf>
  readonly effort: Effort
  readonly most: number
  /** Whether a small plan must also hold the pods if its nodes become ready one by one. */
  readonly mayComeInTurn: boolean
}

/** The plan with the fewest nodes of one type. */
function planOf(
  group: Group,
  { bin, least }: FittingType,
  { orders, effort, most, mayComeInTurn }: Demands,
): UniformPlan | undefined {
  const { pricePerHour } = group.bins[bin] as Bin
  const takesAll = (each: number) =>
    group.items.every(({ amounts }) => amountsFit(amounts, (group.bins[each] as Bin).room))
  const holds = (last: number, nodes: number) => {
    const rooms = roomsFor(group, { bin, last, nodes })
    // Pods that do not fit on the last node need room even if the other nodes were filled before it was
    // ready.
    const comesInTurn = nodes <= mostInTurn && (mayComeInTurn || !takesAll(last))
    return (
      holdsFreely(group.items, rooms, orders, effort) &&
      (!comesInTurn || holdsInTurn(group.items, rooms, orders, effort))
    )
  }
  // More nodes than pods are useless, even if the last node costs next to nothing.
  const pods = group.items.reduce((sum, { count }) => sum + count, 0)
  const largest = Math.min(pods, pricePerHour > 0 ? Math.floor(most / pricePerHour) + 1 : pods)
  const step = Math.max(1, Math.floor((largest - least) / mostTries))
  for (let nodes = least; nodes <= largest && !effort.isSpent; nodes += step) {
    if (!holds(bin, nodes)) continue
    const last = lasts(group, bin, nodes).find((each) => holds(each, nodes)) ?? bin
    const price = (nodes - 1) * pricePerHour + (group.bins[last]?.pricePerHour ?? 0)
    return price <= most ? { bin, last, nodes, pricePerHour: price, unpriced: 0 } : undefined
  }
  return undefined
}

/** Types for the last node, cheapest first. */
function lasts(group: Group, bin: number, nodes: number): readonly number[] {
  const full = group.bins[bin] as Bin
  if (nodes < 2) return []
  const rest = full.room.map((amount, i) => demandOf(group, i) - (nodes - 1) * amount)
  return undominated(group.bins)
    .filter((each) => (group.bins[each]?.pricePerHour ?? 0) < full.pricePerHour)
    .filter((each) => amountsFit(rest, (group.bins[each] as Bin).room))
    .toReversed()
    .slice(0, mostTries)
}

function roomsFor(
  { bins }: Group,
  { bin, last, nodes }: Pick<UniformPlan, 'bin' | 'last' | 'nodes'>,
): readonly Bin['room'][] {
  return Array.from({ length: nodes }, (_, node) => (bins[node === nodes - 1 ? last : bin] as Bin).room)
}

/** Types that hold every pod; by the fewest nodes needed, then cheapest first. */
function candidates(group: Group): readonly FittingType[] {
  return undominated(group.bins)
    .filter((bin) => group.items.every(({ amounts }) => amountsFit(amounts, (group.bins[bin] as Bin).room)))
    .map((bin) => {
      const { room, pricePerHour } = group.bins[bin] as Bin
      const parts = takenUp(group, room)
      return { bin, least: Math.max(1, Math.ceil(parts)), bound: parts * pricePerHour }
    })
    .toSorted((a, b) => a.least - b.least || a.bound - b.bound || a.bin - b.bin)
}

/** How many nodes of this room the pods would need if they could be split. */
function takenUp(group: Group, room: Bin['room']): number {
  let nodes = 0
  for (let i = 0; i < room.length; i++) {
    const demand = demandOf(group, i)
    if (demand > 0) nodes = Math.max(nodes, demand / (room[i] as number))
  }
  return nodes
}

function demandOf({ items }: Group, resource: number): number {
  return items.reduce((sum, { amounts, count }) => sum + count * (amounts[resource] as number), 0)
}

function binsOf(
  group: Group,
  plan: UniformPlan,
  effort: Effort,
  classes: ClaimClasses,
): readonly PlannedBin[] | undefined {
  const rooms = roomsFor(group, plan)
  const order = mixed(group.items)
  const places = spread(group.items, rooms, order, effort)
  if (places === undefined) return undefined
  // Every type of a claim needs room for the pods that kube-scheduler may put there.
  const classOfRoom = new Map(
    [plan.bin, plan.last].map((bin) => {
      const { room } = group.bins[bin] as Bin
      const rows = group.rows.flatMap((row, index) =>
        amountsFit(room, (group.bins[index] as Bin).room) ? [row] : [],
      )
      return [room, classes.restricted(group.class, rows)]
    }),
  )
  const pods = rooms.map((): number[] => [])
  const taken = new Int32Array(group.items.length)
  for (const [place, item] of order.entries()) {
    const pod = group.items[item]?.pods[taken[item] as number]
    taken[item] = (taken[item] as number) + 1
    if (pod !== undefined) pods[places[place] as number]?.push(pod)
  }
  return rooms.flatMap((room, node) => {
    const own = pods[node] as readonly number[]
    return own.length === 0 ? [] : [{ pods: own, class: classOfRoom.get(room) as ClaimClass }]
  })
}

/** The rooms of the current claims, each as its cheapest type. */
function roomsOf(group: Group): readonly Bin['room'][] | undefined {
  const rooms = group.claims.map(({ amounts }) => {
    const index = group.rows.findIndex(({ room }) => amountsFit(amounts, room))
    return group.bins[index]?.room
  })
  return rooms.every((room) => room !== undefined) ? rooms : undefined
}
