/** Nodes in place of others keep to `limits.nodes`, those that drain counted (reports-2.md 9). */
import type { NodePool, Unavailability } from '@tenon/api'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Caches } from '../state/caches.ts'
import { nodeLimit } from '../nodepool/static/static-pools.ts'
import { type LimitReport, nodeLimitRemedy } from '../nodepool/limit-report.ts'
import { policyOf, type Settings } from '../settings.ts'

export interface NodeLimitParts {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'poolClaims' | 'rollouts'>
  readonly settings: Pick<Settings, 'compatibility'>
  readonly limits: Pick<LimitReport, 'reached'>
}

/** Why no node of the pool comes in place of others now. Static NodePools set room aside themselves. */
export function whyFull(
  { caches, settings, state }: Omit<NodeLimitParts, 'limits'>,
  name: string,
): Unavailability | undefined {
  const pool = caches.nodePools.get({ name })
  if (!policyOf(settings).reportsLimits || pool === undefined || pool.spec.replicas !== undefined)
    return undefined
  const nodes = state.poolClaims.occupied(name)
  const limit = nodeLimit(pool)
  if (nodes + 1 <= limit) return undefined
  return {
    because: `limits.nodes of NodePool ${name} is ${limit}, and it has ${nodes} nodes, those that drain included`,
  }
}

/** Says on the NodePool that its drifted nodes stay because their successors would exceed `limits.nodes`. */
export function tellNodeLimit(
  { limits, settings, state }: NodeLimitParts,
  pool: NodePool,
  because: string,
): void {
  if (!policyOf(settings).reportsLimits) return
  limits.reached(pool, `replaces no drifted node, as each stays until its successor is there: ${because}`)
  state.rollouts.limit(pool.metadata.name, because)
}

/** The same, by name, where the pool is full. @returns what nodes are to be told. */
export function tellFull(parts: NodeLimitParts, name: string): string | undefined {
  const full = whyFull(parts, name)
  const pool = parts.caches.nodePools.get({ name })
  if (full === undefined || pool === undefined) return undefined
  tellNodeLimit(parts, pool, full.because)
  return `${full.because}; ${nodeLimitRemedy}`
}
