/** Between the costs of neighbours, so that most nodes that change places find one without others changing theirs. */
const gap = 100
/** Costs add to what evicting a pod costs, where they must not matter. */
const least = -100_000

/**
 * What deleting a pod costs on each node: less on those that go earlier, always below 0. As many nodes as possible keep
 * the costs that they have (wanted.md 7).
 * @param nodes the order in which they go, at most 500.
 * @param present what they have now.
 */
export function deletionCosts(
  nodes: readonly string[],
  present: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const kept = longestRise(nodes.map((node) => present.get(node)))
  const costs = new Map<string, number>()
  let from = 0
  let below: number | undefined
  for (const at of [...kept, nodes.length]) {
    const above = present.get(nodes[at] ?? '') ?? 0
    const start = below ?? above - gap * (at - from + 1)
    const step = (above - start) / (at - from + 1)
    if (at > from && (step < 1 || start < least)) return deletionCosts(nodes, new Map())
    for (let index = from; index < at; index++)
      costs.set(nodes[index] ?? '', Math.floor(start + step * (index - from + 1)))
    if (at < nodes.length) costs.set(nodes[at] ?? '', above)
    below = above
    from = at + 1
  }
  return costs
}

/** Indexes of a longest sequence of usable costs that rises. */
function longestRise(costs: readonly (number | undefined)[]): readonly number[] {
  /** The index at which the best sequence of each length ends, and the one before each index. */
  const ends: number[] = []
  const before: number[] = []
  for (const [index, cost] of costs.entries()) {
    if (cost === undefined || !Number.isInteger(cost) || cost < least || cost >= 0) continue
    let low = 0
    let high = ends.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((costs[ends[middle] ?? 0] ?? 0) < cost) low = middle + 1
      else high = middle
    }
    before[index] = ends[low - 1] ?? -1
    ends[low] = index
  }
  const rise: number[] = []
  for (let index = ends.at(-1) ?? -1; index >= 0; index = before[index] ?? -1) rise.push(index)
  return rise.toReversed()
}
