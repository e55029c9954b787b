import type { CloudProvider, PoolRules } from '@tenon/provider'
import { conditionOf, labels, type NodeClaim, type NodePool } from '@tenon/api'
import type { Change } from '@tenon/kube'
import { validatePool } from '../../state/nodepools/pool-problems.ts'
import { isObserved } from '../../state/nodepools/observed-pools.ts'
import { managedPool } from '../../state/nodepools/managed-pool.ts'
import type { Caches } from '../../state/caches.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly provider: PoolRules & Pick<CloudProvider, 'nodeClasses'>
}

/** A NodePool that keeps a number of nodes whatever pods ask for. */
export type StaticPool = NodePool & { readonly spec: { readonly replicas: number } }

/** The static NodePools. */
export class StaticPools {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** The one of that name that this provider serves and that stays. */
  get(name: string): StaticPool | undefined {
    const pool = managedPool(this.#deps, name)
    if (pool === undefined || !isStatic(pool) || pool.metadata.deletionTimestamp !== undefined)
      return undefined
    return pool
  }

  /** As {@link get}, unless what it says is wrong, or it is only observed. */
  valid(name: string): StaticPool | undefined {
    const pool = this.get(name)
    if (pool === undefined || isObserved(pool)) return undefined
    return validatePool(pool, this.#deps.provider).length > 0 ? undefined : pool
  }

  /** Name of the static NodePool whose claim this is; undefined when there is none. */
  nameOf(claim: NodeClaim): string | undefined {
    const name = claim.metadata.labels?.[labels.nodePool] ?? ''
    const pool = this.#deps.caches.nodePools.get({ name })
    return pool !== undefined && isStatic(pool) ? name : undefined
  }
}

function isStatic(pool: NodePool): pool is StaticPool {
  return pool.spec.replicas !== undefined
}

/** Whether a change of a NodePool is one of its size, or its first appearance. */
export function isResized(change: Change<NodePool>): boolean {
  if (change.kind === 'deleted' || !isStatic(change.object)) return false
  return change.kind === 'added' || change.old.spec.replicas !== change.object.spec.replicas
}

/** Whether a NodePool has become ready. */
export function isNowReady(change: Change<NodePool>): boolean {
  if (change.kind !== 'updated' || !isStatic(change.object)) return false
  const status = (pool: NodePool) => conditionOf(pool, 'Ready')?.status
  return status(change.old) !== 'True' && status(change.object) === 'True'
}

/** Whether a claim has begun to go, or is gone. */
export function isNowLeaving(change: Change<NodeClaim>): boolean {
  if (change.kind === 'deleted') return true
  const isDeleting = ({ metadata }: NodeClaim) => metadata.deletionTimestamp !== undefined
  return change.kind === 'updated' && !isDeleting(change.old) && isDeleting(change.object)
}
