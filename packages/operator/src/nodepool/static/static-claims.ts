/** Creates the claims of static NodePools, for no pod in particular (cluster-state.md 15.3, 15.5). */
import type { Clock, Random } from '@tenon/runtime'
import type { KubeClient } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { karpenterKinds, labels, type NodeClaim, type NodePool, parseResources } from '@tenon/api'
import type { ClaimCreations } from '../../nodeclaim/creation/claim-creations.ts'
import type { ClaimObjects } from '../../nodeclaim/creation/claim-objects.ts'
import { createOrAdopt, freshClaimName, isUnclear } from '../../nodeclaim/creation/create-or-adopt.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly provider: Pick<CloudProvider, 'claimNameLimit'>
  readonly client: Pick<KubeClient, 'create' | 'get' | 'list'>
  readonly state: Pick<ClusterState, 'poolClaims' | 'seed'>
  readonly objects: ClaimObjects
  readonly creations: ClaimCreations
  readonly clock: Pick<Clock, 'monotonic'>
  readonly random: Random
}

/** A request without an answer is taken to have ended, one way or the other, after this long. */
const lateMs = 60_000

/** How many claims the pool may have at most. */
export function nodeLimit(pool: NodePool): number {
  return parseResources(pool.spec.limits)['nodes'] ?? Number.POSITIVE_INFINITY
}

/** Creates claims under names that are held for them, so that none is created twice. */
export class StaticClaims {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Makes the state know every claim of the pool. A process that takes over may watch with a delay,
   * and would make claims that another has just made.
   */
  async learn({ metadata }: NodePool, signal: AbortSignal): Promise<void> {
    const { client, state } = this.#deps
    const labelSelector = { matchLabels: { [labels.nodePool]: metadata.name } }
    const claims = await client.list(karpenterKinds.nodeClaim, { labelSelector, signal })
    for (const claim of claims) state.seed(claim)
  }

  /**
   * Sets room aside for `wanted` more claims, as far as `limits.nodes` has any.
   * @returns the names of the claims, each for one {@link create} or for a release.
   */
  reserve(pool: NodePool, wanted: number): readonly string[] {
    const { provider, random, state } = this.#deps
    const { name } = pool.metadata
    const fresh = () => freshClaimName(pool, random, provider.claimNameLimit)
    return state.poolClaims.reserve(name, nodeLimit(pool), Array.from({ length: wanted }, fresh))
  }

  /**
   * Creates the claim of a name that is held, from the pool's template alone. The name is released with
   * a clear answer; without one it stays held, and creating it again makes no second claim.
   * @param reason as in metric `karpenter_nodeclaims_created_total`.
   */
  async create(pool: NodePool, name: string, reason: string, signal: AbortSignal): Promise<NodeClaim> {
    const { client, clock, creations, objects, state } = this.#deps
    let created: NodeClaim
    try {
      created = await createOrAdopt(client, pool, objects.ofStaticPool(pool, name), signal)
    } catch (error) {
      if (isUnclear(error)) state.poolClaims.leaveUnsettled(name, clock.monotonic())
      else state.poolClaims.release(name)
      throw error
    }
    state.seed(created)
    state.poolClaims.release(name)
    creations.note({ name, nodePool: pool.metadata.name, reason, minValuesRelaxed: false })
    return created
  }

  /**
   * Looks up a claim whose creation had no clear answer, and gives its name and its room back; what can still come to
   * be keeps them.
   * @returns whether that is settled.
   */
  async settle(pool: string, name: string, signal: AbortSignal): Promise<boolean> {
    const { client, clock, state } = this.#deps
    if (!state.poolClaims.unsettled(pool, clock.monotonic() - lateMs).includes(name)) return false
    const claim = await client.get(karpenterKinds.nodeClaim, { name }, { signal })
    if (claim !== undefined) state.seed(claim)
    state.poolClaims.release(name)
    return true
  }
}
