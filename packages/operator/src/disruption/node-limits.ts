/** Replacement nodes respect `limits.nodes`; draining nodes count (reports-2.md 9). */
import type { NodePool, Unavailability } from '@tenon/api'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Caches } from '../state/caches.ts'
import { nodeLimit } from '../nodepool/static/static-pools.ts'
import { type LimitReport, nodeLimitRemedy } from '../nodepool/limit-report.ts'
import { policyOf, type Settings } from '../settings.ts'

export interface NodeLimitParts {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'poolClaims' | 'poolWishes' | 'rollouts'>
  readonly settings: Pick<Settings, 'compatibility'>
  readonly limits: Pick<LimitReport, 'reached'>
}

/** Why the pool may launch no replacement now. Static NodePools reserve their own. */
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

/** Records on the NodePool that its drifted nodes stay, because replacements would exceed `limits.nodes`. */
export function reportNodeLimit(
  { limits, settings, state }: NodeLimitParts,
  pool: NodePool,
  because: string,
): void {
  if (!policyOf(settings).reportsLimits) return
  limits.reached(pool, `replaces no drifted node, as each stays until its successor is there: ${because}`)
  state.rollouts.limit(pool.metadata.name, because)
}

/** Records the same on the NodePool of this name if it is full. @returns the text for events of its nodes. */
export function reportFull(parts: NodeLimitParts, name: string): string | undefined {
  const full = whyFull(parts, name)
  const pool = parts.caches.nodePools.get({ name })
  if (full === undefined || pool === undefined) return undefined
  reportNodeLimit(parts, pool, full.because)
  return `${full.because}; ${nodeLimitRemedy}`
}
