/** Creates the claims of decisions, each once, and resolves creations without an answer. */
import type { Clock, Random } from '@tenon/runtime'
import type { KubeClient } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { karpenterKinds, type NewObject, type NodeClaim, type NodePool } from '@tenon/api'
import type { LimitReservation } from '../state/nodepools/limit-reservations.ts'
import { createOrAdopt, freshClaimName, isUnclear } from '../nodeclaim/claim-creation.ts'
import type { ClaimTraces } from '../nodeclaim/claim-traces.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly provider: Pick<CloudProvider, 'claimNameLimit'>
  readonly client: Pick<KubeClient, 'create' | 'get'>
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'limitReservations' | 'poolClaims' | 'seed'>
  readonly claimTraces?: ClaimTraces | undefined
  readonly clock: Clock
  readonly random: Random
}

/** After this long, a creation without an answer has ended one way or the other. */
const lateCreationMs = 60_000
/** A creation without an answer is repeated at once under the same name, which makes no second claim. */
const creationAttempts = 3
const creationPauseMs = 500

export class PlannedClaims {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Creates a claim under a name chosen before. Until it is known whether it exists, its NodePool launches nothing more.
   * @param reservation given back if there is no claim.
   */
  async create(
    pool: NodePool,
    object: NewObject<NodeClaim>,
    reservation: LimitReservation,
    signal: AbortSignal,
  ): Promise<NodeClaim> {
    const { claimTraces, client, clock, provider, random, state } = this.#deps
    const name = freshClaimName(pool, random, provider.claimNameLimit)
    state.limitReservations.follow(reservation, name)
    const unmarked = { ...object, metadata: { ...object.metadata, name } }
    const named = claimTraces?.annotated(unmarked) ?? unmarked
    state.poolClaims.reserve(pool.metadata.name, Number.POSITIVE_INFINITY, [name])
    for (let attempt = 1; ; attempt++) {
      try {
        const created = await createOrAdopt(client, pool, named, signal)
        state.seed(created)
        state.poolClaims.release(name)
        return created
      } catch (error) {
        if (signal.aborted) throw error
        if (!isUnclear(error)) {
          state.poolClaims.release(name)
          state.limitReservations.forget(name)
          throw error
        }
        state.poolClaims.leaveUnsettled(name, clock.monotonic())
        if (attempt === creationAttempts) throw error
      }
      await clock.sleep(creationPauseMs * attempt, signal)
    }
  }

  /** Resolves creations without an answer; those that may still take effect stay held. */
  async settle(signal: AbortSignal): Promise<void> {
    const { caches, client, clock, state } = this.#deps
    const lateMs = clock.monotonic() - lateCreationMs
    // Also of NodePools that are gone: what such a claim takes of quotas is given back.
    for (const pool of state.poolClaims.unsettledPools()) {
      if (caches.nodePools.get({ name: pool })?.spec.replicas !== undefined) continue
      const ended = new Set(state.poolClaims.unsettled(pool, lateMs))
      for (const name of state.poolClaims.unsettled(pool)) {
        const claim = await client.get(karpenterKinds.nodeClaim, { name }, { signal })
        if (claim !== undefined) state.seed(claim)
        if (claim !== undefined || ended.has(name)) state.poolClaims.release(name)
        if (claim === undefined && ended.has(name)) state.limitReservations.forget(name)
      }
    }
  }
}
