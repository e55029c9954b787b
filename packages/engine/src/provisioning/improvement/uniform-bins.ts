/**
 * A plan that holds whatever the Kubernetes scheduler makes of it: nodes of one type, as many as are
 * needed for every order in which pods may be placed (planned-placement.md, gate off).
 */
import type { ClaimClass } from '../claim-class.ts'
import type { TypeRow } from '../pool-template.ts'
import { amountsFit } from '../resource-space.ts'
import { type PlanCost, rounding } from './cheaper.ts'
import { holdsFreely, mixed, ordersOf, spread } from './free-placement.ts'
import type { Group, PlannedBin } from './group.ts'
import { type Effort, undominated } from './packing.ts'
import type { Bin } from './resource-prices.ts'

/** A plan that is sure to hold may cost this much more than one that is not. */
const safetyFactor = 1.11

/** Numbers of nodes tried for one type, from the fewest that could do to the most that may be paid for. */
const mostTries = 10

/** So many nodes of one type. */
interface UniformPlan extends PlanCost {
  /** Index of the type's bin. */
  readonly bin: number
}

/** The cheapest such plan; undefined when first fit is as good, or none is cheap enough. */
export function uniformBins(
  group: Group,
  effort: Effort,
  restricted: (of: ClaimClass, rows: readonly TypeRow[]) => ClaimClass,
): readonly PlannedBin[] | undefined {
  if (group.items.length < 2) return undefined
  const orders = ordersOf(group.items)
  const current = roomsOf(group)
  const isSafe = current !== undefined && holdsFreely(group.items, current, orders, effort)
  let most = isSafe ? group.pricePerHour - rounding : group.pricePerHour * safetyFactor
  let best: UniformPlan | undefined
  for (const { bin, least } of candidates(group)) {
    const { room, pricePerHour } = group.bins[bin] as Bin
    const largest = Math.floor(most / pricePerHour)
    const step = Math.max(1, Math.floor((largest - least) / mostTries))
    for (let nodes = least; nodes <= largest && !effort.isSpent; nodes += step) {
      const plan = { bin, nodes, pricePerHour: nodes * pricePerHour }
      if (best !== undefined && !isPreferred(plan, best)) break
      const rooms = Array.from({ length: nodes }, () => room)
      if (!holdsFreely(group.items, rooms, orders, effort)) continue
      best = plan
      most = plan.pricePerHour + rounding
      break
    }
  }
  if (best === undefined || effort.isSpent) return undefined
  return binsOf(group, best.bin, best.nodes, effort, restricted)
}

/** Whether a plan costs less, or the same with fewer nodes. */
function isPreferred(plan: PlanCost, than: PlanCost): boolean {
  const more = plan.pricePerHour - than.pricePerHour
  return more < -rounding || (more <= rounding && plan.nodes < than.nodes)
}

/** Types that hold every pod, with the fewest nodes that could do; those that promise most come first. */
function candidates(group: Group): readonly { readonly bin: number; readonly least: number }[] {
  return undominated(group.bins)
    .filter((bin) => group.items.every(({ amounts }) => amountsFit(amounts, (group.bins[bin] as Bin).room)))
    .map((bin) => ({ bin, least: fewest(group, (group.bins[bin] as Bin).room) }))
    .toSorted((a, b) => priceOf(group, a) - priceOf(group, b) || a.bin - b.bin)
}

function priceOf({ bins }: Group, { bin, least }: { readonly bin: number; readonly least: number }): number {
  return least * (bins[bin]?.pricePerHour ?? 0)
}

function binsOf(
  group: Group,
  bin: number,
  nodes: number,
  effort: Effort,
  restricted: (of: ClaimClass, rows: readonly TypeRow[]) => ClaimClass,
): readonly PlannedBin[] | undefined {
  const { room } = group.bins[bin] as Bin
  const order = mixed(group.items)
  const places = spread(
    group.items,
    Array.from({ length: nodes }, () => room),
    order,
    effort,
  )
  if (places === undefined) return undefined
  // Whichever of its types a claim is launched as, it must have room for what lands there.
  const rows = group.rows.flatMap(({ row }, index) =>
    amountsFit(room, (group.bins[index] as Bin).room) ? [row] : [],
  )
  const pods = Array.from({ length: nodes }, (): number[] => [])
  const taken = new Int32Array(group.items.length)
  for (const [place, item] of order.entries()) {
    const pod = group.items[item]?.pods[taken[item] as number]
    taken[item] = (taken[item] as number) + 1
    if (pod !== undefined) pods[places[place] as number]?.push(pod)
  }
  const ofClass = restricted(group.class, rows)
  return pods.filter((each) => each.length > 0).map((each) => ({ pods: each, class: ofClass }))
}

/** What the claims have as they are, each launched as its cheapest type. */
function roomsOf(group: Group): readonly Bin['room'][] | undefined {
  const rooms = group.claims.map(({ amounts }) => {
    const index = group.rows.findIndex(({ row }) => amountsFit(amounts, row.room))
    return group.bins[index]?.room
  })
  return rooms.every((room) => room !== undefined) ? rooms : undefined
}

function fewest({ items }: Group, room: Bin['room']): number {
  let nodes = 1
  for (let i = 0; i < room.length; i++) {
    const demand = items.reduce((sum, { amounts, count }) => sum + count * (amounts[i] as number), 0)
    if (demand > 0) nodes = Math.max(nodes, Math.ceil(demand / (room[i] as number)))
  }
  return nodes
}
