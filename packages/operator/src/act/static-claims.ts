/** Creates the claims of static NodePools, for no pod in particular (cluster-state.md 15.3, 15.5). */
import { karpenterKinds, type NodeClaim, type NodePool, parseResources, wellKnownLabels } from '@tenon/api'
import { templateClaim } from '@tenon/engine'
import { isKubeError } from '@tenon/kube'
import { randomString } from '@tenon/runtime'
import type { OperatorContext } from '../context.ts'
import { staticClaimFor } from './create-claim.ts'

/** As the API server generates names: cut so that they stay valid labels, without ambiguous letters. */
const prefixLimit = 58
const suffix = { length: 5, alphabet: 'bcdfghjklmnpqrstvwxz2456789' } as const

/** How many claims the pool may have at most. */
export function nodeLimit(pool: NodePool): number {
  return parseResources(pool.spec.limits)['nodes'] ?? Number.POSITIVE_INFINITY
}

/**
 * Sets room aside for `wanted` more claims, as far as `limits.nodes` has any.
 * @returns the names of the claims, each for one {@link createStaticClaim} or for a release.
 */
export function reserveStaticClaims(
  { state, random }: OperatorContext,
  pool: NodePool,
  wanted: number,
): readonly string[] {
  const { name } = pool.metadata
  const prefix = `${name}-`.slice(0, prefixLimit)
  const fresh = () => prefix + randomString(random, suffix.length, suffix.alphabet)
  return state.poolClaims.reserve(name, nodeLimit(pool), Array.from({ length: wanted }, fresh))
}

/**
 * Creates the claim of a name that is held, from the pool's template alone. The name is released with
 * a clear answer; without one it stays held, and creating it again makes no second claim.
 * @param reason as in metric `karpenter_nodeclaims_created_total`.
 */
export async function createStaticClaim(
  context: OperatorContext,
  pool: NodePool,
  name: string,
  reason: string,
  signal: AbortSignal,
): Promise<NodeClaim> {
  const { clock, state, metrics, logger } = context
  let created: NodeClaim
  try {
    created = await createOrAdopt(context, pool, name, signal)
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

async function createOrAdopt(
  { client, provider }: OperatorContext,
  pool: NodePool,
  name: string,
  signal: AbortSignal,
): Promise<NodeClaim> {
  const wellKnown = new Set([...wellKnownLabels, ...provider.wellKnownLabels])
  const { defaultTerminationGracePeriodMs: gracePeriodMs } = provider
  const object = staticClaimFor(pool, templateClaim(pool, wellKnown), name, gracePeriodMs)
  try {
    return await client.create(karpenterKinds.nodeClaim, object, { signal })
  } catch (error) {
    if (!isKubeError(error, 'alreadyExists')) throw error
    const existing = await client.get(karpenterKinds.nodeClaim, { name }, { signal })
    // What an earlier attempt has made; a claim of anybody else's is in the way.
    const isOwn = existing?.metadata.ownerReferences?.some(({ uid }) => uid === pool.metadata.uid) === true
    if (existing === undefined || !isOwn) throw error
    return existing
  }
}

/** Whether the server may have carried out, or may yet carry out, what it was asked. */
function isUnclear(error: unknown): boolean {
  return !isKubeError(
    error,
    'notFound',
    'alreadyExists',
    'conflict',
    'gone',
    'invalid',
    'forbidden',
    'unauthorized',
    'tooManyRequests',
  )
}
