/** What NodePools have of their limits. */
import { parseResources, type Resources } from '@tenon/api'
import { accumulate } from '@tenon/engine'
import { labelsOf, ownCapacityOf, type StateNode } from '../nodes/state-node.ts'

/** By list of instances what those of each pool have: the list is the same as long as no instance has changed. */
const usages = new WeakMap<readonly StateNode[], ReadonlyMap<string, Resources>>()

/**
 * Capacity of a pool's instances that are not going away, `nodes` among it (cluster-state.md 10).
 * @param nodes never changed after it was given.
 */
export function poolUsage(
  pool: string,
  nodes: readonly StateNode[],
  parse: typeof parseResources = parseResources,
): Resources {
  let known = usages.get(nodes)
  if (known === undefined) {
    known = usageByPool(nodes, parse)
    usages.set(nodes, known)
  }
  return known.get(pool) ?? {}
}

function usageByPool(
  nodes: readonly StateNode[],
  parse: typeof parseResources,
): ReadonlyMap<string, Resources> {
  // Most nodes are of a few types, whose amounts are one object each.
  const byPool = new Map<string, Map<Resources, number>>()
  for (const node of nodes) {
    if (node.isMarkedForDeletion) continue
    const pool = labelsOf(node)['karpenter.sh/nodepool'] ?? ''
    const counts = byPool.get(pool) ?? new Map<Resources, number>()
    byPool.set(pool, counts)
    const amounts = ownCapacityOf(node, parse)
    counts.set(amounts, (counts.get(amounts) ?? 0) + 1)
  }
  return new Map(Array.from(byPool, ([pool, counts]) => [pool, totalOf(counts)]))
}

/** @param counts of instances by what each of them has. */
function totalOf(counts: ReadonlyMap<Resources, number>): Resources {
  const total: Record<string, number> = {}
  for (const [amounts, count] of counts) {
    const all = Object.entries(amounts).map(([name, amount]) => [name, count * amount] as const)
    accumulate(total, { ...Object.fromEntries(all), nodes: count })
  }
  return total
}
