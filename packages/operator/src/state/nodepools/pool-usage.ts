/** Resources of NodePools, as counted against their limits. */
import { accumulate, labels, parseResources, type Resources } from '@tenon/api'
import { perObject, Tally } from '@tenon/runtime'
import { labelsOf, ownCapacityOf, type StateNode } from '../nodes/state-node.ts'

/** Number of instances by NodePool and amounts: instances of one type share one object. */
type Counts = Map<string, Map<Resources, number>>

interface Known {
  readonly counts: Tally<StateNode, Counts>
  /** Usage by list of nodes, which stays the same object until an instance changes. */
  readonly usages: WeakMap<readonly StateNode[], ReadonlyMap<string, Resources>>
}

/** Each cluster state has its own memo of parsed amounts. */
const knownBy = perObject((parse: typeof parseResources): Known => {
  const amountsOf = perObject((stateNode: StateNode) => ownCapacityOf(stateNode, parse))
  return {
    usages: new WeakMap(),
    counts: new Tally<StateNode, Counts>({
      begin: () => new Map(),
      count: (counts, stateNode, by) => {
        if (!stateNode.isMarkedForDeletion) countIn(counts, stateNode, amountsOf(stateNode), by)
      },
    }),
  }
})

/**
 * Capacity of a pool's instances that are not marked for deletion, including `nodes` (cluster-state.md 10).
 * @param nodes must not be changed later.
 */
export function poolUsage(
  pool: string,
  nodes: readonly StateNode[],
  parse: typeof parseResources = parseResources,
): Resources {
  const { counts, usages } = knownBy(parse)
  let known = usages.get(nodes)
  if (known === undefined) {
    known = new Map(Array.from(counts.of(nodes), ([name, own]) => [name, totalOf(own)]))
    usages.set(nodes, known)
  }
  return known.get(pool) ?? {}
}

function countIn(counts: Counts, node: StateNode, amounts: Resources, by: 1 | -1): void {
  const pool = labelsOf(node)[labels.nodePool] ?? ''
  const own = counts.get(pool) ?? new Map<Resources, number>()
  counts.set(pool, own)
  const left = (own.get(amounts) ?? 0) + by
  if (left === 0) own.delete(amounts)
  else own.set(amounts, left)
}

function totalOf(counts: ReadonlyMap<Resources, number>): Resources {
  const total: Record<string, number> = {}
  for (const [amounts, count] of counts) {
    const all = Object.entries(amounts).map(([name, amount]) => [name, count * amount] as const)
    accumulate(total, { ...Object.fromEntries(all), nodes: count })
  }
  return total
}
