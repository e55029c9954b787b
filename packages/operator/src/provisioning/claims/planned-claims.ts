/** Creates the claims of decisions, each once, and finds out about those whose creation had no answer. */
import type { Clock, Random } from '@tenon/runtime'
import type { KubeClient } from '@tenon/kube'
import {
  karpenterKinds,
  type NewObject,
  type NodeClaim,
  type NodePool,
  parseResources,
  type Resources,
  ownValue,
} from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import type { LimitReservation } from '../../cluster/nodepools/limit-reservations.ts'
import { OvertakenError } from '../../cloud/expected-failures.ts'
import { createOrAdopt, freshClaimName, isUnclear } from './create-or-adopt.ts'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly clock: Clock
  readonly random: Random
}

/** A creation without an answer is taken to have ended, one way or the other, after this long. */
const lateCreationMs = 60_000
/** A creation without an answer is asked for again at once, which makes no second claim. */
const creationAttempts = 3
const creationPauseMs = 500

/** Creates claims, and keeps account of those that may exist. */
export class PlannedClaims {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @throws Error when the NodePool of a decision is gone by now. */
  pool(name: string): NodePool {
    const pool = this.#deps.caches.nodePools.get({ name })
    if (pool === undefined) throw new OvertakenError(`NodePool ${name} is gone`)
    return pool
  }

  /**
   * Reserves what the claim takes below the limits of the claim's NodePool: what was decided at the same time may have taken it.
   * @param usage what the pool's instances have that count.
   * @throws Error when there is none left.
   */
  reserve(pool: NodePool, usage: Resources, { largest }: Pick<NewClaim, 'largest'>): LimitReservation {
    const reservation = this.#deps.state.limitReservations.take({ pool, usage, largest })
    if (typeof reservation !== 'string') return reservation
    throw limitError(pool.metadata.name, reservation)
  }

  /**
   * Creates a claim under a name of its own, which is held while it is not known whether it exists: its
   * NodePool launches nothing more before that is settled.
   * @param reservation given back when there is no claim.
   */
  async create(
    pool: NodePool,
    object: NewObject<NodeClaim>,
    reservation: LimitReservation,
    signal: AbortSignal,
  ): Promise<NodeClaim> {
    const { client, clock, random, state } = this.#deps
    const name = freshClaimName(pool, random)
    state.limitReservations.follow(reservation, name)
    const named = { ...object, metadata: { ...object.metadata, name } }
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

  /** Finds out what became of creations without an answer; those that may still be carried out stay held. */
  async settle(signal: AbortSignal): Promise<void> {
    const { caches, client, clock, state } = this.#deps
    const lateMs = clock.monotonic() - lateCreationMs
    for (const { metadata, spec } of caches.nodePools.list()) {
      if (spec.replicas !== undefined) continue
      const ended = new Set(state.poolClaims.unsettled(metadata.name, lateMs))
      for (const name of state.poolClaims.unsettled(metadata.name)) {
        const claim = await client.get(karpenterKinds.nodeClaim, { name }, { signal })
        if (claim !== undefined) state.seed(claim)
        if (claim !== undefined || ended.has(name)) state.poolClaims.release(name)
        if (claim === undefined && ended.has(name)) state.limitReservations.forget(name)
      }
    }
  }
}

/**
 * Limits may have been lowered since a decision was made (scheduling.md 10).
 * @param usage what the pool's instances have that count.
 * @throws Error when it is more than a limit allows already.
 */
export function refuseAboveLimits({ metadata, spec }: NodePool, usage: Resources): void {
  const limits = parseResources(spec.limits)
  const exceeded = Object.keys(limits).find(
    (name) => (ownValue(usage, name) ?? 0) > (ownValue(limits, name) as number),
  )
  if (exceeded !== undefined)
    throw new OvertakenError(`NodePool ${metadata.name} exceeds its limit for ${exceeded}`)
}

/** @param limit name of the amount that is short. */
export function limitError(pool: string, limit: string): Error {
  return new OvertakenError(`NodePool ${pool} has no room left below its limit for ${limit}`)
}
