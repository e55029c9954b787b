/** Creates the claims of static NodePools, for no pod in particular (cluster-state.md 15.3, 15.5). */
import type { Clock, Logger, Random } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import type { KubeClient } from '@tenon/kube'
import { type NodeClaim, type NodePool, parseResources, wellKnownLabels } from '@tenon/api'
import { templateClaim } from '@tenon/engine'
import { nodeDefaults } from '../../provisioning/node-defaults.ts'
import { staticClaimFor } from '../../provisioning/create-claim.ts'
import { createOrAdopt, freshClaimName, isUnclear } from '../../provisioning/create-or-adopt.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { Metrics } from '../../metrics/metrics.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly metrics: Metrics
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/** How many claims the pool may have at most. */
export function nodeLimit(pool: NodePool): number {
  return parseResources(pool.spec.limits)['nodes'] ?? Number.POSITIVE_INFINITY
}

/**
 * Sets room aside for `wanted` more claims, as far as `limits.nodes` has any.
 * @returns the names of the claims, each for one {@link createStaticClaim} or for a release.
 */
export function reserveStaticClaims(
  { state, random }: Dependencies,
  pool: NodePool,
  wanted: number,
): readonly string[] {
  const { name } = pool.metadata
  const fresh = () => freshClaimName(pool, random)
  return state.poolClaims.reserve(name, nodeLimit(pool), Array.from({ length: wanted }, fresh))
}

/**
 * Creates the claim of a name that is held, from the pool's template alone. The name is released with
 * a clear answer; without one it stays held, and creating it again makes no second claim.
 * @param reason as in metric `karpenter_nodeclaims_created_total`.
 */
export async function createStaticClaim(
  deps: Dependencies,
  pool: NodePool,
  name: string,
  reason: string,
  signal: AbortSignal,
): Promise<NodeClaim> {
  const { clock, state, metrics, logger } = deps
  let created: NodeClaim
  try {
    created = await createOrAdopt(deps.client, pool, newClaim(deps, pool, name), signal)
  } catch (error) {
    if (isUnclear(error)) state.poolClaims.leaveUnsettled(name, clock.monotonic())
    else state.poolClaims.release(name)
    throw error
  }
  state.seed(created)
  state.poolClaims.release(name)
  metrics.nodeClaimsCreated.inc({ reason, nodepool: pool.metadata.name, min_values_relaxed: 'false' })
  logger.info('created nodeclaim', {
    NodePool: { name: pool.metadata.name },
    NodeClaim: { name },
  })
  return created
}

function newClaim({ provider }: Dependencies, pool: NodePool, name: string) {
  const wellKnown = new Set([...wellKnownLabels, ...provider.wellKnownLabels])
  const { defaultTerminationGracePeriodMs: gracePeriodMs } = provider
  const defaults = nodeDefaults(provider, pool)
  const claim = templateClaim({ nodePool: pool, ...(defaults && { defaults }) }, wellKnown)
  const object = staticClaimFor(pool, claim, name, gracePeriodMs)
  return { ...object, metadata: { ...object.metadata, name } }
}
