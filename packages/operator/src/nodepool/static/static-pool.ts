import type { CloudProvider } from '@tenon/provider'
import { conditionOf, labels, type NodeClaim, type NodePool } from '@tenon/api'
import type { Change } from '@tenon/kube'
import { managedPool } from '../managed-pool.ts'
import type { Caches } from '../../cluster/caches.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Caches
  readonly provider: CloudProvider
}

/** A NodePool that keeps a number of nodes whatever pods ask for. */
export type StaticPool = NodePool & { readonly spec: { readonly replicas: number } }

/** The static NodePool of that name that this provider serves and that stays. */
export function staticPool(deps: Dependencies, name: string): StaticPool | undefined {
  const pool = managedPool(deps, name)
  if (pool === undefined || !isStatic(pool) || pool.metadata.deletionTimestamp !== undefined) return undefined
  return pool
}

function isStatic(pool: NodePool): pool is StaticPool {
  return pool.spec.replicas !== undefined
}

/** Name of the static NodePool whose claim this is; undefined when there is none. */
export function staticPoolOf({ caches }: Dependencies, claim: NodeClaim): string | undefined {
  const name = claim.metadata.labels?.[labels.nodePool] ?? ''
  const pool = caches.nodePools.get({ name })
  return pool !== undefined && isStatic(pool) ? name : undefined
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
