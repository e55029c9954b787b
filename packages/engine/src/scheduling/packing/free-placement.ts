/**
 * Whether a set of nodes holds a set of pods wherever kube-scheduler puts them. It tries pods in its own order and, by
 * its default scoring, prefers the node with the most free resources.
 */
import type { Amounts } from '../pods/resource-space.ts'
import type { Effort } from './packing.ts'
import type { Item } from './resource-prices.ts'

/** Items by index in the order of their pods. */
type Order = Int32Array

/**
 * Whether all pods fit: in any of `orders` if all nodes exist from the start, and with kinds mixed if nodes become
 * ready one by one.
 */
export function holdsFreely(
  items: readonly Item[],
  rooms: readonly Amounts[],
  orders: readonly Order[],
  effort: Effort,
): boolean {
  return (
    fillsUp(items, rooms, mixed(items), effort) &&
    orders.every((order) => spread(items, rooms, order, effort) !== undefined)
  )
}

/**
 * Whether all pods fit if nodes of different rooms become ready one by one, in any of `orders` and whichever node comes
 * first.
 */
export function holdsInTurn(
  items: readonly Item[],
  rooms: readonly Amounts[],
  orders: readonly Order[],
  effort: Effort,
): boolean {
  return [rooms, rooms.toReversed()].every((each) =>
    orders.every((order) => fillsUp(items, each, order, effort)),
  )
}

/** Sample orders: mixed, kind by kind, small first and large first. */
export function ordersOf(items: readonly Item[]): readonly Order[] {
  const kinds = items.map((_, index) => index)
  const largest = items.map(({ amounts }) =>
    Math.max(...amounts.map((amount, i) => amount / largestOf(items, i))),
  )
  const bySize = kinds.toSorted((a, b) => (largest[a] as number) - (largest[b] as number))
  return [mixed(items), inTurn(items, kinds), inTurn(items, bySize), inTurn(items, bySize.toReversed())]
}

/** One pod of each item in turn. */
export function mixed(items: readonly Item[]): Order {
  const order: number[] = []
  const most = Math.max(0, ...items.map(({ count }) => count))
  for (let round = 0; round < most; round++)
    for (const [index, { count }] of items.entries()) if (round < count) order.push(index)
  return Int32Array.from(order)
}

/** The node of each pod: the emptiest one that holds it. Undefined if some pod does not fit. */
export function spread(
  items: readonly Item[],
  rooms: readonly Amounts[],
  order: Order,
  effort: Effort,
): Int32Array | undefined {
  const rest = rooms.map((room) => room.slice())
  const nodes = new Int32Array(order.length)
  for (const [place, item] of order.entries()) {
    const { amounts } = items[item] as Item
    let best = -1
    let bestScore = -1
    for (let node = 0; node < rest.length; node++) {
      const left = scoreOf(rest[node] as Amounts, rooms[node] as Amounts, amounts)
      if (left <= bestScore) continue
      bestScore = left
      best = node
    }
    effort.spend(rest.length)
    if (best < 0 || effort.isSpent) return undefined
    take(rest[best] as Amounts, amounts)
    nodes[place] = best
  }
  return nodes
}

/** Whether all pods fit if nodes become ready one by one and each is filled before the next. */
function fillsUp(items: readonly Item[], rooms: readonly Amounts[], order: Order, effort: Effort): boolean {
  let waiting: readonly number[] = [...order]
  for (const room of rooms) {
    const rest = room.slice()
    effort.spend(waiting.length)
    waiting = waiting.filter((item) => {
      const { amounts } = items[item] as Item
      if (!amounts.every((amount, i) => amount <= (rest[i] as number))) return true
      take(rest, amounts)
      return false
    })
    if (waiting.length === 0) return true
  }
  return false
}

/** The mean free share after the pod; -1 if it does not fit. */
function scoreOf(rest: Amounts, room: Amounts, amounts: Amounts): number {
  let sum = 0
  for (let i = 0; i < rest.length; i++) {
    const left = (rest[i] as number) - (amounts[i] as number)
    if (left < 0) return -1
    if ((room[i] as number) > 0) sum += left / (room[i] as number)
  }
  return sum
}

function take(rest: Amounts, amounts: Amounts): void {
  for (let i = 0; i < rest.length; i++) rest[i] = (rest[i] as number) - (amounts[i] as number)
}

function inTurn(items: readonly Item[], kinds: readonly number[]): Order {
  return Int32Array.from(kinds.flatMap((kind) => Array.from({ length: items[kind]?.count ?? 0 }, () => kind)))
}

function largestOf(items: readonly Item[], resource: number): number {
  return Math.max(1e-12, ...items.map(({ amounts }) => amounts[resource] as number))
}
