/** What NodePools have of their limits. */
import { parseResources, type Resources } from '@tenon/api'
import { accumulate } from '@tenon/engine'
import { capacityOf, labelsOf, type StateNode } from '../nodes/state-node.ts'

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
  const byPool = new Map<string, Record<string, number>>()
  for (const node of nodes) {
    if (node.isMarkedForDeletion) continue
    const pool = labelsOf(node)['karpenter.sh/nodepool'] ?? ''
    const usage = byPool.get(pool) ?? {}
    byPool.set(pool, usage)
    accumulate(usage, capacityOf(node, parse))
  }
  return byPool
}
