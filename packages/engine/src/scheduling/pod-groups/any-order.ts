/**
 * Whether the members of a group fit on nodes in any order. kube-scheduler tries pods of one priority in the order in which
 * they entered its queue. This order is random and the same for every attempt: a group that does not fit in its order never
 * runs (gangs.md 5.3, 7.4).
 */
import type { Effort } from '../packing/packing.ts'
import { mixed, spread } from '../packing/free-placement.ts'
import type { Item } from '../packing/resource-prices.ts'
import type { Amounts } from '../pods/resource-space.ts'

/** Most numbers of members of a kind that come before all others. */
const mostSplits = 8
/** The number of shuffled orders. */
const shuffles = 32

/**
 * Whether all members fit in every order that is tried, if each goes to the node with the most room left.
 * @param items members of each size.
 * @param rooms of the nodes.
 */
export function holdInAnyOrder(items: readonly Item[], rooms: readonly Amounts[], effort: Effort): boolean {
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
